/** Accounts and their tenants: creates them at the first sign-in, reads them, suspends them, and sets their plans. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { Actor, Caller } from "../../kernel/Caller.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { PriceList } from "../../books/prices/PriceList.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import type { Account, Me, Member, Membership, Plan, Role } from "./Account.ts"
import * as Accounts from "./Accounts.ts"
import { Belonging } from "./Belonging.ts"
import * as Memberships from "./Memberships.ts"
import * as Names from "./Names.ts"
import { NewTenantBudgets } from "./NewTenantBudgets.ts"
import * as Plans from "./Plans.ts"
import type { AccountNotFound, InsufficientRole } from "./Problems.ts"
import * as Suspensions from "./Suspensions.ts"
import type { Suspender } from "./Suspensions.ts"
import * as Welcome from "./Welcome.ts"

export interface TenantsContract {
  /**
   * Returns the account of a user that a provider has verified. The first sign-in creates the account with its home tenant and signup credit.
   * Concurrent sign-ins create only one account. The credit is granted once, when the address is first verified.
   */
  readonly welcome: (identity: VerifiedIdentity) => Effect.Effect<Welcomed, BooksUnavailable>
  readonly me: (account: AccountId) => Effect.Effect<Me, AccountNotFound>
  /** Reads an account that the caller may see: their own, or one in a tenant that both belong to. */
  readonly account: (request: {
    readonly caller: Pick<Caller, "account_id">
    readonly account_id: AccountId
  }) => Effect.Effect<Account, AccountNotFound>
  /** Lists the account's memberships except removed ones, the home tenant first. */
  readonly memberships: (account: AccountId) => Effect.Effect<ReadonlyArray<Membership>>
  readonly isActiveMember: (account: AccountId, tenant: TenantId) => Effect.Effect<boolean>
  /** Returns an active member's role, or `undefined` for other users and for suspended users. */
  readonly roleOf: (account: AccountId, tenant: TenantId) => Effect.Effect<Role | undefined>
  /** Fails unless the account is an owner or admin of the tenant. */
  readonly mayManage: (actor: Actor) => Effect.Effect<void, InsufficientRole>
  /** Returns the account's verified address, or `undefined` if it has none. */
  readonly verifiedEmail: (account: AccountId) => Effect.Effect<string | undefined>
  /** Finds the account that has verified this address, and its home tenant. */
  readonly accountOfEmail: (
    email: string
  ) => Effect.Effect<{ readonly account_id: AccountId; readonly home_tenant_id: TenantId } | undefined>
  /** Returns whether the tenant's calls are tagged with the sessions and agents that coding agents send. */
  readonly attributes: (tenant: TenantId) => Effect.Effect<boolean>
  readonly nameOf: (tenant: TenantId) => Effect.Effect<string | undefined>
  /** Lists the tenant's members except removed ones, in joining order. */
  readonly members: (tenant: TenantId) => Effect.Effect<ReadonlyArray<Member>>
  /** Returns the accounts with these ids. Unknown ids are absent. */
  readonly named: (
    accounts: ReadonlyArray<AccountId>
  ) => Effect.Effect<ReadonlyArray<Pick<Account, "id" | "name" | "email">>>
  /** Returns a tenant's plan. Defaults to `noPlan`. */
  readonly plan: (tenant: TenantId) => Effect.Effect<Plan>
  /**
   * Changes the specified fields of a plan. Returns `false` for an unknown tenant. Unless specified otherwise, a new plan is active and has
   * `seatsDefault` seats.
   */
  readonly setPlan: (tenant: TenantId, change: Partial<Plan>) => Effect.Effect<boolean, BooksUnavailable>
  /**
   * Suspends a user in the same transaction as `beside`. Returns `false` if the user is unknown, or if `by` (the operator by default) has already
   * suspended them.
   */
  readonly suspend: (
    account: AccountId,
    beside: ReadonlyArray<Statement>,
    by?: Suspender
  ) => Effect.Effect<boolean, BooksUnavailable>
  /** Ends all suspensions, or only the directory's if `by` is the directory. Returns `false` if there is no suspension to end. */
  readonly activate: (
    account: AccountId,
    beside: ReadonlyArray<Statement>,
    by?: Suspender
  ) => Effect.Effect<boolean, BooksUnavailable>
  /** Returns the parties that currently suspend the account. */
  readonly suspendersOf: (account: AccountId) => Effect.Effect<ReadonlyArray<Suspender>>
  /** Changes an account's name in the same transaction as `beside`. Returns `false` for an unknown account. */
  readonly renameAccount: (
    account: AccountId,
    name: string,
    beside: ReadonlyArray<Statement>
  ) => Effect.Effect<boolean, BooksUnavailable>
  readonly renameTenant: (
    tenant: TenantId,
    name: string,
    beside: ReadonlyArray<Statement>
  ) => Effect.Effect<boolean, BooksUnavailable>
  readonly isSuspended: (account: AccountId) => Effect.Effect<boolean>
}

export interface Welcomed {
  readonly account_id: AccountId
  readonly home_tenant_id: TenantId
  readonly created: boolean
}

export class Tenants extends Context.Tag("tollgate/tenants/Tenants")<Tenants, TenantsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Tenants, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const prices = yield* PriceList
  const belonging = yield* Belonging
  const { byVerifiedEmail, grant, welcome } = Welcome.make(sql, writer, prices, yield* NewTenantBudgets)
  return {
    welcome,
    ...Accounts.make(sql, grant, byVerifiedEmail),
    ...Memberships.make(sql),
    ...Names.make(sql, writer),
    ...Plans.make(sql, writer, belonging),
    ...Suspensions.make(sql, writer, belonging)
  } satisfies TenantsContract
})
