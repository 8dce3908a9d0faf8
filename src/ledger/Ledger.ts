/** The books, for reading: a billing account as it stands, and its entries. What changes them is the `Writer`. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import { billingAccountOf } from "../kernel/Ids.ts"
import type { BillingAccountId, TenantId } from "../kernel/Ids.ts"
import { fromRow } from "../kernel/Money.ts"
import { paginated } from "../kernel/Page.ts"
import type { PageOf } from "../kernel/Page.ts"
import { accountOf, accountSelection, bucketShift } from "./Batch.ts"
import type { AccountRow } from "./Batch.ts"
import type { Account, Entry } from "./Transaction.ts"

export interface EntryPage extends PageOf {
  readonly total_pages: number
  readonly total_records: number
  readonly records: ReadonlyArray<Entry>
}

export interface Contract {
  readonly account: (id: BillingAccountId) => Effect.Effect<Option.Option<Account>>
  readonly accountOfTenant: (tenant: TenantId) => Effect.Effect<Option.Option<Account>>
  /** By id, in one query; those that there are not are left out. */
  readonly accounts: (ids: ReadonlyArray<BillingAccountId>) => Effect.Effect<ReadonlyMap<string, Account>>
  /** Newest first. Costs the same at any depth: a page is a range of numbers, the total is the last one. */
  readonly entries: (id: BillingAccountId, page: PageOf) => Effect.Effect<EntryPage>
}

export class Ledger extends Context.Tag("tollgate/ledger/Ledger")<Ledger, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Ledger, make))
}

/** The public id of an entry. The number is padded, so that ids sort as the entries were made. */
export const entryId = ({ billing_account_id, number }: Pick<Entry, "billing_account_id" | "number">): string =>
  `led_${billing_account_id.slice(billing_account_id.indexOf("_") + 1)}_${String(number).padStart(12, "0")}`

const make = Effect.gen(function* () {
  const sql = yield* SqlClient

  const account = Effect.fn("Ledger.account")(function* (id: BillingAccountId) {
    const [row] =
      yield* sql<AccountRow>`SELECT ${sql.literal(accountSelection)} FROM tollgate_ledger_accounts WHERE id = ${id}`
    return Option.map(Option.fromNullable(row), accountOf)
  }, Effect.orDie)

  const accounts = Effect.fn("Ledger.accounts")(function* (ids: ReadonlyArray<BillingAccountId>) {
    const rows = yield* sql<AccountRow>`SELECT ${sql.literal(accountSelection)} FROM tollgate_ledger_accounts
      WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
    return new Map(rows.map((row) => [row.id, accountOf(row)]))
  }, Effect.orDie)

  const entries = Effect.fn("Ledger.entries")(function* (id: BillingAccountId, page: PageOf) {
    const total = Option.match(yield* account(id), { onNone: () => 0, onSome: ({ entries }) => entries })
    const newest = total - (page.page - 1) * page.per_page
    const oldest = Math.max(1, newest - page.per_page + 1)
    if (newest < 1) return paginated(page, total, [])
    // The expression is the index's own, to the letter, and `+` takes the column's affinity from the bucket: without either,
    // SQLite scans the table instead.
    const rows = yield* sql<EntryRow>`SELECT ${sql.literal(entrySelection)} FROM tollgate_ledger_buckets b
      CROSS JOIN tollgate_ledger_entries e ON ${sql.literal(`e.seq >> ${bucketShift} = +b.bucket`)}
        AND e.billing_account_id = b.billing_account_id AND e.number BETWEEN ${oldest} AND ${newest}
      WHERE b.billing_account_id = ${id} AND b.first_number <= ${newest} AND b.last_number >= ${oldest}
      ORDER BY e.number DESC`
    return paginated(page, total, rows.map(entryOf))
  }, Effect.orDie)

  return {
    account,
    accountOfTenant: (tenant) => account(billingAccountOf(tenant)),
    accounts,
    entries
  } satisfies Contract
})

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
