/** Reads the caller's account, the accounts of fellow members, and the account that has verified an address. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { AccountId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Account } from "./Account.ts"
import { AccountNotFound } from "./Problems.ts"
import type { TenantsContract } from "./Tenants.ts"
import type { AccountRow } from "./Welcome.ts"

/** `grant` is the signup credit for a verified account, in nano-USD. */
export const make = (
  sql: SqlClient,
  grant: Nano,
  byVerifiedEmail: (email: string) => Effect.Effect<ReadonlyArray<AccountRow>>
) => {
  const find = Effect.fnUntraced(function* (account: AccountId) {
    const [row] = yield* sql<AccountRow & { readonly role: Account["role"]; readonly status: Account["status"] }>`
      SELECT a.*, m.role, m.status FROM tollgate_tenants_accounts a
      JOIN tollgate_tenants_memberships m ON m.account_id = a.id AND m.tenant_id = a.home_tenant_id
      WHERE a.id = ${account}`.pipe(Effect.orDie)
    return row ?? (yield* new AccountNotFound({ account_id: account }))
  })

  const me = Effect.fn("Tenants.me")(function* (account: AccountId) {
    const row = yield* find(account)
    const [identity] = yield* sql<{ provider: string; subject: string; email: string }>`
      SELECT provider, subject, email FROM tollgate_tenants_identities WHERE account_id = ${account}
      ORDER BY provider LIMIT 1`.pipe(Effect.orDie)
    const waits = row.email_verified === 0 && grant > 0n
    const signup_grant = row.granted_at !== null ? "claimed" : waits ? "pending" : "none"
    return {
      account: accountOf(row),
      identity: {
        email: identity?.email ?? row.email,
        provider: identity?.provider ?? "",
        provider_id: identity?.subject ?? ""
      },
      verification: {
        email_verified: row.email_verified === 1,
        signup_grant,
        ...(signup_grant !== "none" && { grant_amount: grant })
      }
    } as const
  })

  const account: TenantsContract["account"] = Effect.fn("Tenants.account")(function* ({ account_id, caller }) {
    if (caller.account_id === account_id) return accountOf(yield* find(account_id))
    const [shared] = yield* sql`SELECT 1 FROM tollgate_tenants_memberships a
      JOIN tollgate_tenants_memberships b ON b.tenant_id = a.tenant_id AND b.account_id = ${account_id} AND b.status = 'active'
      WHERE a.account_id = ${caller.account_id} AND a.status = 'active' LIMIT 1`.pipe(Effect.orDie)
    if (shared === undefined) return yield* new AccountNotFound({ account_id })
    return accountOf(yield* find(account_id))
  })

  const verifiedEmail = (account: AccountId) =>
    sql<{
      email: string
    }>`SELECT email FROM tollgate_tenants_accounts WHERE id = ${account} AND email_verified = 1`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.email)
    )

  const accountOfEmail = (email: string) =>
    Effect.map(byVerifiedEmail(email), ([row]) =>
      row === undefined ? undefined : { account_id: row.id, home_tenant_id: row.home_tenant_id }
    )

  const named = (accounts: ReadonlyArray<AccountId>) =>
    Effect.orDie(
      sql<Pick<Account, "id" | "name" | "email">>`SELECT id, name, email FROM tollgate_tenants_accounts
        WHERE id IN (SELECT value FROM json_each(${JSON.stringify(accounts)}))`
    )

  return { me, account, verifiedEmail, accountOfEmail, named }
}

const accountOf = (row: AccountRow & Pick<Account, "role" | "status">): Account => ({
  id: row.id,
  tenant_id: row.home_tenant_id,
  email: row.email,
  name: row.name,
  role: row.role,
  status: row.status,
  created_at: row.created_at,
  updated_at: row.updated_at
})
