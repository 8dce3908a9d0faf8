/**
 * Searches tenants, people, keys, calls, transfers and payments. An id finds its row, and a reference finds its payments. Any other text matches as a
 * prefix.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import type * as Reservations from "../../books/ledger/rows/Reservations.ts"
import type { PurchasesContract } from "../../money/payments/Purchases.ts"
import type * as Tenancy from "../../people/tenants/Directory.ts"
import type * as Transfers from "../../money/transfers/Directory.ts"
import type { RecordsContract } from "../../money/usage/Records.ts"
import type { CallLine, Found, PaymentLine } from "./Found.ts"
import { personLineOf, tenantLines } from "./Lines.ts"

export interface SearchParts {
  readonly sql: SqlClient
  readonly ledger: LedgerContract
  readonly purchases: PurchasesContract
  readonly records: RecordsContract
  readonly tenancy: ReturnType<typeof Tenancy.make>
  readonly transfers: ReturnType<typeof Transfers.make>
  readonly reservations: ReturnType<typeof Reservations.make>
}

type Lines = Omit<Found, "tenant_names">

const nothing: Lines = { tenants: [], people: [], keys: [], calls: [], transfers: [], payments: [] }

/** Returns the prefix of an id, or `undefined` if the text is not an id. */
const prefixOf = (text: string): string | undefined => /^([a-z]{3,4})_[0-9a-z]{22}$/.exec(text)?.[1]

/** Creates the search. It returns at most `limit` results of each kind. */
export const search = (parts: SearchParts) =>
  Effect.fn("OperatorDirectory.search")(function* (asked: string, limit: number): Effect.fn.Return<Found> {
    const text = asked.trim()
    if (text === "") return { ...nothing, tenant_names: {} }
    const payments = (yield* paymentsBy(parts, text)).slice(0, limit)
    const byId = yield* findById(parts, text)
    const lines: Lines = {
      ...(byId === undefined ? yield* findByText(parts, text, limit) : { ...nothing, ...byId }),
      payments
    }
    const names = yield* parts.tenancy.namesOf(tenantsIn(lines))
    return { ...lines, tenant_names: Object.fromEntries(names) }
  })

/** Returns the tenants that the found lines mention only by id. */
const tenantsIn = ({ calls, keys, payments, transfers }: Lines): ReadonlyArray<string> => [
  ...[...keys, ...calls, ...payments].map(({ tenant_id }) => tenant_id),
  ...transfers.map(({ sender_tenant_id }) => sender_tenant_id)
]

/** Finds a row by its id. Returns `undefined` if the text is not an id with a known prefix. */
const findById = Effect.fnUntraced(function* (
  parts: SearchParts,
  text: string
): Effect.fn.Return<Partial<Lines> | undefined> {
  const { ledger, tenancy, transfers } = parts
  switch (prefixOf(text)) {
    case "ten":
      return { tenants: yield* tenantLines(ledger, yield* tenancy.tenantsById([text])) }
    case "bil": {
      const tenant = `ten_${text.slice("bil_".length)}`
      return { tenants: yield* tenantLines(ledger, yield* tenancy.tenantsById([tenant])) }
    }
    case "acc": {
      const person = yield* tenancy.person(text)
      return { people: person === undefined ? [] : [personLineOf(person)] }
    }
    case "app": {
      const key = yield* tenancy.key(text)
      return { keys: key === undefined ? [] : [key] }
    }
    case "use":
    case "call":
      return { calls: yield* callsBy(parts, text) }
    case "trf":
      return { transfers: yield* transfers.find(text) }
    default:
      return undefined
  }
})

const findByText = Effect.fnUntraced(function* (
  { ledger, tenancy, transfers }: SearchParts,
  text: string,
  limit: number
): Effect.fn.Return<Lines> {
  const people = (yield* tenancy.peopleLike(text, limit)).map(personLineOf)
  const named = yield* tenancy.tenantsNamed(text, limit)
  // A search for a person also shows that person's home tenant.
  const homes = yield* tenancy.tenantsById(people.map(({ home_tenant_id }) => home_tenant_id))
  const distinct = [...new Map([...named, ...homes].map((tenant) => [tenant.id, tenant])).values()]
  return {
    ...nothing,
    tenants: yield* tenantLines(ledger, distinct.slice(0, limit)),
    people,
    keys: yield* tenancy.keysLike(text, limit),
    transfers: text.includes("@") ? yield* transfers.toAddress(text.toLowerCase(), limit) : []
  }
})

const callsBy = Effect.fnUntraced(function* (
  { records, reservations }: SearchParts,
  id: string
): Effect.fn.Return<ReadonlyArray<CallLine>> {
  const rest = id.slice(id.indexOf("_") + 1)
  const ended = yield* records.find(`use_${rest}`)
  if (ended !== undefined) return [{ ...ended, ...(yield* records.vendorOf(ended.id)), state: "ended" }]
  const open = yield* reservations.find(`call_${rest}`)
  if (open === undefined) return []
  const { account_id, amount, at, model, provider, tenant_id } = open
  return [{ id: open.id, state: "open", timestamp: at, tenant_id, account_id, model, provider, reserved_usd: amount }]
})

const paymentsBy = Effect.fnUntraced(function* ({ purchases, sql }: SearchParts, reference: string) {
  const booked = yield* purchases.payments([reference])
  const grants = yield* sql<{ tenant_id: TenantId; amount: string; created_at: number }>`
    SELECT tenant_id, CAST(amount AS TEXT) AS amount, created_at FROM tollgate_operator_grants
    WHERE reference = ${reference}`
  return [
    ...booked.map(({ created_at, kind, ...payment }): PaymentLine => ({ ...payment, at: created_at, source: kind })),
    ...grants.map(({ amount, created_at, tenant_id }): PaymentLine => {
      return { id: reference, tenant_id, amount: fromRow(amount), at: created_at, source: "grant" }
    })
  ]
}, Effect.orDie)
