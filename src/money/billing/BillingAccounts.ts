/**
 * The billing accounts of tenants, as their people see them.
 *
 * Where the specification is silent:
 * - `has_been_funded` is true once credit was purchased or received in a transfer.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { PageOf } from "../../kernel/Page.ts"
import type { EntrySources } from "../../books/ledger/EntriesBySource.ts"
import { entryId, Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { availableOf, balanceOf, statement } from "../../books/ledger/Transaction.ts"
import type { Account, Entry } from "../../books/ledger/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/Writer.ts"
import { isTeam } from "../../people/tenants/Account.ts"
import type { Membership } from "../../people/tenants/Account.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import type { InsufficientRole } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import type { Amounts, BillingAccount, BillingChange, Credits, LedgerEntry, LedgerPage, Settings } from "./Billing.ts"
import { BillingAccountNotFound } from "./Problems.ts"

/** Money is nano-USD, times milliseconds since 1970. */
export interface BillingAccountsContract {
  readonly credits: (tenant: TenantId) => Effect.Effect<Credits, BillingAccountNotFound>
  readonly amounts: (tenant: TenantId) => Effect.Effect<Amounts, BillingAccountNotFound>
  /** Newest first; all, or those of some sources. */
  readonly ledger: (
    request: { readonly tenant_id: TenantId; readonly sources?: EntrySources | undefined } & PageOf
  ) => Effect.Effect<LedgerPage, BillingAccountNotFound>
  readonly find: (tenant: TenantId) => Effect.Effect<BillingAccount, BillingAccountNotFound>
  /** Changes the account of the caller's tenant, by an owner or admin. */
  readonly change: (request: {
    readonly caller: Actor
    readonly change: BillingChange
  }) => Effect.Effect<BillingAccount, BillingAccountNotFound | InsufficientRole | BooksUnavailable>
  /** Who gets billing mail. */
  readonly billingEmails: (tenant: TenantId) => Effect.Effect<ReadonlyArray<string>>
  /** What each of these tenants lets its plain members spend, in one query. */
  readonly memberSpend: (
    tenants: ReadonlyArray<Pick<Membership, "tenant_id" | "plan">>
  ) => Effect.Effect<ReadonlyMap<TenantId, MemberSpend>>
}

/** Whether a tenant lets its plain members spend its credit, and whether that was set or follows from its plan. */
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

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const books = yield* Ledger
  const writer = yield* Writer
  const tenants = yield* Tenants
  const belonging = yield* Belonging

  const account = (tenant: TenantId): Effect.Effect<Account, BillingAccountNotFound> =>
    Effect.flatMap(
      books.accountOfTenant(tenant),
      Option.match({ onNone: () => new BillingAccountNotFound({ tenant_id: tenant }), onSome: Effect.succeed })
    )

  const settings = Effect.fnUntraced(function* (tenant: TenantId): Effect.fn.Return<Settings> {
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

  const billingEmails = (tenant: TenantId) => Effect.map(settings(tenant), ({ billing_emails }) => billing_emails)

  const memberSpend: BillingAccountsContract["memberSpend"] = Effect.fnUntraced(function* (places) {
    const rows = yield* sql<{ tenant_id: TenantId; member_spend_enabled: number | null }>`
      SELECT tenant_id, member_spend_enabled FROM tollgate_billing_settings
      WHERE tenant_id IN (SELECT value FROM json_each(${JSON.stringify(places.map(({ tenant_id }) => tenant_id))}))`
    const set = new Map(rows.map((row) => [row.tenant_id, row.member_spend_enabled]))
    return new Map(
      places.map(({ plan, tenant_id }) => [tenant_id, spendOf(set.get(tenant_id), plan.status === "active")])
    )
  }, Effect.orDie)

  const credits = Effect.fn("BillingAccounts.credits")(function* (tenant: TenantId) {
    return { balance: balanceOf(yield* account(tenant)) }
  })

  const amounts = Effect.fn("BillingAccounts.amounts")(function* (tenant: TenantId) {
    const found = yield* account(tenant)
    const { giftable, granted, held, reserved } = found
    return { balance: balanceOf(found), giftable, granted, held, reserved, available: availableOf(found) }
  })

  const ledger: BillingAccountsContract["ledger"] = Effect.fn("BillingAccounts.ledger")(function* (request) {
    const { page, per_page, sources, tenant_id } = request
    yield* account(tenant_id)
    const found = yield* books.entries(billingAccountOf(tenant_id), { page, per_page }, sources)
    return { ...found, records: found.records.map(ledgerEntryOf) }
  })

  const find = Effect.fn("BillingAccounts.find")(function* (tenant: TenantId) {
    return billingAccountFrom(yield* account(tenant), yield* settings(tenant))
  })

  const change: BillingAccountsContract["change"] = Effect.fn("BillingAccounts.change")(function* ({ caller, change }) {
    const tenant = caller.tenant_id
    yield* tenants.mayManage(caller)
    yield* account(tenant)
    const now = yield* Clock.currentTimeMillis
    const unset = null
    const emails = change.billing_emails === undefined ? unset : JSON.stringify([...new Set(change.billing_emails)])
    const spend = change.member_spend_enabled === undefined ? unset : Number(change.member_spend_enabled)
    const set = sql`INSERT INTO tollgate_billing_settings (tenant_id, billing_emails, member_spend_enabled, updated_at)
      VALUES (${tenant}, coalesce(${emails}, '[]'), ${spend}, ${now})
      ON CONFLICT (tenant_id) DO UPDATE SET billing_emails = coalesce(${emails}, tollgate_billing_settings.billing_emails),
        member_spend_enabled = coalesce(${spend}, tollgate_billing_settings.member_spend_enabled), updated_at = excluded.updated_at`
    yield* afterCommit(Statements.write(writer, statement(set)), belonging.changed(tenant))
    return yield* find(tenant)
  })

  return { credits, amounts, ledger, find, change, billingEmails, memberSpend } satisfies BillingAccountsContract
})

/** As it was set, else as the plan has it. */
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
