/** The first sign-in of a person: their account, home tenant, billing account and signup credit, each made once. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { Posting, Statement } from "../../books/ledger/Transaction.ts"
import type { Writer } from "../../books/ledger/Writer.ts"
import type { PriceListFacts } from "../../books/prices/PriceList.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import type { TenantsContract, Welcomed } from "./Tenants.ts"

export interface AccountRow {
  readonly id: AccountId
  readonly home_tenant_id: TenantId
  readonly email: string
  readonly name: string
  readonly email_verified: number
  /** When its signup credit was given; null if it waits for the address to be verified, or there was none to give. */
  readonly granted_at: number | null
  readonly created_at: number
  readonly updated_at: number
}

export const make = (sql: SqlClient, writer: Writer["Type"], prices: PriceListFacts) => {
  const grant = prices.default_new_credits + prices.default_registration_credits

  const byIdentity = ({ provider, subject }: VerifiedIdentity) =>
    sql<AccountRow>`SELECT a.* FROM tollgate_tenants_identities i JOIN tollgate_tenants_accounts a ON a.id = i.account_id
      WHERE i.provider = ${provider} AND i.subject = ${subject}`.pipe(Effect.orDie)

  const byVerifiedEmail = (email: string) =>
    sql<AccountRow>`SELECT * FROM tollgate_tenants_accounts WHERE email = ${email} AND email_verified = 1`.pipe(
      Effect.orDie
    )

  const link = ({ email, provider, subject }: VerifiedIdentity, account: string): Statement =>
    statement(
      sql`INSERT INTO tollgate_tenants_identities (provider, subject, account_id, email)
        VALUES (${provider}, ${subject}, ${account}, ${email}) ON CONFLICT DO NOTHING RETURNING account_id`,
      1
    )

  const grants = (account: string, tenant: string): ReadonlyArray<Extract<Posting, { readonly _tag: "Credit" }>> =>
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

  /** Account, home tenant and billing account in one transaction; refused whole if somebody was faster. */
  const create = Effect.fnUntraced(function* (identity: VerifiedIdentity) {
    const now = yield* Clock.currentTimeMillis
    const account = Ids.at("acc", now) as AccountId
    const tenant = Ids.at("ten", now) as TenantId
    const verified = identity.email_verified
    yield* writer.submit({
      postings: [
        { _tag: "Open", account: Ids.billingAccountOf(tenant), tenant },
        ...(verified ? grants(account, tenant) : [])
      ],
      statements: [
        link(identity, account),
        statement(
          sql`INSERT INTO tollgate_tenants_accounts
            (id, home_tenant_id, email, name, email_verified, granted_at, created_at, updated_at)
            VALUES (${account}, ${tenant}, ${identity.email}, ${identity.name}, ${verified ? 1 : 0},
              ${verified && grant > 0n ? now : null}, ${now}, ${now}) ON CONFLICT DO NOTHING RETURNING id`,
          1
        ),
        statement(
          sql`INSERT INTO tollgate_tenants_tenants (id, name, created_at) VALUES (${tenant}, ${identity.name}, ${now})`
        ),
        statement(sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
          VALUES (${account}, ${tenant}, 'owner', 'active', ${now}, ${now})`)
      ]
    })
    return { account_id: account, home_tenant_id: tenant, created: true }
  })

  /** The first sign-in with a verified address after one without: the credit that waited for it. */
  const verifyEmail = Effect.fnUntraced(function* (row: AccountRow, { email }: VerifiedIdentity) {
    const now = yield* Clock.currentTimeMillis
    yield* writer.submit({
      postings: row.granted_at === null ? grants(row.id, row.home_tenant_id) : [],
      statements: [
        statement(
          sql`UPDATE tollgate_tenants_accounts SET email = ${email}, email_verified = 1,
            granted_at = coalesce(granted_at, ${grant > 0n ? now : null}), updated_at = ${now}
            WHERE id = ${row.id} AND email_verified = 0
              AND NOT EXISTS (SELECT 1 FROM tollgate_tenants_accounts WHERE email = ${email} AND email_verified = 1)
            RETURNING id`,
          1
        )
      ]
    })
  })

  const welcome: TenantsContract["welcome"] = Effect.fn("Tenants.welcome")(function* (identity) {
    const [known] = yield* byIdentity(identity)
    if (known !== undefined) {
      if (identity.email_verified && known.email_verified === 0) {
        // Lost to a sign-in beside it, or the address is somebody else's already: there is nothing to claim.
        yield* Effect.catchTags(verifyEmail(known, identity), {
          Conflict: () => Effect.void,
          AccountMissing: Effect.die,
          BalanceTooLarge: Effect.die
        })
      }
      return { account_id: known.id, home_tenant_id: known.home_tenant_id, created: false }
    }
    // Whoever proves an address that an account has proved signs in to that account, by whichever provider: credit is sent to
    // addresses here, so who holds the address could claim what is sent to it anyway. An unverified address, on either side,
    // proves nothing: else one could take over an account by naming its address, or make one for somebody else's.
    const [same] = identity.email_verified ? yield* byVerifiedEmail(identity.email) : []
    const attempt: Effect.Effect<Welcomed, Effect.Effect.Error<ReturnType<typeof create>>> = same === undefined
      ? create(identity)
      : Effect.as(writer.submit({ postings: [], statements: [link(identity, same.id)] }), {
          account_id: same.id,
          home_tenant_id: same.home_tenant_id,
          created: false
        })
    // Somebody was faster: now there is something to find.
    return yield* Effect.catchTags(attempt, {
      Conflict: () => welcome(identity),
      AccountExists: Effect.die,
      AccountMissing: Effect.die,
      BalanceTooLarge: Effect.die
    })
  })

  return { welcome, byVerifiedEmail, grant }
}
