/** What senders do: send, revoke, and mail the invitation again. */
import { Clock, Duration, Effect } from "effect"
import { createHash, randomBytes } from "node:crypto"
import * as Ids from "../../kernel/Ids.ts"
import type { BillingAccountId } from "../../kernel/Ids.ts"
import type { Refusal } from "../../books/ledger/Transaction.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import { afterCommit } from "../../books/ledger/Writer.ts"
import type { Conflict } from "./Escrow.ts"
import { invitedOf, letterOf, receivedNotice } from "./Invitations.ts"
import type { Invited } from "./Invitations.ts"
import {
  BillingAccountInactive,
  TransferInsufficientCredits,
  TransferInsufficientGiftable,
  TransferKeyReused,
  TransferNotFound,
  TransferNotPending,
  TransferResendTooSoon,
  TransferSelf
} from "./Problems.ts"
import { transferOf } from "./Reading.ts"
import { draftOf } from "./Transfer.ts"
import { judge } from "./States.ts"
import type { Draft } from "./Transfer.ts"
import type { TransferId } from "./States.ts"
import type { Parts, TransferOf, TransfersContract } from "./Transfers.ts"

/** How long a transfer waits to be accepted. */
export const lifetime = Duration.days(30)
/** How long a sender waits before the invitation can be mailed again. */
export const resendPause = Duration.hours(12)

export const make = ({ current, escrow, info, outbox, reading, secret, sql, tenants, waker }: Parts) => {
  /** What the same request made before, if it did. */
  const before = Effect.fnUntraced(function* (account: BillingAccountId, key: string, request_hash: string) {
    const row = yield* reading.one(sql`t.billing_account_id = ${account} AND t.idempotency_key = ${key}`)
    if (row === undefined) return undefined
    if (row.request_hash !== request_hash) return yield* new TransferKeyReused({ transfer_id: row.id })
    return { created: false, transfer: transferOf((yield* current(sql`t.id = ${row.id}`))!) }
  })

  const create: TransfersContract["create"] = Effect.fn("Transfers.create")(function* (request) {
    const { caller, key } = request
    yield* tenants.mayManage(caller)
    const draft = yield* draftOf(request.transfer)
    const billing_account_id = Ids.billingAccountOf(caller.tenant_id)
    const request_hash = hashOf(draft)
    const made = yield* before(billing_account_id, key, request_hash)
    if (made !== undefined) return made
    const [sender] = yield* tenants.named([caller.account_id])
    // An address that is not verified counts too: it could be verified later, with the transfer under way.
    if (sender?.email === draft.recipient_email) return yield* new TransferSelf()

    const now = yield* Clock.currentTimeMillis
    const token = randomBytes(32).toString("hex")
    const id = Ids.at("trf", now) as TransferId
    const expires_at = now + Duration.toMillis(lifetime)
    const recipient = yield* tenants.accountOfEmail(draft.recipient_email)
    const invited: Invited = { ...draft, id, sender_name: sender?.name ?? "Somebody", expires_at }
    const words = letterOf(invited, { caused_by: caller.account_id, n: 1, token }, info)
    if (recipient === undefined) yield* outbox.room(caller.account_id, draft.recipient_email)
    const letter = yield* recipient === undefined ? outbox.requiredLetter(words) : outbox.letter(words)
    const row = {
      ...draft,
      id,
      billing_account_id,
      sender_account_id: caller.account_id,
      recipient_account_id: recipient?.account_id ?? null,
      token_hash: secret.hash("transfer_invite", token),
      idempotency_key: key,
      request_hash,
      created_at: now,
      expires_at
    }
    const beside = recipient === undefined ? [letter] : [letter, receivedNotice(recipient.account_id, invited, now)]
    const begun = afterCommit(escrow.begin(row, beside), Effect.zipRight(outbox.wake, waker.wake)).pipe(
      Effect.zipRight(reading.byId(id)),
      Effect.map((written) => ({ created: true, transfer: transferOf(written!) }))
    )
    return yield* Effect.catchAll(begun, (refusal) =>
      // Whatever the refusal, the same request may have been faster: then its transfer is the answer.
      Effect.flatMap(before(billing_account_id, key, request_hash), (faster) =>
        faster !== undefined
          ? Effect.succeed(faster)
          : // Another letter was faster, and there is no room for this one any more.
            refusal._tag === "Conflict"
            ? create(request)
            : refused(refusal, billing_account_id, draft)
      )
    )
  })

  /** A transfer of the caller's tenant, as it is now. */
  const ofTenant = Effect.fnUntraced(function* ({ caller, transfer_id }: TransferOf) {
    const row = yield* current(sql`t.id = ${transfer_id}`)
    if (row?.billing_account_id !== Ids.billingAccountOf(caller.tenant_id)) {
      return yield* new TransferNotFound({ transfer_id })
    }
    yield* tenants.mayManage(caller)
    return row
  })

  const revoke: TransfersContract["revoke"] = Effect.fn("Transfers.revoke")(function* (request) {
    const { transfer_id } = request
    const row = yield* ofTenant(request)
    if (judge(row.status, "revoke") !== "make") return yield* new TransferNotPending({ transfer_id, state: row.status })
    return yield* escrow.end(row, "revoke").pipe(
      Effect.zipRight(reading.get(transfer_id)),
      // Another move was faster: what it made of the transfer decides.
      Effect.catchTags({ Conflict: () => revoke(request), TransferInvalid: Effect.die })
    )
  })

  const resend: TransfersContract["resend"] = Effect.fn("Transfers.resend")(function* (request) {
    const { caller, transfer_id } = request
    const row = yield* ofTenant(request)
    if (row.status !== "pending") return yield* new TransferNotPending({ transfer_id, state: row.status })
    const now = yield* Clock.currentTimeMillis
    const earliest = now - Duration.toMillis(resendPause)
    if (row.resent_at !== null && row.resent_at > earliest) {
      return yield* new TransferResendTooSoon({
        transfer_id,
        resent_at: row.resent_at,
        retry_after: Math.ceil((row.resent_at - earliest) / 1000)
      })
    }
    yield* outbox.room(caller.account_id, row.recipient_email)
    const token = randomBytes(32).toString("hex")
    const letter = yield* outbox.requiredLetter(
      letterOf(invitedOf(row), { caused_by: caller.account_id, n: row.letters + 1, token }, info)
    )
    const renewed = statement(
      sql`UPDATE tollgate_transfers SET token_hash = ${secret.hash("transfer_invite", token)}, letters = letters + 1,
        resent_at = ${now}, last_sent_at = ${now}, updated_at = ${now}
        WHERE id = ${transfer_id} AND status = 'pending' AND letters = ${row.letters} RETURNING id`,
      1
    )
    return yield* afterCommit(escrow.update(renewed, [letter]), outbox.wake).pipe(
      Effect.zipRight(reading.get(transfer_id)),
      Effect.catchTag("Conflict", () => resend(request))
    )
  })

  return { create, revoke, resend }
}

/** Stored with a transfer, to tell whether a later request of the same key is the same: the form must not change. */
const hashOf = (draft: Draft): string =>
  createHash("sha256")
    .update(JSON.stringify([`${draft.amount}`, draft.recipient_email, draft.kind, draft.reason, draft.message]))
    .digest("hex")

/** What the ledger's refusal of an escrow means for the sender. */
const refused = (
  refusal: Exclude<Refusal, Conflict> | BooksUnavailable,
  billing_account_id: BillingAccountId,
  { amount }: Draft
) => {
  switch (refusal._tag) {
    case "InsufficientCredits":
      return new TransferInsufficientCredits({ available: refusal.available, required: amount })
    case "InsufficientGiftable":
      return new TransferInsufficientGiftable({ giftable: refusal.giftable, required: amount })
    case "AccountInactive":
      return new BillingAccountInactive({ billing_account_id })
    case "BooksUnavailable":
      return refusal
    default:
      return Effect.die(refusal)
  }
}
