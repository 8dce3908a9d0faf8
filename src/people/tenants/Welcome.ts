/** Processes a user's first sign-in: creates the account, home tenant, billing account and signup credit, each exactly once. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Posting, Statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { PriceListFacts } from "../../books/prices/PriceList.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import type { NewTenantBudgets } from "./NewTenantBudgets.ts"
import type { TenantsContract, Welcomed } from "./Tenants.ts"

export interface AccountRow {
  readonly id: AccountId
  readonly home_tenant_id: TenantId
  readonly email: string
  readonly name: string
  readonly email_verified: number
  /** When the signup credit was granted; null while the credit waits for a verified address, or if the price list grants none. */
  readonly granted_at: number | null
  readonly created_at: number
  readonly updated_at: number
}

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly prices: PriceListFacts
  readonly budgetsOf: NewTenantBudgets["Type"]
}

export const make = (
  sql: SqlClient,
  writer: WriterContract,
  prices: PriceListFacts,
  budgetsOf: NewTenantBudgets["Type"]
) => ({
  welcome: makeWelcome({ sql, writer, prices, budgetsOf }),
  byVerifiedEmail: (email: string) => byVerifiedEmail(sql, email),
  grant: grantOf(prices)
})

// ---- signup credit ------------------------------------------------------------------------------------------------------

const grantOf = (prices: PriceListFacts): Nano => prices.default_new_credits + prices.default_registration_credits

type Credit = Extract<Posting, { readonly _tag: "Credit" }>

const grants = (prices: PriceListFacts, account: string, tenant: string): ReadonlyArray<Credit> =>
  (
    [
      ["signup_grant", prices.default_new_credits, "credit for signing up"],
      ["registration_bonus", prices.default_registration_credits, "registration bonus"]
    ] as const
  )
    .filter(([, amount]) => amount > 0n)
    .map(([source, amount, description]) => ({
      _tag: "Credit",
      account: Ids.billingAccountOf(tenant),
      amount,
      source,
      reference: account,
      description
    }))

// ---- reading ------------------------------------------------------------------------------------------------------------

const byIdentity = (sql: SqlClient, { provider, subject }: VerifiedIdentity) =>
  sql<AccountRow>`SELECT a.* FROM tollgate_tenants_identities i JOIN tollgate_tenants_accounts a ON a.id = i.account_id
    WHERE i.provider = ${provider} AND i.subject = ${subject}`.pipe(Effect.orDie)

const byVerifiedEmail = (sql: SqlClient, email: string) =>
  sql<AccountRow>`SELECT * FROM tollgate_tenants_accounts WHERE email = ${email} AND email_verified = 1`.pipe(
    Effect.orDie
  )

// ---- writing ------------------------------------------------------------------------------------------------------------

const link = (sql: SqlClient, { email, provider, subject }: VerifiedIdentity, account: string): Statement =>
  statement(
    sql`INSERT INTO tollgate_tenants_identities (provider, subject, account_id, email)
      VALUES (${provider}, ${subject}, ${account}, ${email}) ON CONFLICT DO NOTHING RETURNING account_id`,
    1
  )

/** Creates the account, home tenant and billing account in one transaction. Fails if another sign-in has created them. */
const create = Effect.fnUntraced(function* (
  { budgetsOf, prices, sql, writer }: Dependencies,
  identity: VerifiedIdentity
) {
  const now = yield* Clock.currentTimeMillis
  const account = Ids.at("acc", now) as AccountId
  const tenant = Ids.at("ten", now) as TenantId
  const verified = identity.email_verified
  const granted_at = verified && grantOf(prices) > 0n ? now : null
  const budgets = yield* budgetsOf(tenant, now)
  yield* writer.submit({
    postings: [
      { _tag: "Open", account: Ids.billingAccountOf(tenant), tenant },
      ...budgets.postings,
      ...(verified ? grants(prices, account, tenant) : [])
    ],
    statements: [
      link(sql, identity, account),
      statement(
        sql`INSERT INTO tollgate_tenants_accounts
          (id, home_tenant_id, email, name, email_verified, granted_at, created_at, updated_at)
          VALUES (${account}, ${tenant}, ${identity.email}, ${identity.name}, ${verified ? 1 : 0},
            ${granted_at}, ${now}, ${now}) ON CONFLICT DO NOTHING RETURNING id`,
        1
      ),
      statement(
        sql`INSERT INTO tollgate_tenants_tenants (id, name, created_at) VALUES (${tenant}, ${identity.name}, ${now})`
      ),
      statement(sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
        VALUES (${account}, ${tenant}, 'owner', 'active', ${now}, ${now})`),
      ...budgets.statements
    ]
  })
  return { account_id: account, home_tenant_id: tenant, created: true }
})

/**
 * Saves an account's verified address, and grants the credit that was waiting for it. Fails if the account has already verified an address, or
 * another account has verified this one.
 */
const verifyEmail = Effect.fnUntraced(function* (
  { prices, sql, writer }: Dependencies,
  row: AccountRow,
  { email }: VerifiedIdentity
) {
  const now = yield* Clock.currentTimeMillis
  yield* writer.submit({
    postings: row.granted_at === null ? grants(prices, row.id, row.home_tenant_id) : [],
    statements: [
      statement(
        sql`UPDATE tollgate_tenants_accounts SET email = ${email}, email_verified = 1,
          granted_at = coalesce(granted_at, ${grantOf(prices) > 0n ? now : null}), updated_at = ${now}
          WHERE id = ${row.id} AND email_verified = 0
            AND NOT EXISTS (SELECT 1 FROM tollgate_tenants_accounts WHERE email = ${email} AND email_verified = 1)
          RETURNING id`,
        1
      )
    ]
  })
})

// ---- signing in ---------------------------------------------------------------------------------------------------------

const makeWelcome = (dependencies: Dependencies): TenantsContract["welcome"] => {
  const welcome: TenantsContract["welcome"] = Effect.fn("Tenants.welcome")(function* (identity) {
    const [known] = yield* byIdentity(dependencies.sql, identity)
    if (known === undefined) {
      // After a conflict, the account exists.
      return yield* Effect.catchTags(firstSignIn(dependencies, identity), {
        Conflict: () => welcome(identity),
        AccountExists: Effect.die,
        AccountMissing: Effect.die,
        BalanceTooLarge: Effect.die
      })
    }
    if (identity.email_verified && known.email_verified === 0) {
      // After a conflict, no credit is due: another sign-in verified the address, or another account owns it.
      yield* Effect.catchTags(verifyEmail(dependencies, known, identity), {
        Conflict: () => Effect.void,
        AccountMissing: Effect.die,
        BalanceTooLarge: Effect.die
      })
    }
    return { account_id: known.id, home_tenant_id: known.home_tenant_id, created: false }
  })
  return welcome
}

/**
 * Links the identity to the account with the same verified address, or creates an account. Any provider may have verified the address: credit is sent
 * to addresses, so an address's owner could claim that account's credit anyway. An unverified address, on either side, proves nothing, because anyone
 * could claim it to take over the account.
 */
const firstSignIn = Effect.fnUntraced(function* (dependencies: Dependencies, identity: VerifiedIdentity) {
  const { sql, writer } = dependencies
  const [same] = identity.email_verified ? yield* byVerifiedEmail(sql, identity.email) : []
  if (same === undefined) return yield* create(dependencies, identity)
  yield* writer.submit({ postings: [], statements: [link(sql, identity, same.id)] })
  return { account_id: same.id, home_tenant_id: same.home_tenant_id, created: false } satisfies Welcomed
})
