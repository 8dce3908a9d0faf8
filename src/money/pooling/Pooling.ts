/** Decides which billing accounts pay for a user's calls, and lets the user view and choose them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import { Payers } from "../../books/gate/Payers.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { BillingAccountId } from "../../kernel/Ids.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { availableOf, balanceOf, statement } from "../../books/ledger/rules/Transaction.ts"
import type { Source } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Sums } from "../usage/Sums.ts"
import type { Window } from "../usage/Window.ts"
import * as PayerOrders from "./PayerOrders.ts"
import type { Asker } from "./PayerOrders.ts"
import { orderAmong } from "./PayerOrders.ts"
import * as Places from "./Places.ts"
import { billingSourceOf, isSource, maySpend } from "./Places.ts"
import type { FundedPlace } from "./Places.ts"
import { InvalidBillingSource } from "./Problems.ts"
import type { BillingSources, Capacity, PayerUsage, Selection } from "./Source.ts"

/** Money is in nano-USD. */
export interface PoolingContract {
  /** Returns a credential's payer order. The order is cached for a limited time, and a change to one of the underlying facts invalidates it. */
  readonly payers: (caller: Asker) => Effect.Effect<ReadonlyArray<Source>>
  readonly sources: (caller: Asker) => Effect.Effect<BillingSources>
  /** Saves the choice, which applies to all of the account's calls regardless of credential. */
  readonly select: (request: {
    readonly caller: Asker
    readonly selection: Selection
  }) => Effect.Effect<BillingSources, InvalidBillingSource | BooksUnavailable>
  /** Returns the amount that each source paid within a window of whole UTC days. */
  readonly usage: (request: {
    readonly caller: Pick<Caller, "account_id">
    readonly window: Window
  }) => Effect.Effect<PayerUsage>
  readonly capacity: (caller: Asker) => Effect.Effect<Capacity>
}

export class Pooling extends Context.Tag("tollgate/pooling/Pooling")<Pooling, PoolingContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Pooling, make))
  /** Provides the gate with its payers. */
  static readonly layerPayers = Layer.effect(
    Payers,
    Effect.map(Pooling, ({ payers }) => payers)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const tenants = yield* Tenants
  const belonging = yield* Belonging
  const sums = yield* Sums
  const places = Places.make({ tenants, billing: yield* BillingAccounts, ledger: yield* Ledger })
  const payerOrders = PayerOrders.make({ sql, tenants, belonging, places, clock: yield* Effect.clock })
  const sources = Effect.fn("Pooling.sources")(function* (asker: Asker) {
    const funded = (yield* places.funded(asker)).filter(isSource)
    const selection = yield* payerOrders.selectionOf(asker.account_id)
    return billingSourcesOf(funded, orderAmong(asker, funded, selection), selection)
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
    yield* afterCommit(Statements.write(writer, statement(row)), belonging.changed(asker.account_id))
    return yield* sources(asker)
  })

  const usage: PoolingContract["usage"] = Effect.fn("Pooling.usage")(({ caller, window }) =>
    sums.byPayer({ account_id: caller.account_id, window })
  )

  const capacity = Effect.fn("Pooling.capacity")((asker: Asker) =>
    Effect.map(places.funded(asker), (funded) => capacityOf(funded.filter(isSource)))
  )

  return { payers: payerOrders.payers, sources, select, usage, capacity } satisfies PoolingContract
})

/** Lists the sources in payer order and marks the paying source as selected. */
const billingSourcesOf = (
  funded: ReadonlyArray<FundedPlace>,
  order: ReadonlyArray<Source>,
  selection: Selection | null
): BillingSources => {
  const sequence = order.map(({ billing_account_id }) => billing_account_id)
  // No source can pay unless the user's own account is active.
  const ownActive = funded.some(({ account, kind }) => kind === "own" && account?.status === "active")
  const canPay = (place: FundedPlace): boolean =>
    ownActive && place.account?.status === "active" && availableOf(place.account) > 0n && maySpend(place)
  const placeOf = ({ membership }: FundedPlace): number => {
    const at = sequence.indexOf(billingAccountOf(membership.tenant_id))
    return at === -1 ? sequence.length : at
  }
  const ordered = [...funded].sort((a, b) => placeOf(a) - placeOf(b))
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
}

const capacityOf = (funded: ReadonlyArray<FundedPlace>): Capacity => {
  const sources = funded.flatMap((place) =>
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
    total_balance: sources.reduce((sum, { balance }) => sum + balance, 0n),
    total_held: sources.reduce((sum, { held_credits }) => sum + held_credits, 0n),
    sources
  }
}
