/** Accounts and the tenants they belong to: made at the first sign-in, read back ever after. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { Actor, Caller } from "../kernel/Caller.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import * as Statements from "../ledger/Statements.ts"
import { statement } from "../ledger/Transaction.ts"
import { afterCommit, Writer } from "../ledger/Writer.ts"
import { PriceList } from "../prices/PriceList.ts"
import type { VerifiedIdentity } from "../upstream/Identity.ts"
import { noPlan } from "./Account.ts"
import type { Account, Me, Member, Membership, Plan, Role } from "./Account.ts"
import { Belonging } from "./Belonging.ts"
import { manages } from "./Organisation.ts"
import { AccountNotFound, InsufficientRole } from "./Problems.ts"
import * as Welcome from "./Welcome.ts"
import type { AccountRow } from "./Welcome.ts"

export interface TenantsContract {
  /**
   * The account of a person whom a provider vouches for, made with its home tenant and signup credit if there is none. Whatever
   * races, an identity has one account, and an account is granted its credit once, when its address is first verified.
   */
  readonly welcome: (identity: VerifiedIdentity) => Effect.Effect<Welcomed, BooksUnavailable>
  readonly me: (account: AccountId) => Effect.Effect<Me, AccountNotFound>
  /** An account that the caller may see: their own, or one with whom they share a tenant. */
  readonly account: (request: {
    readonly caller: Pick<Caller, "account_id">
    readonly account_id: AccountId
  }) => Effect.Effect<Account, AccountNotFound>
  /** Those that have not ended, the home tenant first. */
  readonly memberships: (account: AccountId) => Effect.Effect<ReadonlyArray<Membership>>
  readonly isActiveMember: (account: AccountId, tenant: TenantId) => Effect.Effect<boolean>
  /** The role of an active member; `undefined` for everybody else. */
  readonly roleOf: (account: AccountId, tenant: TenantId) => Effect.Effect<Role | undefined>
  /** Refuses unless the account is an owner or admin of the tenant. */
  readonly mayManage: (actor: Actor) => Effect.Effect<void, InsufficientRole>
  /** The address that the account has proved; `undefined` where it has proved none. */
  readonly verifiedEmail: (account: AccountId) => Effect.Effect<string | undefined>
  /** The account that has proved this address, and its home tenant. */
  readonly accountOfEmail: (
    email: string
  ) => Effect.Effect<{ readonly account_id: AccountId; readonly home_tenant_id: TenantId } | undefined>
  readonly nameOf: (tenant: TenantId) => Effect.Effect<string | undefined>
  /** Those who belong to the tenant and have not been removed, in the order in which they came. */
  readonly members: (tenant: TenantId) => Effect.Effect<ReadonlyArray<Member>>
  /** Accounts by their ids, whether or not they belong anywhere any more; those that there are not are left out. */
  readonly named: (
    accounts: ReadonlyArray<AccountId>
  ) => Effect.Effect<ReadonlyArray<Pick<Account, "id" | "name" | "email">>>
  /** The plan of a tenant; `noPlan` where it has none. */
  readonly plan: (tenant: TenantId) => Effect.Effect<Plan>
  /**
   * Sets what is given of a plan, and leaves the rest as it is; `false` where there is no such tenant. A plan that is set for the
   * first time is in force. One that begins where there was none has `seatsDefault` seats unless it says otherwise.
   */
  readonly setPlan: (tenant: TenantId, change: Partial<Plan>) => Effect.Effect<boolean, BooksUnavailable>
}

export interface Welcomed {
  readonly account_id: AccountId
  readonly home_tenant_id: TenantId
  readonly created: boolean
}

export class Tenants extends Context.Tag("tollgate/tenants/Tenants")<Tenants, TenantsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Tenants, make))
}

/** What a team has room for unless it says otherwise. */
const seatsDefault = 25

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const prices = yield* PriceList
  const belonging = yield* Belonging
  const { byVerifiedEmail, grant, welcome } = Welcome.make(sql, writer, prices)

  const find = Effect.fnUntraced(function* (account: AccountId) {
    const [row] = yield* sql<AccountRow & { readonly role: Account["role"]; readonly status: Account["status"] }>`
      SELECT a.*, m.role, m.status FROM tollgate_tenants_accounts a
      JOIN tollgate_tenants_memberships m ON m.account_id = a.id AND m.tenant_id = a.home_tenant_id
      WHERE a.id = ${account}`.pipe(Effect.orDie)
    return row ?? (yield* new AccountNotFound({ account_id: account }))
  })

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

  const memberships = Effect.fn("Tenants.memberships")(function* (account: AccountId) {
    const rows = yield* sql<{
      tenant_id: TenantId
      tenant_name: string
      role: Account["role"]
      status: Account["status"]
      is_home: number
      plan: Plan["plan"]
      plan_status: Plan["status"]
      seats: number | null
    }>`SELECT m.tenant_id, t.name AS tenant_name, m.role, m.status, m.tenant_id = a.home_tenant_id AS is_home,
        coalesce(p.plan, ${noPlan.plan}) AS plan, p.status AS plan_status, p.seats
      FROM tollgate_tenants_memberships m JOIN tollgate_tenants_tenants t ON t.id = m.tenant_id JOIN tollgate_tenants_accounts a ON a.id = m.account_id
        LEFT JOIN tollgate_tenants_plans p ON p.tenant_id = m.tenant_id
      WHERE m.account_id = ${account} AND m.status <> 'removed'
      ORDER BY is_home DESC, m.created_at, m.tenant_id`.pipe(Effect.orDie)
    return rows.map(({ plan, plan_status, seats, ...row }) => ({
      ...row,
      is_home: row.is_home === 1,
      plan:
        plan === "none" ? { status: plan, seats: noPlan.seats } : { status: plan_status, seats: seats ?? noPlan.seats }
    }))
  })

  const roleOf = (account: AccountId, tenant: TenantId) =>
    sql<{ role: Role }>`SELECT role FROM tollgate_tenants_memberships
      WHERE account_id = ${account} AND tenant_id = ${tenant} AND status = 'active'`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.role)
    )

  const mayManage: TenantsContract["mayManage"] = ({ account_id, tenant_id }) =>
    Effect.flatMap(roleOf(account_id, tenant_id), (role) =>
      role === undefined || !manages(role) ? new InsufficientRole({ tenant_id }) : Effect.void
    )

  const isActiveMember = (account: AccountId, tenant: TenantId) =>
    Effect.map(roleOf(account, tenant), (role) => role !== undefined)

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

  const nameOf = (tenant: TenantId) =>
    sql<{ name: string }>`SELECT name FROM tollgate_tenants_tenants WHERE id = ${tenant}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.name)
    )

  const members = Effect.fn("Tenants.members")(function* (tenant: TenantId) {
    const rows = yield* sql<Omit<Member, "is_home"> & { readonly is_home: number }>`
      SELECT a.id AS account_id, a.name, a.email, m.role, m.status, a.home_tenant_id = m.tenant_id AS is_home,
        m.created_at, m.updated_at
      FROM tollgate_tenants_memberships m JOIN tollgate_tenants_accounts a ON a.id = m.account_id
      WHERE m.tenant_id = ${tenant} AND m.status <> 'removed' ORDER BY m.created_at, m.account_id`
    return rows.map((row) => ({ ...row, is_home: row.is_home === 1 }))
  }, Effect.orDie)

  const named = (accounts: ReadonlyArray<AccountId>) =>
    Effect.orDie(
      sql<Pick<Account, "id" | "name" | "email">>`SELECT id, name, email FROM tollgate_tenants_accounts
        WHERE id IN (SELECT value FROM json_each(${JSON.stringify(accounts)}))`
    )

  const plan = (tenant: TenantId) =>
    sql<Plan>`SELECT plan, status, seats FROM tollgate_tenants_plans WHERE tenant_id = ${tenant}`.pipe(
      Effect.orDie,
      // What an ended plan allowed allows nothing more.
      Effect.map(([row]) => (row === undefined || row.plan === "none" ? noPlan : row))
    )

  const setPlan = Effect.fn("Tenants.setPlan")(function* (tenant: TenantId, change: Partial<Plan>) {
    const now = yield* Clock.currentTimeMillis
    const unset = null
    const set = sql`INSERT INTO tollgate_tenants_plans (tenant_id, plan, status, seats, created_at, updated_at)
      SELECT id, coalesce(${change.plan ?? unset}, 'team'), coalesce(${change.status ?? unset}, 'active'),
        coalesce(${change.seats ?? unset}, ${seatsDefault}), ${now}, ${now} FROM tollgate_tenants_tenants WHERE id = ${tenant}
      ON CONFLICT (tenant_id) DO UPDATE SET plan = coalesce(${change.plan ?? unset}, plan),
        status = coalesce(${change.status ?? unset}, status),
        seats = coalesce(${change.seats ?? unset}, CASE WHEN plan = 'none' THEN ${seatsDefault} ELSE seats END),
        updated_at = excluded.updated_at
      RETURNING tenant_id`
    return yield* afterCommit(Statements.tryWrite(writer, statement(set, 1)), belonging.changed(tenant))
  })

  return {
    welcome,
    me,
    account,
    memberships,
    isActiveMember,
    roleOf,
    mayManage,
    verifiedEmail,
    accountOfEmail,
    nameOf,
    members,
    named,
    plan,
    setPlan
  } satisfies TenantsContract
})
