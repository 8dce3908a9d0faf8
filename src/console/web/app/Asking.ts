/** Hooks for queries that several views share. A query key consists of the topic (see `PersonLive`), the tenant, and the query's parameters. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { nano } from "../money.ts"
import { api, resultOf, tenantId } from "./Client.ts"

export const useMe = () =>
  useQuery({ queryKey: ["me"], queryFn: () => resultOf(api.GET("/v1/me")), staleTime: 300_000 })

export const useMemberships = () =>
  useQuery({
    queryKey: ["memberships"],
    queryFn: async () => (await resultOf(api.GET("/v1/me/memberships"))).memberships,
    staleTime: 60_000
  })

/** Returns the user's membership in this tab's tenant, or `undefined` until it has loaded. */
export const useMembership = () => {
  const { data } = useMemberships()
  const tenant = tenantId()
  return data?.find(({ tenant_id }) => tenant_id === tenant)
}

export const useBillingAccount = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["balance", tenant_id],
    queryFn: () => resultOf(api.GET("/v1/tenants/{tenant_id}/billing", { params: { path: { tenant_id } } }))
  })
}

/** Queries the balance by credit type, including the credit reserved by open calls. Polls, because no event reports the start of a call. */
export const useAmounts = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["balance", tenant_id, "amounts"],
    queryFn: () => resultOf(api.GET("/v1/tenants/{tenant_id}/billing/amounts", { params: { path: { tenant_id } } })),
    refetchInterval: ({ state }) => (state.data !== undefined && nano(state.data.reserved) > 0n ? 2000 : 10_000)
  })
}

/** Queries a page of the ledger, newest first. `source` is a comma-separated list of the sources to include. */
export const useLedger = (page: number, per_page: number, source?: string) => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["ledger", tenant_id, page, per_page, source],
    queryFn: () =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/billing/ledger", {
          params: {
            path: { tenant_id },
            query: { page: String(page), per_page: String(per_page), ...(source !== undefined && { source }) }
          }
        })
      ),
    placeholderData: keepPreviousData
  })
}

/** Queries up to 200 keys that the user can see. */
export const useKeys = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["keys", tenant_id],
    queryFn: () =>
      resultOf(
        api.GET("/v1/tenants/{tenant_id}/applications", { params: { path: { tenant_id }, query: { per_page: "200" } } })
      )
  })
}
