/** Caches each credential's payer order for a limited time. A change to one of the underlying facts invalidates the cached order. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Duration, Effect } from "effect"
import type { Clock } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { earlier } from "../../kernel/hot/Earlier.ts"
import type { AccountId, BillingAccountId } from "../../kernel/Ids.ts"
import type { Source } from "../../books/ledger/rules/Transaction.ts"
import { isCurrent } from "../../people/tenants/Belonging.ts"
import type { BelongingContract, Mark } from "../../people/tenants/Belonging.ts"
import { cacheLifetime } from "../../people/tenants/KeyCallers.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import { orderOf } from "./Order.ts"
import { maySpend } from "./Places.ts"
import type { Place, Places } from "./Places.ts"
import type { Selection } from "./Source.ts"

/** The fields of a caller that determine the payer order. */
export type Asker = Pick<Caller, "account_id" | "tenant_id" | "team_first">

const cachedMax = 50_000

/** An account's cached orders, by the credential's tenant and kind. */
interface Known {
  /** The marks of the account and of all its tenants. */
  readonly marks: ReadonlyArray<Mark>
  readonly until: number
  readonly orders: Map<string, ReadonlyArray<Source>>
}

interface Parts {
  readonly sql: SqlClient
  readonly tenants: TenantsContract
  readonly belonging: BelongingContract
  readonly places: Places
  readonly clock: Clock.Clock
}

export const make = ({ belonging, clock, places, sql, tenants }: Parts) => {
  /** A plain `Map`, because the gate reads it on every call and must not allocate. */
  const known = new Map<AccountId, Known>()

  const selectionOf = (account: AccountId): Effect.Effect<Selection | null> =>
    sql<{
      pinned: BillingAccountId | null
    }>`SELECT pinned FROM tollgate_pooling_selections WHERE account_id = ${account}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => {
        if (row === undefined) return null
        return row.pinned === null ? { mode: "automatic" } : { mode: "pinned", billing_account_id: row.pinned }
      })
    )

  const load = Effect.fnUntraced(function* (asker: Asker, key: string, now: number) {
    const { account_id, tenant_id } = asker
    // The marks are read before the facts, so a concurrent change to a fact invalidates them.
    const account = belonging.markOf(account_id)
    const belongs = yield* tenants.memberships(account_id)
    const marks = [account, ...belongs.map((membership) => belonging.markOf(membership.tenant_id))]
    const all = yield* places.among(tenant_id, yield* tenants.memberships(account_id))
    const selection = yield* selectionOf(account_id)
    const there = known.get(account_id)
    const sources = earlier(there?.orders.get(key), orderAmong(asker, all, selection))
    // A fact changed during the read, so the result is not cached.
    if (!isCurrent(marks)) return sources
    if (there !== undefined && there.until > now && isCurrent(there.marks)) there.orders.set(key, sources)
    else {
      if (known.size >= cachedMax) known.delete(known.keys().next().value!)
      const until = now + Duration.toMillis(cacheLifetime)
      known.set(account_id, { marks, until, orders: new Map([[key, sources]]) })
    }
    return sources
  })

  /** Reads the cache when called, not when the effect runs. A cached order is returned as a value, so the gate can read it without a fiber step. */
  const payers = (asker: Asker): Effect.Effect<ReadonlyArray<Source>> => {
    const now = clock.unsafeCurrentTimeMillis()
    const key = asker.team_first ? `team first ${asker.tenant_id}` : asker.tenant_id
    const there = known.get(asker.account_id)
    const sources =
      there !== undefined && there.until > now && isCurrent(there.marks) ? there.orders.get(key) : undefined
    return sources === undefined ? load(asker, key, now) : Effect.succeed(sources)
  }

  return { payers, selectionOf }
}

/** Orders the payers among these places. */
export const orderAmong = (
  asker: Asker,
  places: ReadonlyArray<Place>,
  selection: Selection | null
): ReadonlyArray<Source> =>
  orderOf({
    tenant_id: asker.tenant_id,
    team_first: asker.team_first,
    teams: places.flatMap((place) => (place.kind === "team" && maySpend(place) ? [place.membership.tenant_id] : [])),
    pinned: selection?.mode === "pinned" ? selection.billing_account_id : undefined,
    barred: places.some((place) => place.kind === "own" && !maySpend(place))
  })
