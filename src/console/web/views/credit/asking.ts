/** The credit view's queries. */
import { useQuery } from "@tanstack/react-query"
import { useMembership } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { Refusal } from "../../app/Refusal.ts"

export type Reload = Schemas["AutoReload"]
export type Method = Schemas["PaymentMethod"]

/** Returns whether the user is an owner or admin, or `undefined` while the membership is loading. */
export const useManages = (): boolean | undefined => {
  const membership = useMembership()
  return membership === undefined ? undefined : membership.role !== "member"
}

export const reloadKey = (tenant: string): ReadonlyArray<string> => ["reload", tenant]

export const useReload = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: reloadKey(tenant_id),
    queryFn: () =>
      resultOf(api.GET("/v1/tenants/{tenant_id}/billing/auto-reload", { params: { path: { tenant_id } } })),
    // Poll during a charge, because no event reports its end.
    refetchInterval: ({ state }) => (state.data?.auto_reload.state === "in_flight" ? 3000 : false)
  })
}

export const useMethods = () => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["methods", tenant_id],
    queryFn: async () =>
      (await resultOf(api.GET("/v1/tenants/{tenant_id}/billing/payment-methods", { params: { path: { tenant_id } } })))
        .payment_methods,
    retry: (failures, error) => failures < 2 && !isUnconfigured(error)
  })
}

/** Returns whether the request failed because the deployment has no payment processor. */
export const isUnconfigured = (error: unknown): boolean =>
  error instanceof Refusal && error.code === "payments_unconfigured"

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Formats a payment method's name: "Visa ···· 4242". */
export const methodName = ({ brand, last4, type }: Method): string =>
  `${capital(brand ?? type)}${last4 === null ? "" : ` ···· ${last4}`}`
