/**
 * Credit that one person sends to another. It waits in escrow until the recipient accepts or declines, the sender revokes, or thirty
 * days have passed.
 *
 * Where the specification is silent:
 * - In a shared tenant, owners and admins send, revoke and resend; every member may look. Accepted credit lands on the recipient's home
 *   tenant, whichever tenant their token is for.
 * - `GET /v1/transfers` lists what was sent to the caller's verified address, bound or not. To a stranger a transfer is 404 when read, and
 *   403 `email_mismatch` when they try to accept, decline or attach it.
 * - The record of an Idempotency-Key is the transfer's own row; keys are a tenant's own and are kept as long as the transfer is. The
 *   same request is the same after rounding and trimming: 1.005 and 1.01 are one.
 * - A transfer to one's own address is refused before that is verified too. One that reaches the balance that it came from (an admin of
 *   a shared tenant sends to its owner) is booked as any other: escrow, then release.
 * - A transfer ends at its time by itself, and before it is looked at. Both ends are told by a notification.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Effect, Layer } from "effect"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/Ending.ts"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { Writer } from "../../books/ledger/Writer.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import type { TooManyLetters } from "../../people/mail/Problems.ts"
import type { EmailMismatch, InsufficientRole } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import * as Escrow from "./Escrow.ts"
import * as Expiry from "./Expiry.ts"
import { TransferNotFound } from "./Problems.ts"
import type {
  BillingAccountInactive,
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
import type { NewTransfer, Transfer, TransferPage, TransferPreview, TransferQuery } from "./Transfer.ts"
import type { TransferId } from "./States.ts"

/** What sending and receiving are made of. */
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
}

/** A transfer, and who acts on it. */
export interface TransferOf {
  readonly caller: Actor
  readonly transfer_id: TransferId
}

/** Amounts are nano-USD, times milliseconds since 1970. Whoever sends acts for their tenant as its owner or admin. */
export interface TransfersContract {
  /**
   * Moves the amount from the caller's tenant into escrow and mails an invitation. `key` names the request, 16 characters or more:
   * the same one again gives the transfer as it is now (`created: false`) and moves nothing. Where the caller has caused too many
   * letters, a recipient who has an account gets a notification alone, and a transfer to anybody else is refused.
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
    | TooManyLetters
    | BooksUnavailable
  >
  /** A page of those that the caller's tenant sent, newest first. */
  readonly sent: (request: { readonly caller: Actor } & TransferQuery) => Effect.Effect<TransferPage>
  /** The credit goes back to the tenant that sent it. */
  readonly revoke: (
    request: TransferOf
  ) => Effect.Effect<Transfer, InsufficientRole | TransferNotFound | TransferNotPending | BooksUnavailable>
  /** Mails a new link; the one before works no more. Once in 12 hours. */
  readonly resend: (
    request: TransferOf
  ) => Effect.Effect<
    Transfer,
    InsufficientRole | TransferNotFound | TransferNotPending | TransferResendTooSoon | TooManyLetters | BooksUnavailable
  >
  /** A page of those that were sent to the caller's verified address, newest first. */
  readonly received: (request: { readonly caller: Actor } & TransferQuery) => Effect.Effect<TransferPage>
  /** For the recipient, the sender, and the members of the tenant that sent it. */
  readonly find: (request: TransferOf) => Effect.Effect<Transfer, TransferNotFound>
  /** The credit lands on the caller's home tenant. Accepting again gives the transfer again. */
  readonly accept: (
    request: TransferOf
  ) => Effect.Effect<
    Transfer,
    TransferNotFound | EmailMismatch | TransferNotPending | TransferInvalid | BooksUnavailable
  >
  /** The credit goes back. Declining again gives the transfer again. */
  readonly decline: (
    request: TransferOf
  ) => Effect.Effect<Transfer, TransferNotFound | EmailMismatch | TransferNotPending | BooksUnavailable>
  /** What is shown of a transfer to whoever holds the link. */
  readonly preview: (request: { readonly token: string }) => Effect.Effect<TransferPreview, TransferInviteNotFound>
  /** Binds the transfer to the caller's account; no credit moves. */
  readonly attach: (request: {
    readonly caller: Actor
    readonly token: string
  }) => Effect.Effect<Transfer, TransferInviteNotFound | EmailMismatch | TransferNotPending | BooksUnavailable>
  /** Ends the transfers that are past their time; gives how many. A transfer that is read is ended first, so reading needs no job. */
  readonly expire: Effect.Effect<number, BooksUnavailable>
  /** Ends each transfer when it expires. `layerJobs` runs it. */
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
  const escrow = Escrow.make(sql, yield* Writer, reading)
  const { current, expireDue, job } = Expiry.make(reading, escrow, waker)
  const parts: Parts = {
    sql,
    tenants,
    waker,
    reading,
    escrow,
    current,
    secret: yield* DeploymentSecret,
    outbox: yield* Outbox,
    info: yield* ServiceInfo
  }

  const page = Effect.fnUntraced(function* (whose: Fragment, { page, per_page, status }: TransferQuery) {
    // While the books cannot be written, a transfer that is due is given as it was.
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

/** Under another secret a pending transfer stays as it is: only the link in its letter leads nowhere. */
export const transferLinksEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_transfers WHERE status = 'pending' AND expires_at > ${now}`,
  statements: () => [],
  notice: (n) =>
    `${n} pending transfers stay as they are, but their links lead nowhere: recipients find them after signing in, senders can resend`
}
