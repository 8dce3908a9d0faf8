/**
 * Finds tenants, people, keys, calls, transfers and payments by what the operator has in hand, and shows a tenant or a person whole. Every
 * list is bounded, and found by an index.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import { Sessions } from "../../people/auth/Sessions.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import * as Reservations from "../../books/ledger/Reservations.ts"
import { availableOf, balanceOf } from "../../books/ledger/Transaction.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import { AccountNotFound } from "../../people/tenants/Problems.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import * as Transfers from "../../money/transfers/Directory.ts"
import { Records } from "../../money/usage/Records.ts"
import type { CallLine, Found, PaymentLine, PersonDetail, PersonLine, TenantDetail, TenantLine } from "./Found.ts"
import { keyset } from "./Keyset.ts"
import type { KeysetOf } from "./Keyset.ts"
import { TenantNotFound } from "./Problems.ts"

export interface OperatorDirectoryContract {
  /** By an id, the beginning of a name, an address or a key, or a reference; at most `limit` of each kind. */
  readonly search: (text: string, limit: number) => Effect.Effect<Found>
  /** All tenants, the newest first. */
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

/** What an id of each kind finds. A text that is no id finds by its beginning. */
const kindOf = (text: string): string | undefined => /^([a-z]{3,4})_[0-9a-z]{22}$/.exec(text)?.[1]

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const ledger = yield* Ledger
  const tenants = yield* Tenants
  const applications = yield* Applications
  const sessions = yield* Sessions
  const purchases = yield* Purchases
  const records = yield* Records
  const known = Tenancy.make(sql)
  const transfers = Transfers.make(sql)
  const reservations = Reservations.make(sql)

  const lined = (found: ReadonlyArray<Tenancy.Listed>): Effect.Effect<ReadonlyArray<TenantLine>> =>
    Effect.map(ledger.accounts(found.map(({ id }) => billingAccountOf(id))), (accounts) =>
      found.map((tenant) => {
        const account = accounts.get(billingAccountOf(tenant.id))
        return {
          ...tenant,
          balance: account === undefined ? 0n : balanceOf(account),
          status: account?.status ?? ("active" as const)
        }
      })
    )

  const callsBy = Effect.fnUntraced(function* (id: string): Effect.fn.Return<ReadonlyArray<CallLine>> {
    const rest = id.slice(id.indexOf("_") + 1)
    const ended = yield* records.find(`use_${rest}`)
    if (ended !== undefined) return [{ ...ended, state: "ended" }]
    const open = yield* reservations.find(`call_${rest}`)
    return open === undefined
      ? []
      : [
          {
            id: open.id,
            state: "open",
            timestamp: open.at,
            tenant_id: open.tenant_id,
            account_id: open.account_id,
            model: open.model,
            provider: open.provider,
            reserved_usd: open.amount
          }
        ]
  })

  const paymentsBy = Effect.fnUntraced(function* (reference: string) {
    const booked = yield* purchases.payments([reference])
    const [grant] = yield* sql<{ tenant_id: TenantId; amount: string; created_at: number }>`
      SELECT tenant_id, CAST(amount AS TEXT) AS amount, created_at FROM tollgate_operator_grants
      WHERE reference = ${reference}`
    return [
      ...booked.map(({ created_at, kind, ...payment }): PaymentLine => ({ ...payment, at: created_at, source: kind })),
      ...(grant === undefined
        ? []
        : [
            {
              id: reference,
              tenant_id: grant.tenant_id,
              amount: fromRow(grant.amount),
              at: grant.created_at,
              source: "grant" as const
            }
          ])
    ]
  }, Effect.orDie)

  const search: OperatorDirectoryContract["search"] = Effect.fn("OperatorDirectory.search")(function* (asked, limit) {
    const text = asked.trim()
    if (text === "") return nothing
    const payments = (yield* paymentsBy(text)).slice(0, limit)
    switch (kindOf(text)) {
      case "ten":
        return { ...nothing, payments, tenants: yield* lined(yield* known.tenantsById([text])) }
      case "bil": {
        const tenant = `ten_${text.slice("bil_".length)}`
        return { ...nothing, payments, tenants: yield* lined(yield* known.tenantsById([tenant])) }
      }
      case "acc": {
        const person = yield* known.person(text)
        return { ...nothing, payments, people: person === undefined ? [] : [personLineOf(person)] }
      }
      case "app": {
        const key = yield* known.key(text)
        return { ...nothing, payments, keys: key === undefined ? [] : [key] }
      }
      case "use":
      case "call":
        return { ...nothing, payments, calls: yield* callsBy(text) }
      case "trf":
        return { ...nothing, payments, transfers: yield* transfers.find(text) }
      default:
    }
    const people = (yield* known.peopleLike(text, limit)).map(personLineOf)
    const named = yield* known.tenantsNamed(text, limit)
    // Whoever is looked for by an address has a home.
    const homes = yield* known.tenantsById(people.map(({ home_tenant_id }) => home_tenant_id))
    const distinct = [...new Map([...named, ...homes].map((tenant) => [tenant.id, tenant])).values()]
    return {
      tenants: yield* lined(distinct.slice(0, limit)),
      people,
      keys: yield* known.keysLike(text, limit),
      calls: [],
      transfers: text.includes("@") ? yield* transfers.toAddress(text.toLowerCase(), limit) : [],
      payments
    }
  })

  const listed: OperatorDirectoryContract["tenants"] = Effect.fn("OperatorDirectory.tenants")(function* (asked) {
    const found = yield* lined(yield* known.tenants(asked.before, asked.limit + 1))
    return keyset(found, asked.limit, ({ id }) => id)
  })

  const tenant: OperatorDirectoryContract["tenant"] = Effect.fn("OperatorDirectory.tenant")(function* (id) {
    const [line] = yield* known.tenantsById([id])
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
      money: {
        balance: balanceOf(account),
        giftable: account.giftable,
        granted: account.granted,
        held: account.held,
        reserved: account.reserved,
        available: availableOf(account)
      },
      has_been_funded: account.funded,
      open_calls: yield* reservations.countOf(id),
      members: yield* tenants.members(id),
      keys: keys.records.map((key) => ({
        id: key.id,
        name: key.name,
        key_prefix: key.key_prefix,
        tenant_id: id,
        account_id: key.account_id,
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        expires_at: key.expires_at ?? null,
        ...(key.spending_limit_usd !== undefined && { spending_limit_usd: key.spending_limit_usd }),
        ...(key.spent_usd !== undefined && { spent_usd: key.spent_usd })
      })),
      total_keys: keys.total_records
    }
  })

  const person: OperatorDirectoryContract["person"] = Effect.fn("OperatorDirectory.person")(function* (id) {
    const found = yield* known.person(id)
    if (found === undefined) return yield* new AccountNotFound({ account_id: id })
    return {
      ...personLineOf(found),
      suspended_at: found.suspended_at,
      identities: yield* known.identities(id),
      memberships: yield* tenants.memberships(id),
      keys: yield* known.keysOfAccount(id, keysMax),
      sign_ins: yield* sessions.ofAccount(id)
    }
  })

  return { search, tenants: listed, tenant, person } satisfies OperatorDirectoryContract
})

const nothing: Found = { tenants: [], people: [], keys: [], calls: [], transfers: [], payments: [] }

const personLineOf = ({ suspended_at, ...person }: Tenancy.Person): PersonLine => ({
  ...person,
  status: suspended_at === null ? "active" : "suspended"
})
