/** The transfers view's queries and mutations. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"

export type Transfer = Schemas["Transfer"]
export type Side = "sent" | "received"

export const perPage = 20

const resendPause = 12 * 3_600_000

/** Returns when the email can be resent, as Unix time in milliseconds, or 0 if it was sent only once. */
export const resendAt = ({ created_at, last_sent_at }: Transfer): number =>
  last_sent_at === created_at ? 0 : Date.parse(last_sent_at) + resendPause

export const endOf = (transfer: Transfer): string =>
  transfer.accepted_at ??
  transfer.declined_at ??
  transfer.revoked_at ??
  (transfer.status === "expired" ? transfer.expires_at : transfer.updated_at)

export const useTransfers = (side: Side, page: number, status?: Transfer["status"]) => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["transfers", tenant_id, side, page, status],
    queryFn: () => {
      const query = { page: String(page), per_page: String(perPage), ...(status !== undefined && { status }) }
      return resultOf(
        side === "sent"
          ? api.GET("/v1/tenants/{tenant_id}/billing/transfers", { params: { path: { tenant_id }, query } })
          : api.GET("/v1/transfers", { params: { query } })
      )
    },
    placeholderData: keepPreviousData
  })
}

export const useTransfer = (transfer_id: string) => {
  const tenant_id = tenantId()
  return useQuery({
    queryKey: ["transfers", tenant_id, "one", transfer_id],
    queryFn: () => resultOf(api.GET("/v1/transfers/{transfer_id}", { params: { path: { transfer_id } } }))
  })
}

const moves = {
  accept: (transfer_id: string) =>
    api.POST("/v1/transfers/{transfer_id}/accept", { params: { path: { transfer_id } } }),
  decline: (transfer_id: string) =>
    api.POST("/v1/transfers/{transfer_id}/decline", { params: { path: { transfer_id } } }),
  revoke: (transfer_id: string) =>
    api.DELETE("/v1/tenants/{tenant_id}/billing/transfers/{transfer_id}", {
      params: { path: { tenant_id: tenantId(), transfer_id } }
    }),
  resend: (transfer_id: string) =>
    api.POST("/v1/tenants/{tenant_id}/billing/transfers/{transfer_id}/resend", {
      params: { path: { tenant_id: tenantId(), transfer_id } }
    })
} as const

export type Move = keyof typeof moves

/** Returns a mutation for a transfer action. It invalidates the affected queries even if the request fails. */
export const useMove = (move: Move, onDone: (transfer: Transfer) => void) => {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (transfer_id: string): Promise<Transfer> => resultOf(moves[move](transfer_id)),
    onSuccess: onDone,
    onSettled: () => {
      for (const about of ["transfers", "balance", "ledger", "notifications"]) {
        void queries.invalidateQueries({ queryKey: [about] })
      }
    }
  })
}
