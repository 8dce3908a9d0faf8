/** Who pays for a person's calls: the order for the gate, and what the person sees of it and may choose. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import type { MemberSpend } from "../billing/BillingAccounts.ts"
import { Payers } from "../gate/Payers.ts"
import type { Caller } from "../kernel/Caller.ts"
import { billingAccountOf } from "../kernel/Ids.ts"
import type { AccountId, BillingAccountId, TenantId } from "../kernel/Ids.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import * as Statements from "../ledger/Statements.ts"
import { availableOf, balanceOf, statement } from "../ledger/Transaction.ts"
import type { Account, Source } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import type { Membership } from "../tenants/Account.ts"
import { cacheLifetime } from "../tenants/Applications.ts"
import { Belonging, isCurrent } from "../tenants/Belonging.ts"
import type { Mark } from "../tenants/Belonging.ts"
import { manages } from "../tenants/Organisation.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Sums } from "../usage/Sums.ts"
import type { Window } from "../usage/Window.ts"
import { orderOf } from "./Order.ts"
import { InvalidBillingSource } from "./Problems.ts"
import type { BillingSource, BillingSources, Capacity, PayerUsage, Selection } from "./Source.ts"

/** Who calls, as far as the order of charging follows from it. */
type Asker = Pick<Caller, "account_id" | "tenant_id" | "team_first">

/** Money is nano-USD. */
export interface PoolingContract {
  /** The order of charging for a credential; remembered as long as nothing that it follows from changes. */
  readonly payers: (caller: Asker) => Effect.Effect<ReadonlyArray<Source>>
  readonly sources: (caller: Asker) => Effect.Effect<BillingSources>
  /** Holds for everything that the account calls, by whichever credential. */
  readonly select: (request: {
    readonly caller: Asker
    readonly selection: Selection
  }) => Effect.Effect<BillingSources, InvalidBillingSource | BooksUnavailable>
  /** By whole UTC days. */
  readonly usage: (request: {
    readonly caller: Pick<Caller, "account_id">
    readonly window: Window
  }) => Effect.Effect<PayerUsage>
  readonly capacity: (caller: Asker) => Effect.Effect<Capacity>
}

export class Pooling extends Context.Tag("tollgate/pooling/Pooling")<Pooling, PoolingContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Pooling, make))
  /** Tells the gate who may pay. */
  static readonly layerPayers = Layer.effect(
    Payers,
    Effect.map(Pooling, ({ payers }) => payers)
  )
}

const cachedMax = 50_000

/** What is remembered of an account, by the tenant and kind of its credential. */
interface Known {
  /** Of the account, and of every tenant that it belongs to. */
  readonly marks: ReadonlyArray<Mark>
  readonly until: number
  readonly orders: Map<string, ReadonlyArray<Source>>
}

/** A tenant on a team plan in which the caller is an active member, or their own. */
interface Place {
  readonly membership: Membership
  readonly kind: "own" | "team"
  readonly member_spend: MemberSpend
}

/** The same with its billing account. */
interface FundedPlace extends Place {
  readonly account: Account | undefined
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const ledger = yield* Ledger
  const tenants = yield* Tenants
  const billing = yield* BillingAccounts
  const belonging = yield* Belonging
  const sums = yield* Sums
  /** Not Effect's `Cache`: the gate reads it for every call, without an allocation. */
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

  /** The caller's own first, then every team on a plan that is active. */
  const placesOf = Effect.fnUntraced(function* (tenant: TenantId, memberships: ReadonlyArray<Membership>) {
    const active = memberships.filter(({ status }) => status === "active")
    const own = active.filter(({ tenant_id }) => tenant_id === tenant)
    const teams = active.filter(({ plan, tenant_id }) => tenant_id !== tenant && plan.status === "active")
    const spend = yield* billing.memberSpend([...own, ...teams])
    return [...own, ...teams].map((membership): Place => ({
      membership,
      kind: membership.tenant_id === tenant ? "own" : "team",
      member_spend: spend.get(membership.tenant_id)!
    }))
  })

  const fundedPlaces = Effect.fnUntraced(function* ({ account_id, tenant_id }: Asker) {
    const places = yield* placesOf(tenant_id, yield* tenants.memberships(account_id))
    const accounts = yield* ledger.accounts(places.map(({ membership }) => billingAccountOf(membership.tenant_id)))
    return places.map((place): FundedPlace => ({
      ...place,
      account: accounts.get(billingAccountOf(place.membership.tenant_id))
    }))
  })

  const order = (asker: Asker, all: ReadonlyArray<Place>, selection: Selection | null): ReadonlyArray<Source> =>
    orderOf({
      tenant_id: asker.tenant_id,
      team_first: asker.team_first,
      teams: all.flatMap((place) => (place.kind === "team" && maySpend(place) ? [place.membership.tenant_id] : [])),
      pinned: selection?.mode === "pinned" ? selection.billing_account_id : undefined,
      barred: all.some((place) => place.kind === "own" && !maySpend(place))
    })

  const look = Effect.fnUntraced(function* (asker: Asker, key: string, now: number) {
    const { account_id, tenant_id } = asker
    // The marks are taken before what is remembered is read: a change in between ends them.
    const account = belonging.markOf(account_id)
    const belongs = yield* tenants.memberships(account_id)
    const marks = [account, ...belongs.map((membership) => belonging.markOf(membership.tenant_id))]
    const places = yield* placesOf(tenant_id, yield* tenants.memberships(account_id))
    const sources = order(asker, places, yield* selectionOf(account_id))
    // What changed while it was read is not remembered, least of all with what was read after the change.
    if (!isCurrent(marks)) return sources
    const there = known.get(account_id)
    if (there !== undefined && there.until > now && isCurrent(there.marks)) there.orders.set(key, sources)
    else {
      if (known.size >= cachedMax) known.delete(known.keys().next().value!)
      const until = now + Duration.toMillis(cacheLifetime)
      known.set(account_id, { marks, until, orders: new Map([[key, sources]]) })
    }
    return sources
  })

  const payers = (asker: Asker): Effect.Effect<ReadonlyArray<Source>> =>
    Effect.clockWith((clock) => {
      const now = clock.unsafeCurrentTimeMillis()
      const key = asker.team_first ? `team first ${asker.tenant_id}` : asker.tenant_id
      const there = known.get(asker.account_id)
      const sources =
        there !== undefined && there.until > now && isCurrent(there.marks) ? there.orders.get(key) : undefined
      return sources === undefined ? look(asker, key, now) : Effect.succeed(sources)
    })

  const sources = Effect.fn("Pooling.sources")(function* (asker: Asker) {
    const all = (yield* fundedPlaces(asker)).filter(isSource)
    const selection = yield* selectionOf(asker.account_id)
    const sequence = order(asker, all, selection).map(({ billing_account_id }) => billing_account_id)
    // Without an own account that is active nothing is charged at all.
    const ownActive = all.some(({ account, kind }) => kind === "own" && account?.status === "active")
    const canPay = (place: FundedPlace): boolean =>
      ownActive && place.account?.status === "active" && availableOf(place.account) > 0n && maySpend(place)
    const placeOf = ({ membership }: FundedPlace): number => {
      const at = sequence.indexOf(billingAccountOf(membership.tenant_id))
      return at === -1 ? sequence.length : at
    }
    const ordered = [...all].sort((a, b) => placeOf(a) - placeOf(b))
    const selected = ordered.find(canPay) ?? ordered[0]
    const teams = ordered.filter((place) => place.kind === "team" && canPay(place))
    return {
      sources: ordered.map((place) => billingSourceOf(place, canPay(place), place === selected)),
      selection,
      selection_required:
        selection?.mode !== "pinned" &&
        teams.length > 1 &&
        !ordered.some((place) => place.kind === "own" && canPay(place))
    }
  })

  const select: PoolingContract["select"] = Effect.fn("Pooling.select")(function* ({ caller: asker, selection }) {
    const pinned = selection.mode === "pinned" ? selection.billing_account_id : null
    if (pinned !== null) {
      const { sources: there } = yield* sources(asker)
      if (!there.some(({ available, billing_account_id }) => available && billing_account_id === pinned)) {
        return yield* new InvalidBillingSource({ billing_account_id: pinned })
      }
    }
    const now = yield* Clock.currentTimeMillis
    const row = sql`INSERT INTO tollgate_pooling_selections (account_id, pinned, updated_at)
      VALUES (${asker.account_id}, ${pinned}, ${now})
      ON CONFLICT (account_id) DO UPDATE SET pinned = excluded.pinned, updated_at = excluded.updated_at`
    yield* Statements.write(writer, statement(row))
    yield* belonging.changed(asker.account_id)
    return yield* sources(asker)
  })

  const usage: PoolingContract["usage"] = Effect.fn("Pooling.usage")(({ caller, window }) =>
    sums.byPayer({ account_id: caller.account_id, window })
  )

  const capacity = Effect.fn("Pooling.capacity")(function* (asker: Asker) {
    const there = (yield* fundedPlaces(asker)).filter(isSource).flatMap((place) =>
      place.account === undefined || !maySpend(place)
        ? []
        : [
            {
              billing_account_id: place.account.id as BillingAccountId,
              tenant_id: place.membership.tenant_id,
              kind: place.kind,
              balance: balanceOf(place.account),
              held_credits: place.account.held
            }
          ]
    )
    return {
      total_balance: there.reduce((sum, { balance }) => sum + balance, 0n),
      total_held: there.reduce((sum, { held_credits }) => sum + held_credits, 0n),
      sources: there
    }
  })

  return { payers, sources, select, usage, capacity } satisfies PoolingContract
})

/** A team whose billing account is not active pays nothing, whatever its balance; the gate passes over it too. */
const isSource = ({ account, kind }: FundedPlace): boolean => kind === "own" || account?.status === "active"

/** Owners and admins may always spend their tenant's credit; plain members where it lets them, by whichever credential. */
const maySpend = ({ member_spend, membership }: Place): boolean => member_spend.enabled || manages(membership.role)

const billingSourceOf = (
  { account, kind, member_spend, membership }: FundedPlace,
  available: boolean,
  selected: boolean
): BillingSource => ({
  billing_account_id: billingAccountOf(membership.tenant_id),
  tenant_id: membership.tenant_id,
  tenant_name: membership.tenant_name,
  kind,
  role: membership.role,
  is_home: membership.is_home,
  available,
  selected,
  credits: { balance: account === undefined ? 0n : balanceOf(account) },
  ...(kind === "team" && {
    member_spend_enabled: member_spend.enabled,
    member_spend_source: member_spend.source
  })
})
