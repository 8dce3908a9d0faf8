/** The sender's operations: create and revoke a transfer, and resend its invitation. */
import { Clock, Duration, Effect } from "effect"
import { createHash, randomBytes } from "node:crypto"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, BillingAccountId } from "../../kernel/Ids.ts"
import type { Refusal } from "../../books/ledger/rules/Transaction.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { Conflict, NewRow } from "./Escrow.ts"
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
import type { Row } from "./Reading.ts"
import { draftOf } from "./Transfer.ts"
import { judge } from "./States.ts"
import type { Draft } from "./Transfer.ts"
import type { TransferId } from "./States.ts"
import type { Parts, TransferOf, TransfersContract } from "./Transfers.ts"

/** The lifetime of a pending transfer. */
export const lifetime = Duration.days(30)
/** The minimum time between resends of an invitation. */
export const resendPause = Duration.hours(12)

export const make = (parts: Parts) => ({
  create: create(parts),
  revoke: revoke(parts),
  resend: resend(parts)
})

const create = (parts: Parts): TransfersContract["create"] =>
  Effect.fn("Transfers.create")(function* (request) {
    const { dailyLimit, escrow, outbox, reading, tenants, waker } = parts
    const { caller, key } = request
    yield* tenants.mayManage(caller)
    const draft = yield* draftOf(request.transfer)
    const account = Ids.billingAccountOf(caller.tenant_id)
    const request_hash = hashOf(draft)
    const made = yield* findReplay(parts, account, key, request_hash)
    if (made !== undefined) return made
    const [sender] = yield* tenants.named([caller.account_id])
    // Rejects an unverified address as well, because it could be verified while the transfer is pending.
    if (sender?.email === draft.recipient_email) return yield* new TransferSelf()
    yield* dailyLimit.check(account)
    const { beside, row } = yield* prepareTransfer(parts, {
      draft,
      account,
      sender: { account_id: caller.account_id, name: sender?.name ?? "Another user" },
      idempotency_key: key,
      request_hash
    })
    const begun = afterCommit(escrow.begin(row, beside), Effect.zipRight(outbox.wake, waker.wake)).pipe(
      Effect.zipRight(reading.byId(row.id)),
      Effect.map((written) => ({ created: true, transfer: transferOf(written!) }))
    )
    return yield* Effect.catchAll(begun, (refusal) =>
      // Any failure may mean that an identical request ran concurrently. If so, returns that request's transfer.
      Effect.flatMap(findReplay(parts, account, key, request_hash), (concurrent) =>
        concurrent !== undefined
          ? Effect.succeed(concurrent)
          : // A concurrent email or transfer reached a limit, so the creation is retried.
            refusal._tag === "Conflict"
            ? create(parts)(request)
            : senderError(refusal, account, draft)
      )
    )
  })

/** Finds the transfer that an earlier request with this key created. Fails if that request differed. */
const findReplay = Effect.fnUntraced(function* (
  { current, reading, sql }: Parts,
  account: BillingAccountId,
  key: string,
  request_hash: string
) {
  const row = yield* reading.one(sql`t.billing_account_id = ${account} AND t.idempotency_key = ${key}`)
  if (row === undefined) return undefined
  if (row.request_hash !== request_hash) return yield* new TransferKeyReused({ transfer_id: row.id })
  return { created: false, transfer: transferOf((yield* current(sql`t.id = ${row.id}`))!) }
})

interface Order {
  readonly draft: Draft
  readonly account: BillingAccountId
  readonly sender: { readonly account_id: AccountId; readonly name: string }
  readonly idempotency_key: string
  readonly request_hash: string
}

/** Prepares a new transfer's row and the statements that enforce its limits, send its invitation and notify its recipient. */
const prepareTransfer = Effect.fnUntraced(function* (parts: Parts, order: Order) {
  const { dailyLimit, info, outbox, secret, tenants } = parts
  const { account, draft, idempotency_key, request_hash, sender } = order
  const now = yield* Clock.currentTimeMillis
  const id = Ids.at("trf", now) as TransferId
  const token = randomBytes(32).toString("hex")
  const expires_at = now + Duration.toMillis(lifetime)
  const invited: Invited = { ...draft, id, sender_name: sender.name, expires_at }
  const words = letterOf(invited, { caused_by: sender.account_id, n: 1, token }, info)
  const recipient = yield* tenants.accountOfEmail(draft.recipient_email)
  if (recipient === undefined) yield* outbox.room(sender.account_id, draft.recipient_email)
  const letter = yield* recipient === undefined ? outbox.requiredLetter(words) : outbox.letter(words)
  const row: NewRow = {
    ...draft,
    id,
    billing_account_id: account,
    sender_account_id: sender.account_id,
    recipient_account_id: recipient?.account_id ?? null,
    token_hash: secret.hash("transfer_invite", token),
    idempotency_key,
    request_hash,
    created_at: now,
    expires_at
  }
  const beside = [
    dailyLimit.condition(account, now),
    letter,
    ...(recipient === undefined ? [] : [receivedNotice(recipient.account_id, invited, now)])
  ]
  return { row, beside }
})

/** Finds a transfer sent by the caller's tenant. Fails unless the caller may manage the tenant. */
const ofTenant = Effect.fnUntraced(function* ({ current, sql, tenants }: Parts, { caller, transfer_id }: TransferOf) {
  const row = yield* current(sql`t.id = ${transfer_id}`)
  if (row?.billing_account_id !== Ids.billingAccountOf(caller.tenant_id)) {
    return yield* new TransferNotFound({ transfer_id })
  }
  yield* tenants.mayManage(caller)
  return row
})

const revoke = (parts: Parts): TransfersContract["revoke"] =>
  Effect.fn("Transfers.revoke")(function* (request) {
    const { escrow, reading } = parts
    const { transfer_id } = request
    const row = yield* ofTenant(parts, request)
    if (judge(row.status, "revoke") !== "make") return yield* new TransferNotPending({ transfer_id, state: row.status })
    return yield* escrow.end(row, "revoke").pipe(
      Effect.zipRight(reading.get(transfer_id)),
      // A concurrent move ended the transfer first, so the request is reevaluated in the new state.
      Effect.catchTags({ Conflict: () => revoke(parts)(request), TransferInvalid: Effect.die })
    )
  })

const resend = (parts: Parts): TransfersContract["resend"] =>
  Effect.fn("Transfers.resend")(function* (request) {
    const { escrow, info, outbox, reading, secret, sql } = parts
    const { caller, transfer_id } = request
    const row = yield* ofTenant(parts, request)
    if (row.status !== "pending") return yield* new TransferNotPending({ transfer_id, state: row.status })
    const now = yield* Clock.currentTimeMillis
    yield* mayResend(row, now)
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
      Effect.catchTag("Conflict", () => resend(parts)(request))
    )
  })

const mayResend = ({ id: transfer_id, resent_at }: Row, now: number): Effect.Effect<void, TransferResendTooSoon> => {
  const earliest = now - Duration.toMillis(resendPause)
  if (resent_at === null || resent_at <= earliest) return Effect.void
  const retry_after = Math.ceil((resent_at - earliest) / 1000)
  return new TransferResendTooSoon({ transfer_id, resent_at, retry_after })
}

/** Hashes a request. Later requests with the same key are compared with the saved hash, so the format must not change. */
const hashOf = (draft: Draft): string =>
  createHash("sha256")
    .update(JSON.stringify([`${draft.amount}`, draft.recipient_email, draft.kind, draft.reason, draft.message]))
    .digest("hex")

/** Converts a ledger error to an error for the sender. */
const senderError = (
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
