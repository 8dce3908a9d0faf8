/**
 * The operator's view of tenants and people: search, the list of tenants, and the details of one tenant or person. Every list has a limit and uses an
 * index.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import { Sessions } from "../../people/auth/Sessions.ts"
import type { SessionsContract } from "../../people/auth/Sessions.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import * as Reservations from "../../books/ledger/rows/Reservations.ts"
import { availableOf, balanceOf } from "../../books/ledger/rules/Transaction.ts"
import type { Account } from "../../books/ledger/rules/Transaction.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import type { Application } from "../../people/tenants/Application.ts"
import { AccountNotFound } from "../../people/tenants/Problems.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import type { ApplicationsContract } from "../../people/tenants/Applications.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import * as Transfers from "../../money/transfers/Directory.ts"
import { Records } from "../../money/usage/Records.ts"
import type { Found, PersonDetail, TenantDetail, TenantLine } from "./Found.ts"
import { keyset } from "./Keyset.ts"
import type { KeysetOf } from "./Keyset.ts"
import { personLineOf, tenantLines } from "./Lines.ts"
import { TenantNotFound } from "./Problems.ts"
import { search } from "./Search.ts"
import type { SearchParts } from "./Search.ts"

export interface OperatorDirectoryContract {
  /** Searches by id, by reference, or by the beginning of a name, an address or a key. Returns at most `limit` of each kind. */
  readonly search: (text: string, limit: number) => Effect.Effect<Found>
  /** Returns a page of all tenants, newest first. */
  readonly tenants: (asked: {
    readonly limit: number
    readonly before?: string | undefined
  }) => Effect.Effect<KeysetOf<TenantLine>>
  readonly tenant: (id: TenantId) => Effect.Effect<TenantDetail, TenantNotFound>
  readonly person: (id: AccountId) => Effect.Effect<PersonDetail, AccountNotFound>
}

const keysMax = 200

export class OperatorDirectory extends Context.Tag("tollgate/operator/Directory")<
  OperatorDirectory,
  OperatorDirectoryContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorDirectory, make))
}

interface Parts extends SearchParts {
  readonly tenants: TenantsContract
  readonly applications: ApplicationsContract
  readonly sessions: SessionsContract
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const parts: Parts = {
    sql,
    ledger: yield* Ledger,
    tenants: yield* Tenants,
    applications: yield* Applications,
    sessions: yield* Sessions,
    purchases: yield* Purchases,
    records: yield* Records,
    tenancy: Tenancy.make(sql),
    transfers: Transfers.make(sql),
    reservations: Reservations.make(sql)
  }
  return {
    search: search(parts),
    tenants: listTenants(parts),
    tenant: findTenant(parts),
    person: findPerson(parts)
  } satisfies OperatorDirectoryContract
})

const listTenants = ({ ledger, tenancy }: Parts): OperatorDirectoryContract["tenants"] =>
  Effect.fn("OperatorDirectory.tenants")(function* ({ before, limit }) {
    const found = yield* tenantLines(ledger, yield* tenancy.tenants(before, limit + 1))
    return keyset(found, limit, ({ id }) => id)
  })

const findTenant = ({ applications, ledger, reservations, tenancy, tenants }: Parts) =>
  Effect.fn("OperatorDirectory.tenant")(function* (id: TenantId) {
    const [line] = yield* tenancy.tenantsById([id])
    const account = Option.getOrUndefined(yield* ledger.accountOfTenant(id))
    if (line === undefined || account === undefined) return yield* new TenantNotFound({ tenant_id: id })
    const keys = yield* applications.list({
      caller: { tenant_id: id, account_id: null },
      page: 1,
      per_page: keysMax
    })
    return {
      id,
      name: line.name,
      created_at: line.created_at,
      status: account.status,
      plan: yield* tenants.plan(id),
      money: moneyOf(account),
      has_been_funded: account.funded,
      open_calls: yield* reservations.countOf(id),
      members: yield* tenants.members(id),
      keys: keys.records.map((key) => tenantKeyOf(id, key)),
      total_keys: keys.total_records
    } satisfies TenantDetail
  })

const moneyOf = (account: Account): TenantDetail["money"] => ({
  balance: balanceOf(account),
  giftable: account.giftable,
  granted: account.granted,
  held: account.held,
  reserved: account.reserved,
  available: availableOf(account)
})

const tenantKeyOf = (tenant_id: TenantId, key: Application): TenantDetail["keys"][number] => ({
  id: key.id,
  name: key.name,
  key_prefix: key.key_prefix,
  tenant_id,
  account_id: key.account_id,
  created_at: key.created_at,
  last_used_at: key.last_used_at,
  expires_at: key.expires_at ?? null,
  ...(key.spending_limit_usd !== undefined && { spending_limit_usd: key.spending_limit_usd }),
  ...(key.spent_usd !== undefined && { spent_usd: key.spent_usd })
})

const findPerson = ({ sessions, tenancy, tenants }: Parts): OperatorDirectoryContract["person"] =>
  Effect.fn("OperatorDirectory.person")(function* (id) {
    const found = yield* tenancy.person(id)
    if (found === undefined) return yield* new AccountNotFound({ account_id: id })
    return {
      ...personLineOf(found),
      suspended_at: found.suspended_at,
      identities: yield* tenancy.identities(id),
      memberships: yield* tenants.memberships(id),
      keys: yield* tenancy.keysOfAccount(id, keysMax),
      sign_ins: yield* sessions.ofAccount(id)
    }
  })
