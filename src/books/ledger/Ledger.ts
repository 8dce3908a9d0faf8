/**
 * The books: billing accounts, their entries, and one operation for each posting. An operation is a transaction: if it succeeds, its changes are
 * durable, and if it fails, it has no effect. To combine several postings in one transaction, use `Writer`.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { BillingAccountId, TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { paginated } from "../../kernel/Page.ts"
import type { PageOf } from "../../kernel/Page.ts"
import { limitsOf } from "./Budgets.ts"
import { entriesAmong } from "./rows/RowLinks.ts"
import { ofCalls, ofSources } from "./rows/EntriesBySource.ts"
import type { EntriesFound, EntrySources } from "./rows/EntriesBySource.ts"
import { accountOf, accountSelection, accountsTable } from "./rows/Rows.ts"
import type { AccountRow } from "./rows/Rows.ts"
import type { BooksUnavailable, Conflict, RefusalByPosting } from "./rules/Problems.ts"
import type { Account, Entry, Limit, Posting, ResultByPosting, Statement } from "./rules/Transaction.ts"
import * as Verifications from "./audit/Verifications.ts"
import { Writer } from "./write/Writer.ts"

export interface EntryPage extends PageOf {
  readonly total_pages: number
  readonly total_records: number
  readonly records: ReadonlyArray<Entry>
}

/** The reserved and escrowed credit of all accounts, and the open calls. */
export interface Totals {
  readonly reserved: Nano
  readonly escrowed: Nano
  readonly open_calls: number
  /** The admission time of the oldest open call; `null` if no call is open. */
  readonly oldest_at: number | null
  /** The time when `verify` last found the books correct; `null` if it never did. `findings` is the number of findings of its last run. */
  readonly verified_at: number | null
  readonly findings: number
}

/** An operation's arguments: the fields of its posting, with an optional entry description. */
export type AskedOf<Tag extends Posting["_tag"]> = Words<Omit<Extract<Posting, { readonly _tag: Tag }>, "_tag">>
type Words<A> = A extends { readonly description: string }
  ? Omit<A, "description"> & { readonly description?: string }
  : A

/**
 * An operation. It commits a posting as a transaction. `beside` contains other modules' statements that commit or fail with the posting. Fails with
 * `Conflict` if one of them does not match its rows.
 */
export interface Operation<Tag extends Posting["_tag"]> {
  (asked: AskedOf<Tag>): Effect.Effect<ResultByPosting[Tag], RefusalByPosting[Tag] | BooksUnavailable>
  (
    asked: AskedOf<Tag>,
    beside: ReadonlyArray<Statement>
  ): Effect.Effect<ResultByPosting[Tag], RefusalByPosting[Tag] | Conflict | BooksUnavailable>
}

export interface LedgerContract {
  readonly open: Operation<"Open">
  readonly setStatus: Operation<"SetStatus">
  /** Credits an account from outside the books, for example with a purchase or a grant. */
  readonly credit: Operation<"Credit">
  /**
   * Takes back unreserved credit and returns the amount taken. A purchase is taken from giftable credit first, and a grant (`admin`) only from
   * granted credit. With `payment`, the account owes the remaining amount.
   */
  readonly takeBack: Operation<"TakeBack">
  /** Begins an allowance's next period and takes back the unused part of the last one (`Renewing`). */
  readonly renew: Operation<"Renew">
  /** Moves giftable credit of an active account into escrow for a transfer. */
  readonly escrow: Operation<"Escrow">
  /** Releases escrowed credit to the recipient (`transfer_release`) or returns it to the sender (`transfer_return`). */
  readonly endEscrow: Operation<"EndEscrow">
  /** Sets an API key's spending limit. The limit also counts earlier charges in the current period. `null` removes the limit. */
  readonly setLimit: Operation<"SetLimit">
  /** Creates a budget, changes its terms, or removes it (with `null`). */
  readonly setBudget: Operation<"SetBudget">
  /** Reserves credit for a call from the first source that can pay. `Gate.meter` both reserves and settles a call. */
  readonly reserve: Operation<"Reserve">
  /** Ends a call by releasing its reservation, charging its cost and recording its usage. Idempotent. */
  readonly settle: Operation<"Settle">
  readonly account: (id: BillingAccountId) => Effect.Effect<Option.Option<Account>>
  readonly accountOfTenant: (tenant: TenantId) => Effect.Effect<Option.Option<Account>>
  /** Reads accounts by id, in one query. Missing accounts are omitted. */
  readonly accounts: (ids: ReadonlyArray<BillingAccountId>) => Effect.Effect<ReadonlyMap<string, Account>>
  /**
   * Reads a page of entries, newest first, optionally filtered by source. Without a filter, all pages cost the same, because a page is a range of
   * entry numbers. With a filter, the cost grows with the number of entries that are not charges.
   */
  readonly entries: (id: BillingAccountId, page: PageOf, sources?: EntrySources) => Effect.Effect<EntryPage>
  /** Reads the current spending limits of API keys, by application. Applications without a limit are omitted. */
  readonly limits: (applications: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Limit>>
  /** Reads all accounts' entries with the source `purchase` and one of these references, in no particular order. */
  readonly purchases: (references: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Entry>>
  /** Computes the totals. The cost grows with the number of open calls and transfers, not with the number of accounts. */
  readonly totals: Effect.Effect<Totals>
}

export class Ledger extends Context.Tag("tollgate/ledger/Ledger")<Ledger, LedgerContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Ledger, make))
}

/** Builds an entry's public id. The number is padded, so that an account's ids sort in entry order. */
export const entryId = ({ billing_account_id, number }: Pick<Entry, "billing_account_id" | "number">): string =>
  `led_${billing_account_id.slice(billing_account_id.indexOf("_") + 1)}_${String(number).padStart(12, "0")}`

const descriptions: Readonly<Partial<Record<Posting["_tag"], string>>> = {
  Credit: "credit",
  TakeBack: "credit taken back",
  Renew: "allowance",
  Escrow: "transfer",
  EndEscrow: "transfer"
}

/**
 * The maximum number of filtered pages that are read concurrently. Until its index is built (`storage/engine/Indexes`), a filtered read scans the
 * entries of all accounts, and other requests also need connections.
 */
const scansMax = 2

const noStatements: ReadonlyArray<Statement> = []

interface Parts {
  readonly sql: SqlClient
  readonly writer: Writer["Type"]
  readonly scans: Effect.Semaphore
}

const make = Effect.gen(function* () {
  const parts: Parts = { sql: yield* SqlClient, writer: yield* Writer, scans: yield* Effect.makeSemaphore(scansMax) }
  const { sql, writer } = parts
  const accountById = account(parts)
  return {
    open: operation(writer, "Open"),
    setStatus: operation(writer, "SetStatus"),
    credit: operation(writer, "Credit"),
    takeBack: operation(writer, "TakeBack"),
    renew: operation(writer, "Renew"),
    escrow: operation(writer, "Escrow"),
    endEscrow: operation(writer, "EndEscrow"),
    setLimit: operation(writer, "SetLimit"),
    setBudget: operation(writer, "SetBudget"),
    reserve: operation(writer, "Reserve"),
    settle: operation(writer, "Settle"),
    account: accountById,
    accountOfTenant: (tenant) => accountById(billingAccountOf(tenant)),
    accounts: accounts(parts),
    entries: entries(parts),
    limits: (applications) => Effect.flatMap(Clock.currentTimeMillis, (now) => limitsOf(sql, applications, now)),
    purchases: purchases(parts),
    totals: totals(parts)
  } satisfies LedgerContract
})

const operation = <Tag extends Posting["_tag"]>(writer: Writer["Type"], _tag: Tag): Operation<Tag> => {
  const description = descriptions[_tag]
  return (asked: AskedOf<Tag>, statements: ReadonlyArray<Statement> = noStatements) => {
    const posting = (description === undefined
      ? { ...asked, _tag }
      : { description, ...asked, _tag }) as unknown as Posting
    return Effect.map(writer.submit({ postings: [posting], statements }), ([result]) => result) as Effect.Effect<
      ResultByPosting[Tag],
      RefusalByPosting[Tag] | BooksUnavailable
    >
  }
}

const account = ({ sql }: Parts): LedgerContract["account"] =>
  Effect.fn("Ledger.account")(function* (id) {
    const [row] =
      yield* sql<AccountRow>`SELECT ${sql.literal(accountSelection)} FROM ${sql.literal(accountsTable)} WHERE id = ${id}`
    return Option.map(Option.fromNullable(row), accountOf)
  }, Effect.orDie)

const accounts = ({ sql }: Parts): LedgerContract["accounts"] =>
  Effect.fn("Ledger.accounts")(function* (ids) {
    const rows = yield* sql<AccountRow>`SELECT ${sql.literal(accountSelection)} FROM ${sql.literal(accountsTable)}
      WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
    return new Map(rows.map((row) => [row.id, accountOf(row)]))
  }, Effect.orDie)

const entries = (parts: Parts): LedgerContract["entries"] => {
  const { scans, sql } = parts
  const accountById = account(parts)
  const pageOf = (page: PageOf, { rows, total }: EntriesFound) =>
    Effect.map(sql<EntryRow>`SELECT ${sql.literal(entrySelection)} FROM ${rows}`, (rows) =>
      paginated(page, total, rows.map(entryOf))
    )
  return Effect.fn("Ledger.entries")(function* (id, page, sources) {
    const total = Option.match(yield* accountById(id), { onNone: () => 0, onSome: ({ entries }) => entries })
    if (sources !== undefined) {
      const found = sources === "call" ? ofCalls(sql, id, total, page) : ofSources(sql, id, sources, page)
      return yield* scans.withPermits(1)(Effect.flatMap(found, (found) => pageOf(page, found)))
    }
    const newest = total - (page.page - 1) * page.per_page
    const oldest = Math.max(1, newest - page.per_page + 1)
    if (newest < 1) return paginated(page, total, [])
    const rows = yield* sql<EntryRow>`SELECT ${sql.literal(entrySelection)}
      FROM ${entriesAmong(sql, id, { from: oldest, to: newest + 1 })} ORDER BY e.number DESC`
    return paginated(page, total, rows.map(entryOf))
  }, Effect.orDie)
}

const purchases = ({ sql }: Parts): LedgerContract["purchases"] =>
  Effect.fn("Ledger.purchases")(function* (references) {
    const rows = yield* sql<EntryRow>`SELECT ${sql.literal(entrySelection)} FROM tollgate_ledger_entries e
      WHERE e.source = 'purchase' AND e.reference_id IN (SELECT value FROM json_each(${JSON.stringify(references)}))`
    return rows.map(entryOf)
  }, Effect.orDie)

const totals = ({ sql }: Parts): LedgerContract["totals"] =>
  Effect.gen(function* () {
    const [escrow] = yield* sql<{ escrowed: string }>`SELECT CAST(COALESCE(SUM(held), 0) AS TEXT) AS escrowed
      FROM tollgate_ledger_accounts WHERE held > 0`
    const [open] = yield* sql<{ reserved: string; calls: number; oldest: number | null }>`
      SELECT CAST(COALESCE(SUM(amount), 0) AS TEXT) AS reserved, count(*) AS calls, min(at) AS oldest
      FROM tollgate_ledger_reservations`
    const verification = yield* Verifications.last(sql)
    const held = verification?.findings === 0 ? verification : yield* Verifications.lastClean(sql)
    return {
      reserved: fromRow(open!.reserved),
      escrowed: fromRow(escrow!.escrowed),
      open_calls: open!.calls,
      oldest_at: open!.oldest,
      verified_at: held?.at ?? null,
      findings: verification?.findings ?? 0
    }
  }).pipe(Effect.orDie)

const entrySelection = `e.billing_account_id, e.number, e.type, CAST(e.amount AS TEXT) AS amount,
  CAST(e.balance AS TEXT) AS balance, CAST(e.giftable AS TEXT) AS giftable, e.source, e.reference_id, e.description, e.at`

interface EntryRow extends Omit<Entry, "amount" | "balance" | "giftable"> {
  readonly amount: string
  readonly balance: string
  readonly giftable: string
}

const entryOf = (row: EntryRow): Entry => ({
  ...row,
  amount: fromRow(row.amount),
  balance: fromRow(row.balance),
  giftable: fromRow(row.giftable)
})
