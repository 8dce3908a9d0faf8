/** The states of a transfer, and the moves between them. */
import { Schema } from "effect"

export const TransferId = Schema.String.pipe(Schema.brand("TransferId"))
export type TransferId = typeof TransferId.Type

/** Every state but `pending` is final. */
export const TransferStatus = Schema.Literal("pending", "accepted", "declined", "revoked", "expired")
export type TransferStatus = typeof TransferStatus.Type

/** How a pending transfer may end, in which state, and to whom its escrow goes then. Every other state is final. */
export const moves = {
  accept: { to: "accepted", escrow: "recipient" },
  decline: { to: "declined", escrow: "sender" },
  revoke: { to: "revoked", escrow: "sender" },
  expire: { to: "expired", escrow: "sender" }
} as const satisfies Record<string, { readonly to: TransferStatus; readonly escrow: "recipient" | "sender" }>
export type Move = keyof typeof moves

/**
 * What a move means in a state: it is made; it was made before and is answered the same again, which the recipient's moves
 * are; or it is refused.
 */
export const judge = (status: TransferStatus, move: Move): "make" | "again" | "refuse" => {
  if (status === "pending") return "make"
  return status === moves[move].to && (move === "accept" || move === "decline") ? "again" : "refuse"
}
