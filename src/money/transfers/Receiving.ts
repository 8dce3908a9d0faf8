/** The recipient's operations: accept or decline a transfer, and preview or attach it with the token from its invitation. */
import { Clock, Effect } from "effect"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { masked } from "../../kernel/Email.ts"
import { EmailMismatch } from "../../people/tenants/Problems.ts"
import type { TransferInvalid } from "./Problems.ts"
import { TransferInviteNotFound, TransferNotFound, TransferNotPending } from "./Problems.ts"
import { transferOf } from "./Reading.ts"
import { judge } from "./States.ts"
import type { Transfer } from "./Transfer.ts"
import type { Parts, TransferOf, TransfersContract } from "./Transfers.ts"

export const make = (parts: Parts) => ({
  accept: accept(parts),
  decline: decline(parts),
  preview: preview(parts),
  attach: attach(parts)
})

const accept = (parts: Parts): TransfersContract["accept"] =>
  Effect.fn("Transfers.accept")((request) => end(parts, request, "accept"))

const decline = (parts: Parts): TransfersContract["decline"] =>
  Effect.fn("Transfers.decline")((request) =>
    // Only the recipient's balance can be full. The sender's balance always has room for its own credit.
    Effect.catchTag(end(parts, request, "decline"), "TransferInvalid", Effect.die)
  )

const end = Effect.fnUntraced(function* (
  parts: Parts,
  request: TransferOf,
  move: "accept" | "decline"
): Effect.fn.Return<
  Transfer,
  TransferNotFound | EmailMismatch | TransferNotPending | TransferInvalid | BooksUnavailable
> {
  const { current, escrow, reading, sql, tenants } = parts
  const { caller, transfer_id } = request
  const row = yield* current(sql`t.id = ${transfer_id}`)
  if (row === undefined) return yield* new TransferNotFound({ transfer_id })
  const email = yield* tenants.verifiedEmail(caller.account_id)
  if (email !== row.recipient_email) return yield* new EmailMismatch()
  const verdict = judge(row.status, move)
  if (verdict === "refuse") return yield* new TransferNotPending({ transfer_id, state: row.status })
  if (verdict === "again") return transferOf(row)
  const recipient = (yield* tenants.accountOfEmail(email))!
  return yield* escrow.end(row, move, { ...recipient, account_id: caller.account_id }).pipe(
    Effect.zipRight(reading.get(transfer_id)),
    // A concurrent move ended the transfer first, so the request is reevaluated in the new state.
    Effect.catchTag("Conflict", () => end(parts, request, move))
  )
})

const byToken = ({ current, secret, sql }: Parts, token: string) =>
  Effect.flatMap(current(sql`t.token_hash = ${secret.hash("transfer_invite", token)}`), (row) =>
    row === undefined ? new TransferInviteNotFound() : Effect.succeed(row)
  )

const preview = (parts: Parts): TransfersContract["preview"] =>
  Effect.fn("Transfers.preview")(function* ({ token }) {
    const row = yield* byToken(parts, token)
    const { amount, expires_at, kind, message, reason, status } = transferOf(row)
    return {
      kind,
      amount,
      reason,
      message,
      sender_name: row.sender_name ?? "",
      recipient_email_masked: masked(row.recipient_email),
      status,
      expires_at
    }
  })

const attach = (parts: Parts): TransfersContract["attach"] =>
  Effect.fn("Transfers.attach")(function* (request) {
    const { escrow, reading, sql, tenants } = parts
    const { account_id } = request.caller
    const row = yield* byToken(parts, request.token)
    if ((yield* tenants.verifiedEmail(account_id)) !== row.recipient_email) return yield* new EmailMismatch()
    if (row.status !== "pending") return yield* new TransferNotPending({ transfer_id: row.id, state: row.status })
    if (row.recipient_account_id === account_id) return transferOf(row)
    const now = yield* Clock.currentTimeMillis
    const bound = statement(
      sql`UPDATE tollgate_transfers SET recipient_account_id = ${account_id}, updated_at = ${now}
        WHERE id = ${row.id} AND status = 'pending' RETURNING id`,
      1
    )
    return yield* escrow.update(bound, []).pipe(
      Effect.zipRight(reading.get(row.id)),
      Effect.catchTag("Conflict", () => attach(parts)(request))
    )
  })
