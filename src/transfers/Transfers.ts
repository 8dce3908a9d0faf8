/**
 * Credit on its way from one person to another. Each move stands in one transaction with the credit that it moves, and is
 * guarded by the state that it starts from; so whatever races, a transfer ends once and its escrow goes one way.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Context, Duration, Effect, Either, Layer } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
import type { Ending } from "../auth/DeploymentSecret.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import type { Caller } from "../kernel/Caller.ts"
import * as Loop from "../kernel/Loop.ts"
import { masked } from "../kernel/Email.ts"
import * as Ids from "../kernel/Ids.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import { toDay } from "../kernel/Moment.ts"
import { fromRow, toDecimal } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { paginated } from "../kernel/Page.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { Writer } from "../ledger/Writer.ts"
import { IdempotencyKeyReused } from "../idempotency/Problems.ts"
import { shownName } from "../mail/Letter.ts"
import { Outbox } from "../mail/Outbox.ts"
import type { Letter } from "../mail/Outbox.ts"
import type { TooManyLetters } from "../mail/Problems.ts"
import { notice } from "../notifications/Notification.ts"
import { manages } from "../tenants/Organisation.ts"
import { EmailMismatch, InsufficientRole } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import {
  BillingAccountInactive,
  TransferInsufficientCredits,
  TransferInsufficientGiftable,
  TransferInvalid,
  TransferInviteNotFound,
  TransferNotFound,
  TransferNotPending,
  TransferResendTooSoon,
  TransferSelf
} from "./Problems.ts"
import { draftOf, judge, moves } from "./Transfer.ts"
import type {
  Draft,
  Move,
  NewTransfer,
  Transfer,
  TransferId,
  TransferPage,
  TransferPreview,
  TransferQuery
} from "./Transfer.ts"

export interface TransfersContract {
  /**
   * Puts the amount into escrow and mails an invitation. `key` names the request: the same one again answers the transfer as it is
   * now (`created: false`) and moves nothing. `literal` is the amount as it was written. Where the caller has caused too many
   * letters, a recipient who has an account is told by a notification alone, and a transfer to anybody else is refused.
   */
  readonly create: (
    caller: Caller,
    key: string,
    body: NewTransfer,
    literal: string
  ) => Effect.Effect<
    { readonly created: boolean; readonly transfer: Transfer },
    | InsufficientRole
    | TransferInvalid
    | TransferSelf
    | IdempotencyKeyReused
    | TransferInsufficientCredits
    | TransferInsufficientGiftable
    | BillingAccountInactive
    | TooManyLetters
  >
  /** Those that the tenant sent, newest first. */
  readonly sent: (tenant: TenantId, query: TransferQuery) => Effect.Effect<TransferPage>
  readonly revoke: (
    caller: Caller,
    id: TransferId
  ) => Effect.Effect<Transfer, InsufficientRole | TransferNotFound | TransferNotPending>
  /** Mails a new link; the one before works no more. */
  readonly resend: (
    caller: Caller,
    id: TransferId
  ) => Effect.Effect<
    Transfer,
    InsufficientRole | TransferNotFound | TransferNotPending | TransferResendTooSoon | TooManyLetters
  >
  /** Those that were sent to the account's verified address, newest first. */
  readonly received: (account: AccountId, query: TransferQuery) => Effect.Effect<TransferPage>
  /** For the recipient, and for the sender. */
  readonly find: (caller: Caller, id: TransferId) => Effect.Effect<Transfer, TransferNotFound>
  /** The credit lands on the recipient's home tenant. */
  readonly accept: (
    account: AccountId,
    id: TransferId
  ) => Effect.Effect<Transfer, TransferNotFound | EmailMismatch | TransferNotPending | TransferInvalid>
  readonly decline: (
    account: AccountId,
    id: TransferId
  ) => Effect.Effect<Transfer, TransferNotFound | EmailMismatch | TransferNotPending>
  /** What may be shown of a transfer to whoever holds the link. */
  readonly preview: (token: string) => Effect.Effect<TransferPreview, TransferInviteNotFound>
  /** Binds the transfer to the account; no money moves. */
  readonly attach: (
    account: AccountId,
    token: string
  ) => Effect.Effect<Transfer, TransferInviteNotFound | EmailMismatch | TransferNotPending>
  /** Ends the transfers that are past their time; gives how many. A transfer that is read is ended first, so reading needs no job. */
  readonly expire: Effect.Effect<number>
  /** Ends each transfer when it expires. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export const lifetime = Duration.days(30)
export const resendPause = Duration.hours(12)

/** As logs and metrics show the loop that ends them. */
const loopName = "transfers"
/** How long that loop waits at most: a timer of the process holds no thirty days. */
const pauseMax = Duration.days(1)

export class Transfers extends Context.Tag("tollgate/transfers/Transfers")<Transfers, TransfersContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Transfers, make))
  static readonly layerJobs = Loop.layer(Transfers, ({ job }) => [job])
}

interface Row {
  readonly id: TransferId
  readonly billing_account_id: string
  readonly sender_account_id: AccountId
  readonly sender_name: string | null
  readonly sender_email: string | null
  readonly recipient_email: string
  readonly recipient_account_id: AccountId | null
  readonly kind: Transfer["kind"]
  readonly amount: string
  readonly reason: Transfer["reason"]
  readonly message: string | null
  readonly status: Transfer["status"]
  readonly request_hash: string
  readonly letters: number
  readonly created_at: number
  readonly updated_at: number
  readonly expires_at: number
  readonly last_sent_at: number
  readonly resent_at: number | null
  readonly ended_at: number | null
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const outbox = yield* Outbox
  const tenants = yield* Tenants
  const { public_url, service_name } = yield* ServiceInfo

  // ---- reading ------------------------------------------------------------------------------------------------------------

  const columns =
    sql.literal(`t.id, t.billing_account_id, t.sender_account_id, t.recipient_email, t.recipient_account_id,
    t.kind, CAST(t.amount AS TEXT) AS amount, t.reason, t.message, t.status, t.request_hash, t.letters, t.created_at,
    t.updated_at, t.expires_at, t.last_sent_at, t.resent_at, t.ended_at`)

  const select = Effect.fnUntraced(function* (condition: Fragment, limit = 1, offset = 0) {
    const rows = yield* sql<Omit<Row, "sender_name" | "sender_email">>`
      SELECT ${columns} FROM tollgate_transfers t WHERE ${condition} ORDER BY t.id DESC LIMIT ${limit} OFFSET ${offset}`
    const senders = yield* tenants.named([...new Set(rows.map(({ sender_account_id }) => sender_account_id))])
    return rows.map((row): Row => {
      const sender = senders.find(({ id }) => id === row.sender_account_id)
      return { ...row, sender_name: sender?.name ?? null, sender_email: sender?.email ?? null }
    })
  }, Effect.orDie)

  const one = (condition: Fragment) => Effect.map(select(condition), ([row]) => row)
  const byId = (id: TransferId) => one(sql`t.id = ${id}`)
  const byToken = (token: string) => sql`t.token_hash = ${secret.hash("transfer_invite", token)}`

  /** As it is now: one that is due is ended first. While that cannot be written it is shown as it was. */
  const current = Effect.fnUntraced(function* (condition: Fragment) {
    const row = yield* one(condition)
    if (row === undefined || row.status !== "pending") return row
    if (row.expires_at > (yield* Clock.currentTimeMillis)) return row
    yield* Effect.catchAll(expire(row), () => Effect.void)
    return yield* one(condition)
  })

  const page = Effect.fnUntraced(function* (condition: Fragment, { status, ...page }: TransferQuery) {
    yield* Effect.catchAll(endDue, () => Effect.void)
    const wanted = status === undefined ? condition : sql`${condition} AND t.status = ${status}`
    const [counted] = yield* Effect.orDie(
      sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_transfers t WHERE ${wanted}`
    )
    const rows = yield* select(wanted, page.per_page, (page.page - 1) * page.per_page)
    return paginated(page, counted?.n ?? 0, rows.map(shown))
  })

  // ---- moving -------------------------------------------------------------------------------------------------------------

  const submit = (statements: ReadonlyArray<Statement>) =>
    Effect.catchTag(writer.submit({ postings: [], statements }), "Conflict", () => Effect.fail("lost" as const)).pipe(
      Effect.catchAll((refusal) => (refusal === "lost" ? Effect.fail(refusal) : Effect.die(refusal)))
    )

  /**
   * Makes the move out of `pending`; fails with `lost` if the transfer was no longer in that state.
   */
  const end = Effect.fnUntraced(function* (
    row: Row,
    move: Move,
    recipient?: { readonly account: AccountId; readonly tenant: TenantId }
  ) {
    const now = yield* Clock.currentTimeMillis
    const to =
      moves[move].escrow === "recipient" && recipient !== undefined
        ? Ids.billingAccountOf(recipient.tenant)
        : row.billing_account_id
    const inTime = move === "expire" ? sql`expires_at <= ${now}` : sql`expires_at > ${now}`
    const bound = recipient?.account ?? row.recipient_account_id
    const told =
      move === "revoke" ? [bound] : move === "expire" ? [row.sender_account_id, bound] : [row.sender_account_id]
    const done = writer.submit({
      postings: [
        {
          _tag: "EndEscrow",
          source: moves[move].escrow === "recipient" ? "transfer_release" : "transfer_return",
          from: row.billing_account_id,
          to,
          amount: fromRow(row.amount),
          transfer: row.id,
          description:
            moves[move].escrow === "recipient"
              ? `${row.kind} from ${row.sender_name ?? "somebody"}`
              : `${row.kind} to ${row.recipient_email}: ${moves[move].to}`
        }
      ],
      statements: [
        statement(
          sql`UPDATE tollgate_transfers SET status = ${moves[move].to}, recipient_account_id = ${bound}, updated_at = ${now},
            ended_at = ${now} WHERE id = ${row.id} AND status = 'pending' AND ${inTime} RETURNING id`,
          1
        ),
        ...told.flatMap((account_id) =>
          account_id === null
            ? []
            : [
                notice(
                  {
                    account_id,
                    kind: "transfer_ended",
                    title: `A ${row.kind} of ${toDecimal(fromRow(row.amount))} credits was ${moves[move].to}`,
                    text:
                      moves[move].escrow === "recipient"
                        ? `${row.recipient_email} accepted it.`
                        : `It was for ${row.recipient_email}; the credit is back with its sender.`,
                    data: { transfer_id: row.id, status: moves[move].to }
                  },
                  now
                )
              ]
        )
      ]
    })
    yield* done.pipe(
      Effect.catchTags({
        Conflict: () => Effect.fail("lost" as const),
        // Its escrow has gone with its state; unless it has not, and the books are wrong.
        NotHeld: (refusal) =>
          Effect.flatMap(byId(row.id), (current) =>
            current?.status === "pending" ? Effect.die(refusal) : Effect.fail("lost" as const)
          ),
        BalanceTooLarge: () => new TransferInvalid({ message: "amount: the recipient's balance cannot hold so much" })
      }),
      Effect.catchAll((why) =>
        why === "lost" || why._tag === "TransferInvalid" || why._tag === "BooksUnavailable"
          ? Effect.fail(why)
          : Effect.die(why)
      )
    )
  })

  /** Ends one that is due. Lost to another look at the same moment, it is over all the same. */
  const expire = (row: Row): Effect.Effect<void, BooksUnavailable> =>
    Effect.catchAll(end(row, "expire"), (why) =>
      why === "lost" ? Effect.void : why._tag === "BooksUnavailable" ? Effect.fail(why) : Effect.die(why)
    )

  /** Ends those that are due, each by itself; answers how many there were, and how many of them could not be ended. */
  const endDue = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    let [due, failed] = [0, 0]
    let unavailable: BooksUnavailable | undefined
    let before = "~"
    for (;;) {
      const rows = yield* select(sql`t.status = 'pending' AND t.expires_at <= ${now} AND t.id < ${before}`, 100)
      if (rows.length === 0) return { due, failed }
      due += rows.length
      failed += yield* Loop.each(
        loopName,
        rows,
        ({ id }) => id,
        (row) =>
          unavailable !== undefined
            ? Effect.void
            : Effect.catchAll(expire(row), (error) => Effect.sync(() => (unavailable = error)))
      )
      // What fails for one then fails for all.
      if (unavailable !== undefined) return yield* unavailable
      before = rows.at(-1)!.id
    }
  })

  const expireAll: TransfersContract["expire"] = Effect.orDie(Effect.map(endDue, ({ due, failed }) => due - failed))

  /** What is due ends when it falls due; a new transfer never falls due before the ones that are waited for. */
  const turn = Effect.gen(function* () {
    const { failed } = yield* endDue
    const [next] = yield* sql<{
      at: number | null
    }>`SELECT min(expires_at) AS at FROM tollgate_transfers WHERE status = 'pending'`
    if (next?.at == null) return undefined
    if (failed > 0) return Duration.minutes(1)
    return Math.min(next.at - (yield* Clock.currentTimeMillis), Duration.toMillis(pauseMax))
  })
  const waker = yield* Loop.waker

  // ---- sender -------------------------------------------------------------------------------------------------------------

  const mayMove = Effect.fnUntraced(function* ({ account_id, tenant_id }: Caller) {
    const role = yield* tenants.roleOf(account_id, tenant_id)
    if (role === undefined || !manages(role)) return yield* new InsufficientRole()
  })

  const letterOf = (
    transfer: { readonly id: string; readonly kind: string; readonly amount: Nano; readonly message: string | null },
    recipient: string,
    sender: string,
    caused_by: AccountId,
    token: string,
    letter: number,
    expires_at: number
  ): Letter => {
    const from = shownName(sender, "Somebody")
    return {
      key: `transfer/${transfer.id}/${letter}`,
      to: recipient,
      caused_by,
      subject: `${from} sends you ${toDecimal(transfer.amount)} credits`,
      text: [
        `${from} sends you ${toDecimal(transfer.amount)} credits on ${service_name}, as a ${transfer.kind}.`,
        ...(transfer.message === null ? [] : [`"${transfer.message}"`]),
        `Sign in with this address to accept or decline:`,
        `${public_url}/transfer-invites/${token}`,
        `They go back to ${from} unless you accept by ${toDay(expires_at)}.`
      ].join("\n\n")
    }
  }

  const create: TransfersContract["create"] = Effect.fn("Transfers.create")(function* (caller, key, body, literal) {
    yield* mayMove(caller)
    const draft = yield* Either.match(draftOf(body, literal), { onLeft: Effect.fail, onRight: Effect.succeed })
    const billing_account_id = Ids.billingAccountOf(caller.tenant_id)
    const request_hash = hashOf(draft)

    const made = yield* replay(billing_account_id, key, request_hash)
    if (made !== undefined) return made
    const [sender] = yield* tenants.named([caller.account_id])
    // Their address counts before it is verified too: later it would be, with the transfer under way.
    if (sender?.email === draft.recipient_email) return yield* new TransferSelf()

    const now = yield* Clock.currentTimeMillis
    const token = randomBytes(32).toString("hex")
    const id = Ids.at("trf", now) as TransferId
    const expires_at = now + Duration.toMillis(lifetime)
    const recipient = yield* tenants.accountOfEmail(draft.recipient_email)
    const sender_name = sender?.name ?? "Somebody"
    const to = draft.recipient_email
    const words = letterOf({ id, ...draft }, to, sender_name, caller.account_id, token, 1, expires_at)
    if (recipient === undefined) yield* outbox.room(caller.account_id, to)
    const letter = yield* recipient === undefined ? outbox.requiredLetter(words) : outbox.letter(words)
    const submitted = yield* Effect.either(
      writer.submit({
        postings: [
          {
            _tag: "Escrow",
            account: billing_account_id,
            amount: draft.amount,
            transfer: id,
            description: `${draft.kind} to ${draft.recipient_email}`
          }
        ],
        statements: [
          statement(
            sql`INSERT INTO tollgate_transfers ${sql.insert({
              id,
              billing_account_id,
              sender_account_id: caller.account_id,
              ...draft,
              recipient_account_id: recipient?.account_id ?? null,
              status: "pending",
              token_hash: secret.hash("transfer_invite", token),
              idempotency_key: key,
              request_hash,
              letters: 1,
              created_at: now,
              updated_at: now,
              expires_at,
              last_sent_at: now
            })} ON CONFLICT DO NOTHING RETURNING id`,
            1
          ),
          letter,
          ...(recipient === undefined
            ? []
            : [
                notice(
                  {
                    account_id: recipient.account_id,
                    kind: "transfer_received",
                    title: `${sender_name} sends you ${toDecimal(draft.amount)} credits`,
                    text: `Accept the ${draft.kind} by ${toDay(expires_at)}, or it goes back.`,
                    data: { transfer_id: id }
                  },
                  now
                )
              ])
        ]
      })
    )
    if (Either.isLeft(submitted)) {
      // Whatever the refusal, the same request may have been faster: then its transfer is the answer.
      const faster = yield* replay(billing_account_id, key, request_hash)
      if (faster !== undefined) return faster
      switch (submitted.left._tag) {
        case "InsufficientCredits":
          return yield* new TransferInsufficientCredits()
        case "InsufficientGiftable":
          return yield* new TransferInsufficientGiftable()
        case "AccountInactive":
          return yield* new BillingAccountInactive()
        case "Conflict":
          // Another letter was faster, and there is no room for this one any more.
          return yield* create(caller, key, body, literal)
        default:
          return yield* Effect.die(submitted.left)
      }
    }
    yield* outbox.wake
    yield* waker.wake
    return { created: true, transfer: shown((yield* byId(id))!) }
  })

  const replay = Effect.fnUntraced(function* (billing_account_id: string, key: string, request_hash: string) {
    const row = yield* one(sql`t.billing_account_id = ${billing_account_id} AND t.idempotency_key = ${key}`)
    if (row === undefined) return undefined
    if (row.request_hash !== request_hash) return yield* new IdempotencyKeyReused()
    return { created: false, transfer: shown((yield* current(sql`t.id = ${row.id}`))!) }
  })

  const sent = (tenant: TenantId, query: TransferQuery) =>
    page(sql`t.billing_account_id = ${Ids.billingAccountOf(tenant)}`, query)

  const ofSender = Effect.fnUntraced(function* (caller: Caller, id: TransferId) {
    const row = yield* current(sql`t.id = ${id}`)
    if (row?.billing_account_id !== Ids.billingAccountOf(caller.tenant_id)) return yield* new TransferNotFound()
    yield* mayMove(caller)
    return row
  })

  const revoke: TransfersContract["revoke"] = Effect.fn("Transfers.revoke")(function* (caller, id) {
    const row = yield* ofSender(caller, id)
    if (judge(row.status, "revoke") !== "make") return yield* new TransferNotPending()
    return yield* Effect.matchEffect(end(row, "revoke"), {
      onFailure: (why) => (why === "lost" ? revoke(caller, id) : Effect.die(why)),
      onSuccess: () => now(id)
    })
  })

  const resend: TransfersContract["resend"] = Effect.fn("Transfers.resend")(function* (caller, id) {
    const row = yield* ofSender(caller, id)
    if (row.status !== "pending") return yield* new TransferNotPending()
    const at = yield* Clock.currentTimeMillis
    const earliest = at - Duration.toMillis(resendPause)
    if (row.resent_at !== null && row.resent_at > earliest) {
      return yield* new TransferResendTooSoon({ retry_after: Math.ceil((row.resent_at - earliest) / 1000) })
    }
    yield* outbox.room(caller.account_id, row.recipient_email)
    const token = randomBytes(32).toString("hex")
    const letter = yield* outbox.requiredLetter(
      letterOf(
        { ...row, amount: fromRow(row.amount) },
        row.recipient_email,
        row.sender_name ?? "Somebody",
        caller.account_id,
        token,
        row.letters + 1,
        row.expires_at
      )
    )
    const done = submit([
      statement(
        sql`UPDATE tollgate_transfers SET token_hash = ${secret.hash("transfer_invite", token)}, letters = letters + 1,
          resent_at = ${at}, last_sent_at = ${at}, updated_at = ${at}
          WHERE id = ${id} AND status = 'pending' AND letters = ${row.letters} RETURNING id`,
        1
      ),
      letter
    ])
    return yield* Effect.matchEffect(done, {
      onFailure: () => resend(caller, id),
      onSuccess: () => Effect.zipRight(outbox.wake, now(id))
    })
  })

  const now = (id: TransferId) => Effect.map(byId(id), (row) => shown(row!))

  // ---- recipient ----------------------------------------------------------------------------------------------------------

  const received = Effect.fn("Transfers.received")(function* (account: AccountId, query: TransferQuery) {
    const email = yield* tenants.verifiedEmail(account)
    return yield* page(sql`t.recipient_email = ${email ?? ""}`, query)
  })

  const find = Effect.fn("Transfers.find")(function* (caller: Caller, id: TransferId) {
    const row = yield* current(sql`t.id = ${id}`)
    if (row === undefined) return yield* new TransferNotFound()
    const isSender =
      row.sender_account_id === caller.account_id || row.billing_account_id === Ids.billingAccountOf(caller.tenant_id)
    const isRecipient = (yield* tenants.verifiedEmail(caller.account_id)) === row.recipient_email
    return isSender || isRecipient ? shown(row) : yield* new TransferNotFound()
  })

  const settleAs = (move: "accept" | "decline") =>
    Effect.fnUntraced(function* (
      account: AccountId,
      id: TransferId
    ): Effect.fn.Return<Transfer, TransferNotFound | EmailMismatch | TransferNotPending | TransferInvalid> {
      const row = yield* current(sql`t.id = ${id}`)
      if (row === undefined) return yield* new TransferNotFound()
      const email = yield* tenants.verifiedEmail(account)
      if (email !== row.recipient_email) return yield* new EmailMismatch()
      const verdict = judge(row.status, move)
      if (verdict === "refuse") return yield* new TransferNotPending()
      if (verdict === "again") return shown(row)
      const home = yield* tenants.accountOfEmail(email)
      const recipient = { account, tenant: home!.home_tenant_id }
      return yield* Effect.matchEffect(end(row, move, recipient), {
        onFailure: (why) =>
          why === "lost"
            ? settleAs(move)(account, id)
            : why._tag === "BooksUnavailable"
              ? Effect.die(why)
              : Effect.fail(why),
        onSuccess: () => now(id)
      })
    })

  const accept = Effect.fn("Transfers.accept")(settleAs("accept"))
  const decline = Effect.fn("Transfers.decline")((account: AccountId, id: TransferId) =>
    Effect.catchTag(settleAs("decline")(account, id), "TransferInvalid", Effect.die)
  )

  // ---- the link -----------------------------------------------------------------------------------------------------------

  const preview = Effect.fn("Transfers.preview")(function* (token: string) {
    const row = yield* current(byToken(token))
    if (row === undefined) return yield* new TransferInviteNotFound()
    const { amount, expires_at, kind, message, reason, status } = shown(row)
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

  const attach: TransfersContract["attach"] = Effect.fn("Transfers.attach")(function* (account, token) {
    const row = yield* current(byToken(token))
    if (row === undefined) return yield* new TransferInviteNotFound()
    if ((yield* tenants.verifiedEmail(account)) !== row.recipient_email) return yield* new EmailMismatch()
    if (row.status !== "pending") return yield* new TransferNotPending()
    if (row.recipient_account_id === account) return shown(row)
    const at = yield* Clock.currentTimeMillis
    const done = submit([
      statement(
        sql`UPDATE tollgate_transfers SET recipient_account_id = ${account}, updated_at = ${at}
          WHERE id = ${row.id} AND status = 'pending' RETURNING id`,
        1
      )
    ])
    return yield* Effect.matchEffect(done, { onFailure: () => attach(account, token), onSuccess: () => now(row.id) })
  })

  return {
    create,
    sent,
    revoke,
    resend,
    received,
    find,
    accept,
    decline,
    preview,
    attach,
    expire: expireAll,
    job: { name: loopName, turn, waker }
  } satisfies TransfersContract
})

const hashOf = (draft: Draft): string =>
  createHash("sha256")
    .update(JSON.stringify([`${draft.amount}`, draft.recipient_email, draft.kind, draft.reason, draft.message]))
    .digest("hex")

const shown = (row: Row): Transfer => {
  const ended = (status: Transfer["status"]) => (row.status === status ? row.ended_at : null)
  return {
    id: row.id,
    status: row.status,
    kind: row.kind,
    amount: fromRow(row.amount),
    reason: row.reason,
    message: row.message,
    sender: { account_id: row.sender_account_id, name: row.sender_name ?? "", email: row.sender_email ?? "" },
    recipient_email: row.recipient_email,
    recipient_account_id: row.recipient_account_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
    expires_at: row.expires_at,
    last_sent_at: row.last_sent_at,
    accepted_at: ended("accepted"),
    declined_at: ended("declined"),
    revoked_at: ended("revoked")
  }
}

/** Under another secret a pending transfer stays as it is: only the link in its letter leads nowhere. */
export const transferLinksEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_transfers WHERE status = 'pending' AND expires_at > ${now}`,
  statements: () => [],
  told: (n) =>
    `${n} pending transfers stay as they are, but their links lead nowhere: recipients find them after signing in, senders can resend`
}
