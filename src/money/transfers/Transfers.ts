/**
 * Sends credit from one user to another. The amount is held in escrow until the recipient accepts or declines it, the sender revokes it, or 30 days pass.
 *
 * Where the specification is silent:
 * - In a shared tenant, owners and admins send, revoke and resend, and every member may read. Accepted credit is always added to the recipient's home
 *   tenant, regardless of the tenant of their token.
 * - `GET /v1/transfers` lists the transfers to the caller's verified address, even before they are bound. For anyone else but the sender and
 *   the members of the sending tenant, reading a transfer returns 404. Only the recipient may accept, decline or attach it; others get 403
 *   `email_mismatch`.
 * - Idempotency keys are scoped to a tenant and stored with the transfer. Requests are compared after rounding and trimming, so 1.005 and 1.01
 *   are equal amounts.
 * - A transfer to the sender's own address is refused, even if that address is not verified yet. If an admin of a shared tenant sends credit to its
 *   owner, sender and recipient are one balance. The transfer is booked like any other: escrow, then release.
 * - A tenant may create 1,000 transfers in 24 hours (`transfer_limits` in the configuration), regardless of their outcome. Further transfers are
 *   rejected with 429 `too_many_transfers` and Retry-After. A pending transfer expires after 30 days, so a tenant never has more than 31,000 pending
 *   transfers.
 * - While the sender owes money for a refunded or disputed payment, a pending transfer cannot be accepted (422 `transfer_invalid`). Otherwise, the
 *   recipient would keep credit that was taken back from the sender. The transfer remains pending. If it is returned, its credit pays the debt.
 * - A job expires transfers. A due transfer is also expired if it is read before the job runs. Sender and recipient are notified.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Effect, Layer } from "effect"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import type { TooManyLetters } from "../../people/mail/Problems.ts"
import type { EmailMismatch, InsufficientRole } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import * as DailyLimit from "./DailyLimit.ts"
import * as Escrow from "./Escrow.ts"
import * as Expiry from "./Expiry.ts"
import { TransferNotFound } from "./Problems.ts"
import type {
  BillingAccountInactive,
  TooManyTransfers,
  TransferInsufficientCredits,
  TransferInsufficientGiftable,
  TransferInvalid,
  TransferInviteNotFound,
  TransferKeyReused,
  TransferNotPending,
  TransferResendTooSoon,
  TransferSelf
} from "./Problems.ts"
import * as Reading from "./Reading.ts"
import { transferOf } from "./Reading.ts"
import * as Receiving from "./Receiving.ts"
import * as Sending from "./Sending.ts"
import { TransferLimits } from "./Settings.ts"
import type { NewTransfer, Transfer, TransferPage, TransferPreview, TransferQuery } from "./Transfer.ts"
import type { TransferId } from "./States.ts"

/** Dependencies shared by sending and receiving. */
export interface Parts {
  readonly sql: SqlClient
  readonly secret: DeploymentSecret["Type"]
  readonly outbox: Outbox["Type"]
  readonly tenants: Tenants["Type"]
  readonly info: ServiceInfo["Type"]
  readonly waker: Loop.Waker
  readonly reading: Reading.Reading
  readonly escrow: Escrow.Escrow
  readonly current: Expiry.Expiry["current"]
  readonly dailyLimit: DailyLimit.DailyLimit
}

export interface TransferOf {
  readonly caller: Actor
  readonly transfer_id: TransferId
}

/** Amounts are in nano-USD; times are Unix times in milliseconds. Only an owner or admin may send for a tenant. */
export interface TransfersContract {
  /**
   * Moves the amount from the caller's tenant into escrow and sends an invitation. `key` is the Idempotency-Key: a repeated request returns the
   * transfer in its current state (`created: false`) and moves nothing. Once the caller has reached the email limit, a recipient with an account
   * receives only a notification. A transfer to any other address then fails.
   */
  readonly create: (request: {
    readonly caller: Actor
    readonly key: string
    readonly transfer: NewTransfer
  }) => Effect.Effect<
    { readonly created: boolean; readonly transfer: Transfer },
    | InsufficientRole
    | TransferInvalid
    | TransferSelf
    | TransferKeyReused
    | TransferInsufficientCredits
    | TransferInsufficientGiftable
    | BillingAccountInactive
    | TooManyTransfers
    | TooManyLetters
    | BooksUnavailable
  >
  /** Reads a page of the transfers that the caller's tenant sent, newest first. */
  readonly sent: (request: { readonly caller: Actor } & TransferQuery) => Effect.Effect<TransferPage>
  /** Returns the credit to the tenant that sent it. */
  readonly revoke: (
    request: TransferOf
  ) => Effect.Effect<Transfer, InsufficientRole | TransferNotFound | TransferNotPending | BooksUnavailable>
  /** Sends a new link by email, at most once every 12 hours. The previous link stops working. */
  readonly resend: (
    request: TransferOf
  ) => Effect.Effect<
    Transfer,
    InsufficientRole | TransferNotFound | TransferNotPending | TransferResendTooSoon | TooManyLetters | BooksUnavailable
  >
  /** Reads a page of the transfers to the caller's verified address, newest first. */
  readonly received: (request: { readonly caller: Actor } & TransferQuery) => Effect.Effect<TransferPage>
  /** Reads a transfer for its recipient, its sender, or a member of the tenant that sent it. */
  readonly find: (request: TransferOf) => Effect.Effect<Transfer, TransferNotFound>
  /** Moves the credit to the caller's home tenant. Accepting an accepted transfer returns it unchanged. */
  readonly accept: (
    request: TransferOf
  ) => Effect.Effect<
    Transfer,
    TransferNotFound | EmailMismatch | TransferNotPending | TransferInvalid | BooksUnavailable
  >
  /** Returns the credit to the sender. Declining a declined transfer returns it unchanged. */
  readonly decline: (
    request: TransferOf
  ) => Effect.Effect<Transfer, TransferNotFound | EmailMismatch | TransferNotPending | BooksUnavailable>
  /** Returns a preview of the transfer to anyone who has the invitation's token. */
  readonly preview: (request: { readonly token: string }) => Effect.Effect<TransferPreview, TransferInviteNotFound>
  /** Binds the transfer to the caller's account. No credit moves. */
  readonly attach: (request: {
    readonly caller: Actor
    readonly token: string
  }) => Effect.Effect<Transfer, TransferInviteNotFound | EmailMismatch | TransferNotPending | BooksUnavailable>
  /**
   * Expires all due transfers and returns their number. Reading a due transfer also expires it, so reads are correct without the
   * job.
   */
  readonly expire: Effect.Effect<number, BooksUnavailable>
  /** The job that expires transfers on time. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export class Transfers extends Context.Tag("tollgate/transfers/Transfers")<Transfers, TransfersContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Transfers, make))
  static readonly layerJobs = Loop.layer(Transfers, ({ job }) => [job])
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const tenants = yield* Tenants
  const waker = yield* Loop.waker
  const reading = Reading.make(sql, tenants)
  const escrow = Escrow.make({ sql, writer: yield* Writer, reading })
  const { current, expireDue, job } = Expiry.make(reading, escrow, waker)
  const parts: Parts = {
    sql,
    tenants,
    waker,
    reading,
    escrow,
    current,
    dailyLimit: DailyLimit.make(sql, yield* TransferLimits),
    secret: yield* DeploymentSecret,
    outbox: yield* Outbox,
    info: yield* ServiceInfo
  }

  const page = Effect.fnUntraced(function* (whose: Fragment, { page, per_page, status }: TransferQuery) {
    // If the books are not writable, due transfers are shown as pending.
    yield* Effect.catchAll(expireDue, () => Effect.void)
    const wanted = status === undefined ? whose : sql`${whose} AND t.status = ${status}`
    return yield* reading.page(wanted, { page, per_page })
  })

  const sent: TransfersContract["sent"] = Effect.fn("Transfers.sent")(({ caller, ...query }) =>
    page(sql`t.billing_account_id = ${billingAccountOf(caller.tenant_id)}`, query)
  )

  const received: TransfersContract["received"] = Effect.fn("Transfers.received")(function* ({ caller, ...query }) {
    const email = yield* tenants.verifiedEmail(caller.account_id)
    return yield* page(sql`t.recipient_email = ${email ?? ""}`, query)
  })

  const find: TransfersContract["find"] = Effect.fn("Transfers.find")(function* ({ caller, transfer_id }) {
    const row = yield* current(sql`t.id = ${transfer_id}`)
    if (row === undefined) return yield* new TransferNotFound({ transfer_id })
    const isSender =
      row.sender_account_id === caller.account_id || row.billing_account_id === billingAccountOf(caller.tenant_id)
    const isRecipient = (yield* tenants.verifiedEmail(caller.account_id)) === row.recipient_email
    return isSender || isRecipient ? transferOf(row) : yield* new TransferNotFound({ transfer_id })
  })

  return {
    ...Sending.make(parts),
    ...Receiving.make(parts),
    sent,
    received,
    find,
    expire: Effect.map(expireDue, ({ due, failed }) => due - failed),
    job
  } satisfies TransfersContract
})

/** Invalidates pending transfers' links, because the secret changed. The transfers do not change. */
export const transferLinksEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_transfers WHERE status = 'pending' AND expires_at > ${now}`,
  statements: () => [],
  notice: (n) =>
    `the links of ${n} pending transfers no longer work; recipients still find the transfers after signing in, and senders can resend the links`
}
