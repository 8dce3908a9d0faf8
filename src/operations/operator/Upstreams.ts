/**
 * Provides the upstreams' health as this node observes it, the charges of all tenants by day, and the comparison of vendors' invoices with charges.
 *
 * Where the specification is silent:
 * - An invoice line is compared with the charges on its UTC day for the models that the vendor serves under the line's name. The configuration maps
 *   names; an unmapped name is taken for the service's own model name. Charges without a line form a separate row with 0 as the vendor's amount.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Models } from "../../calls/prompts/Model.ts"
import type { Model } from "../../calls/prompts/Model.ts"
import { EmbeddingModels } from "../../calls/embeddings/Settings.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { day, parse, toDay } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { DailySum } from "../../books/ledger/totals/ProviderTotals.ts"
import { Readiness } from "../ops/Readiness.ts"
import { RoutingLog } from "../ops/RoutingLog.ts"
import { RerankModels } from "../../calls/rerank/Settings.ts"
import { Upstreams } from "../../upstream/models/Upstreams.ts"
import { Daily } from "../../money/usage/Daily.ts"
import type { DailyContract } from "../../money/usage/Daily.ts"
import { driftOf } from "./Drift.ts"
import * as Invoice from "./Invoice.ts"
import type { Costs, Drift, UpstreamList } from "./Upstream.ts"

export interface OperatorUpstreamsContract {
  readonly list: Effect.Effect<UpstreamList>
  /** Returns charges by day, provider and model. The range includes `from` and `to`. It defaults to the last seven days. */
  readonly costs: (days: {
    readonly from?: string | undefined
    readonly to?: string | undefined
  }) => Effect.Effect<Costs, InvalidRequest>
  /** Compares an invoice (CSV) with the charges for one provider, or for all of them. */
  readonly drift: (invoice: {
    readonly text: string
    readonly provider?: string | undefined
  }) => Effect.Effect<Drift, InvalidRequest>
}

export class OperatorUpstreams extends Context.Tag("tollgate/operator/Upstreams")<
  OperatorUpstreams,
  OperatorUpstreamsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorUpstreams, make))
}

export const daysMax = 92
const rowsMax = 20_000

interface Routed {
  readonly id: string
  readonly routes: ReadonlyArray<{ readonly upstream: string; readonly model: string }>
}

const make = Effect.gen(function* () {
  const { models: chatModels } = yield* Models
  const models: ReadonlyArray<Routed> = [...chatModels, ...(yield* EmbeddingModels), ...(yield* RerankModels)]
  const daily = yield* Daily
  return {
    list: yield* listing(models),
    costs: costs(daily, vendorCosts(chatModels)),
    drift: drift(daily, vendorNames(models))
  } satisfies OperatorUpstreamsContract
})

const listing = Effect.fnUntraced(function* (models: ReadonlyArray<Routed>) {
  const { last } = yield* RoutingLog
  const upstreams = yield* Upstreams
  const readiness = yield* Readiness
  // @effect-diagnostics-next-line returnEffectInGen:off -- it is created once and serves every request
  return Effect.sync((): UpstreamList => {
    const figures = [...upstreams.values()].map(({ health, name, speaks }) => ({ name, speaks, ...health.figures() }))
    const failing = new Set(figures.filter(({ state }) => state === "failing").map(({ name }) => name))
    return {
      node: readiness.name ?? null,
      upstreams: figures,
      decisions: last().map(({ request_id, ...decision }) => ({ ...decision, request_id: request_id ?? null })),
      models: models.map(({ id, routes }) => {
        const names = routes.map(({ upstream }) => upstream)
        return { model: id, upstreams: names, serving: names.find((name) => !failing.has(name)) ?? null }
      })
    }
  })
})

/** Rejects a range that is too long or ends before it begins. */
const within = (first: number, last: number): Effect.Effect<void, InvalidRequest> =>
  last < first
    ? InvalidRequest.of("to", "must not be before from")
    : (last - first) / day >= daysMax
      ? InvalidRequest.of("from", `must be at most ${daysMax - 1} days before to`)
      : Effect.void

/** Returns a function that computes the vendor's charge for a day's calls. It returns `null` if no `cost` is configured. */
const vendorCosts = (models: ReadonlyArray<Model>): ((sum: DailySum) => Nano | null) => {
  const costs = new Map(
    models.flatMap(({ id, routes }) =>
      routes.flatMap(({ cost, upstream }) => (cost === undefined ? [] : [[`${upstream}\n${id}`, cost] as const]))
    )
  )
  return (sum) => {
    const cost = costs.get(`${sum.provider}\n${sum.model}`)
    if (cost === undefined) return null
    return charge([
      { units: sum.prompt_tokens, price: cost.prompt_price },
      { units: sum.completion_tokens, price: cost.completion_price },
      { units: sum.requests - sum.failures, price: cost.request_price }
    ])
  }
}

/** Returns a function that finds the vendor's name for a sum's model. It returns our name if none is configured. */
const vendorNames = (models: ReadonlyArray<Routed>): ((sum: DailySum) => string) => {
  const names = new Map(
    models.flatMap(({ id, routes }) => routes.map(({ model, upstream }) => [`${upstream}\n${id}`, model] as const))
  )
  return ({ model, provider }) => names.get(`${provider}\n${model}`) ?? model
}

const costs = (
  daily: DailyContract,
  vendorCostOf: (sum: DailySum) => Nano | null
): OperatorUpstreamsContract["costs"] =>
  Effect.fn("OperatorUpstreams.costs")(function* ({ from, to }) {
    const now = yield* Clock.currentTimeMillis
    const last = (to === undefined ? undefined : parse(to)) ?? now - (now % day)
    const first = (from === undefined ? undefined : parse(from)) ?? last - 6 * day
    yield* within(first, last)
    const sums = yield* daily.sums({ first, last })
    return {
      from: toDay(first),
      to: toDay(last),
      rows: sums.slice(0, rowsMax).map((sum) => ({ ...sum, day: toDay(sum.day), vendor_cost: vendorCostOf(sum) })),
      truncated: sums.length > rowsMax
    }
  })

const drift = (daily: DailyContract, vendorNameOf: (sum: DailySum) => string): OperatorUpstreamsContract["drift"] =>
  Effect.fn("OperatorUpstreams.drift")(function* ({ provider, text }) {
    const invoice = yield* invoiceOf(text)
    const days = invoice.lines.map((line) => line.day).toSorted()
    const [from] = days
    const to = days.at(-1)
    if (from === undefined || to === undefined) {
      const why = invoice.bad_lines[0]
      return yield* InvalidRequest.of(
        "",
        why === undefined
          ? "must contain at least one invoice line"
          : `no line can be read; line ${why.line}: ${why.why}`
      )
    }
    const [first, last] = [parse(from)!, parse(to)!]
    yield* within(first, last)
    const sums = yield* daily.sums({ first, last })
    const ours = sums.filter((sum) => provider === undefined || sum.provider === provider)
    return { from, to, ...driftOf(invoice, ours, vendorNameOf, rowsMax) }
  })

const invoiceOf = (text: string): Effect.Effect<Invoice.Invoice, InvalidRequest> =>
  Effect.catchAllDefect(
    Effect.promise(() => Invoice.read(text)),
    (error) => (error instanceof Invoice.NoInvoice ? InvalidRequest.of("", error.message) : Effect.die(error))
  )
