/** The states of a transfer, and the moves between them. */
import { Schema } from "effect"

export const TransferId = Schema.String.pipe(Schema.brand("TransferId"))
export type TransferId = typeof TransferId.Type

/** All states except `pending` are final. */
export const TransferStatus = Schema.Literal("pending", "accepted", "declined", "revoked", "expired")
export type TransferStatus = typeof TransferStatus.Type

/** The moves that end a pending transfer, each with the resulting state and the party that receives the escrow. */
export const moves = {
  accept: { to: "accepted", escrow: "recipient" },
  decline: { to: "declined", escrow: "sender" },
  revoke: { to: "revoked", escrow: "sender" },
  expire: { to: "expired", escrow: "sender" }
} as const satisfies Record<string, { readonly to: TransferStatus; readonly escrow: "recipient" | "sender" }>
export type Move = keyof typeof moves

/**
 * Decides the effect of a move in a state. `make` means that the transfer is pending. `again` means that the same move has already ended it, so
 * its result is returned (accept and decline only). `refuse` covers all other ended transfers.
 */
export const judge = (status: TransferStatus, move: Move): "make" | "again" | "refuse" => {
  if (status === "pending") return "make"
  return status === moves[move].to && (move === "accept" || move === "decline") ? "again" : "refuse"
}
