/** Hooks for queries that several views share. A key begins with the topic (see `PersonLive`), then the tenant, then the query. */
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

/** The membership of this tab's tenant. */
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

/** The parts of the balance, and the reservations of open calls. No event reports the start of a call, so the figure is polled. */
export const useAmounts = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["balance", tenant_id, "amounts"],
    queryFn: () => resultOf(api.GET("/v1/tenants/{tenant_id}/billing/amounts", { params: { path: { tenant_id } } })),
    refetchInterval: ({ state }) => (state.data !== undefined && nano(state.data.reserved) > 0n ? 2000 : 10_000)
  })
}

/** `source`: only entries of these sources, comma-separated. */
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

/** Every key visible to this person, up to two hundred. */
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
