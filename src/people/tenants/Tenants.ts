/** Accounts and the tenants that they belong to: made at the first sign-in, and read. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { Actor, Caller } from "../../kernel/Caller.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import { Writer } from "../../books/ledger/Writer.ts"
import { PriceList } from "../../books/prices/PriceList.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import type { Account, Me, Member, Membership, Plan, Role } from "./Account.ts"
import * as Accounts from "./Accounts.ts"
import { Belonging } from "./Belonging.ts"
import * as Memberships from "./Memberships.ts"
import * as Plans from "./Plans.ts"
import type { AccountNotFound, InsufficientRole } from "./Problems.ts"
import * as Suspensions from "./Suspensions.ts"
import * as Welcome from "./Welcome.ts"

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
  /** The role of an active member; `undefined` for everybody else, and for a person who is suspended. */
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
  /**
   * Suspends a person: from then on no credential of theirs lets anybody in. `beside` stands in the same transaction. `false`, and nothing is
   * done, where they are suspended already or there is no such account.
   */
  readonly suspend: (account: AccountId, beside: ReadonlyArray<Statement>) => Effect.Effect<boolean, BooksUnavailable>
  /** Ends that; `false` where they are not suspended. */
  readonly activate: (account: AccountId, beside: ReadonlyArray<Statement>) => Effect.Effect<boolean, BooksUnavailable>
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
  const { byVerifiedEmail, grant, welcome } = Welcome.make(sql, writer, prices)
  return {
    welcome,
    ...Accounts.make(sql, grant, byVerifiedEmail),
    ...Memberships.make(sql),
    ...Plans.make(sql, writer, belonging),
    ...Suspensions.make(sql, writer, belonging)
  } satisfies TenantsContract
})
