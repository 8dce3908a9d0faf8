/** What recipients do: accept, decline, and find a transfer by the link of its invitation. */
import { Clock, Effect } from "effect"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import { masked } from "../../kernel/Email.ts"
import { EmailMismatch } from "../../people/tenants/Problems.ts"
import type { TransferInvalid } from "./Problems.ts"
import { TransferInviteNotFound, TransferNotFound, TransferNotPending } from "./Problems.ts"
import { transferOf } from "./Reading.ts"
import { judge } from "./States.ts"
import type { Transfer } from "./Transfer.ts"
import type { Parts, TransferOf, TransfersContract } from "./Transfers.ts"

export const make = ({ current, escrow, reading, secret, sql, tenants }: Parts) => {
  const end = (move: "accept" | "decline") => {
    const ended = Effect.fnUntraced(function* (
      request: TransferOf
    ): Effect.fn.Return<
      Transfer,
      TransferNotFound | EmailMismatch | TransferNotPending | TransferInvalid | BooksUnavailable
    > {
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
        // Another move was faster: what it made of the transfer decides.
        Effect.catchTag("Conflict", () => ended(request))
      )
    })
    return ended
  }

  const accept: TransfersContract["accept"] = Effect.fn("Transfers.accept")(end("accept"))

  const declined = end("decline")
  const decline: TransfersContract["decline"] = Effect.fn("Transfers.decline")((request: TransferOf) =>
    // The credit goes back to where it came from, which has room for it.
    Effect.catchTag(declined(request), "TransferInvalid", Effect.die)
  )

  /** The transfer of an invitation's link, as it is now. */
  const byToken = (token: string) =>
    Effect.flatMap(current(sql`t.token_hash = ${secret.hash("transfer_invite", token)}`), (row) =>
      row === undefined ? new TransferInviteNotFound() : Effect.succeed(row)
    )

  const preview: TransfersContract["preview"] = Effect.fn("Transfers.preview")(function* ({ token }) {
    const row = yield* byToken(token)
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

  const attach: TransfersContract["attach"] = Effect.fn("Transfers.attach")(function* (request) {
    const { account_id } = request.caller
    const row = yield* byToken(request.token)
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
      Effect.catchTag("Conflict", () => attach(request))
    )
  })

  return { accept, decline, preview, attach }
}
