/**
 * Reads and changes tenants' billing accounts: their balance, ledger and settings.
 *
 * Where the specification is silent:
 * - `has_been_funded` becomes true once the tenant has purchased credit or received a transfer.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { PageOf } from "../../kernel/Page.ts"
import type { EntrySources } from "../../books/ledger/rows/EntriesBySource.ts"
import { entryId, Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { availableOf, balanceOf, statement } from "../../books/ledger/rules/Transaction.ts"
import type { Account, Entry } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import { isTeam } from "../../people/tenants/Account.ts"
import type { Membership } from "../../people/tenants/Account.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import type { InsufficientRole } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import type { Amounts, BillingAccount, BillingChange, Credits, LedgerEntry, LedgerPage, Settings } from "./Billing.ts"
import { BillingAccountNotFound } from "./Problems.ts"

/** Money is in nano-USD; times are Unix times in milliseconds. */
export interface BillingAccountsContract {
  readonly credits: (tenant: TenantId) => Effect.Effect<Credits, BillingAccountNotFound>
  readonly amounts: (tenant: TenantId) => Effect.Effect<Amounts, BillingAccountNotFound>
  /** Reads ledger entries from `sources` (by default, from all), newest first. */
  readonly ledger: (
    request: { readonly tenant_id: TenantId; readonly sources?: EntrySources | undefined } & PageOf
  ) => Effect.Effect<LedgerPage, BillingAccountNotFound>
  readonly find: (tenant: TenantId) => Effect.Effect<BillingAccount, BillingAccountNotFound>
  /** Changes the billing account of the caller's tenant. Only owners and admins may call it. */
  readonly change: (request: {
    readonly caller: Actor
    readonly change: BillingChange
  }) => Effect.Effect<BillingAccount, BillingAccountNotFound | InsufficientRole | BooksUnavailable>
  readonly billingEmails: (tenant: TenantId) => Effect.Effect<ReadonlyArray<string>>
  /** Reads with one query whether plain members may spend each tenant's credit. */
  readonly memberSpend: (
    tenants: ReadonlyArray<Pick<Membership, "tenant_id" | "plan">>
  ) => Effect.Effect<ReadonlyMap<TenantId, MemberSpend>>
}

/** Whether plain members may spend a tenant's credit. `source` tells whether the tenant set this or the plan's default applies. */
export interface MemberSpend {
  readonly enabled: boolean
  readonly source: Settings["member_spend_source"]
}

export class BillingAccounts extends Context.Tag("tollgate/billing/BillingAccounts")<
  BillingAccounts,
  BillingAccountsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(BillingAccounts, make))
}

interface Parts {
  readonly sql: SqlClient
  readonly books: Ledger["Type"]
  readonly writer: Writer["Type"]
  readonly tenants: Tenants["Type"]
  readonly belonging: Belonging["Type"]
}

const make = Effect.gen(function* () {
  const parts: Parts = {
    sql: yield* SqlClient,
    books: yield* Ledger,
    writer: yield* Writer,
    tenants: yield* Tenants,
    belonging: yield* Belonging
  }
  return {
    credits: credits(parts),
    amounts: amounts(parts),
    ledger: ledger(parts),
    find: find(parts),
    change: change(parts),
    billingEmails: (tenant) => Effect.map(settingsOf(parts, tenant), ({ billing_emails }) => billing_emails),
    memberSpend: memberSpend(parts)
  } satisfies BillingAccountsContract
})

const accountOf = ({ books }: Parts, tenant: TenantId): Effect.Effect<Account, BillingAccountNotFound> =>
  Effect.flatMap(
    books.accountOfTenant(tenant),
    Option.match({ onNone: () => new BillingAccountNotFound({ tenant_id: tenant }), onSome: Effect.succeed })
  )

const settingsOf = Effect.fnUntraced(function* ({ sql, tenants }: Parts, tenant: TenantId): Effect.fn.Return<Settings> {
  const [row] = yield* sql<{ billing_emails: string; member_spend_enabled: number | null }>`
    SELECT billing_emails, member_spend_enabled FROM tollgate_billing_settings WHERE tenant_id = ${tenant}`.pipe(
    Effect.orDie
  )
  const { enabled, source } = spendOf(row?.member_spend_enabled, isTeam(yield* tenants.plan(tenant)))
  return {
    billing_emails: row === undefined ? [] : (JSON.parse(row.billing_emails) as ReadonlyArray<string>),
    member_spend_enabled: enabled,
    member_spend_effective: enabled,
    member_spend_source: source
  }
})

const memberSpend = ({ sql }: Parts): BillingAccountsContract["memberSpend"] =>
  Effect.fnUntraced(function* (places) {
    const rows = yield* sql<{ tenant_id: TenantId; member_spend_enabled: number | null }>`
      SELECT tenant_id, member_spend_enabled FROM tollgate_billing_settings
      WHERE tenant_id IN (SELECT value FROM json_each(${JSON.stringify(places.map(({ tenant_id }) => tenant_id))}))`
    const set = new Map(rows.map((row) => [row.tenant_id, row.member_spend_enabled]))
    return new Map(
      places.map(({ plan, tenant_id }) => [tenant_id, spendOf(set.get(tenant_id), plan.status === "active")])
    )
  }, Effect.orDie)

const credits = (parts: Parts): BillingAccountsContract["credits"] =>
  Effect.fn("BillingAccounts.credits")(function* (tenant) {
    return { balance: balanceOf(yield* accountOf(parts, tenant)) }
  })

const amounts = (parts: Parts): BillingAccountsContract["amounts"] =>
  Effect.fn("BillingAccounts.amounts")(function* (tenant) {
    const found = yield* accountOf(parts, tenant)
    const { giftable, granted, held, reserved } = found
    return { balance: balanceOf(found), giftable, granted, held, reserved, available: availableOf(found) }
  })

const ledger = (parts: Parts): BillingAccountsContract["ledger"] =>
  Effect.fn("BillingAccounts.ledger")(function* ({ page, per_page, sources, tenant_id }) {
    yield* accountOf(parts, tenant_id)
    const found = yield* parts.books.entries(billingAccountOf(tenant_id), { page, per_page }, sources)
    return { ...found, records: found.records.map(ledgerEntryOf) }
  })

const find = (parts: Parts): BillingAccountsContract["find"] =>
  Effect.fn("BillingAccounts.find")(function* (tenant) {
    return billingAccountFrom(yield* accountOf(parts, tenant), yield* settingsOf(parts, tenant))
  })

const change = (parts: Parts): BillingAccountsContract["change"] =>
  Effect.fn("BillingAccounts.change")(function* ({ caller, change }) {
    const { belonging, sql, tenants, writer } = parts
    const tenant = caller.tenant_id
    yield* tenants.mayManage(caller)
    yield* accountOf(parts, tenant)
    const now = yield* Clock.currentTimeMillis
    // Null leaves a setting unchanged.
    const emails = change.billing_emails === undefined ? null : JSON.stringify([...new Set(change.billing_emails)])
    const spend = change.member_spend_enabled === undefined ? null : Number(change.member_spend_enabled)
    const set = sql`INSERT INTO tollgate_billing_settings (tenant_id, billing_emails, member_spend_enabled, updated_at)
      VALUES (${tenant}, coalesce(${emails}, '[]'), ${spend}, ${now})
      ON CONFLICT (tenant_id) DO UPDATE SET billing_emails = coalesce(${emails}, tollgate_billing_settings.billing_emails),
        member_spend_enabled = coalesce(${spend}, tollgate_billing_settings.member_spend_enabled), updated_at = excluded.updated_at`
    yield* afterCommit(Statements.write(writer, statement(set)), belonging.changed(tenant))
    return yield* find(parts)(tenant)
  })

/** Returns the tenant's setting, or its plan's default if there is none. */
const spendOf = (set: number | null | undefined, team: boolean): MemberSpend =>
  set === null || set === undefined ? { enabled: team, source: "default" } : { enabled: set === 1, source: "explicit" }

const billingAccountFrom = (account: Account, settings: Settings): BillingAccount => ({
  status: account.status,
  credits: balanceOf(account),
  giftable_credits: account.giftable,
  held_credits: account.held,
  has_been_funded: account.funded,
  ...settings
})

const ledgerEntryOf = (entry: Entry): LedgerEntry => ({
  id: entryId(entry),
  billing_account_id: entry.billing_account_id,
  type: entry.type,
  amount: entry.amount,
  balance: entry.balance,
  description: entry.description,
  reference_id: entry.reference_id,
  created_at: entry.at,
  ...(entry.source !== null && { source: entry.source })
})
