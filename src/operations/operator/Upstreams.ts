/**
 * The upstreams: how they answer this node, what they served over all tenants, and how that compares to a vendor's invoice.
 *
 * Where the specification is silent:
 * - A line of an invoice is compared with what was charged on its UTC day for the models that the vendor serves under the line's name, by the
 *   names of the configuration; a name that the configuration does not have is taken for ours. What we have and the invoice has not is a row of
 *   its own, with nothing of theirs.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Models } from "../../calls/prompts/Model.ts"
import { EmbeddingModels } from "../../calls/embeddings/Settings.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { day, parse, toDay } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { DailySum } from "../../books/ledger/ByProvider.ts"
import { Readiness } from "../ops/Readiness.ts"
import { UpstreamHealth } from "../ops/UpstreamHealth.ts"
import { RerankModels } from "../../calls/rerank/Settings.ts"
import { Upstreams } from "../../upstream/models/Upstreams.ts"
import { Daily } from "../../money/usage/Daily.ts"
import * as Invoice from "./Invoice.ts"
import type { Costs, Drift, UpstreamList } from "./Upstream.ts"

export interface OperatorUpstreamsContract {
  readonly list: Effect.Effect<UpstreamList>
  /** What was charged by day, provider and model. `from` and `to` are days, both included; the last week unless they are given. */
  readonly costs: (days: {
    readonly from?: string | undefined
    readonly to?: string | undefined
  }) => Effect.Effect<Costs, InvalidRequest>
  /** An invoice (CSV) beside what was charged for this provider, or for all. */
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

/** How many days one question may span, and how many rows an answer has. */
export const daysMax = 92
const rowsMax = 20_000

interface Routed {
  readonly id: string
  readonly routes: ReadonlyArray<{ readonly upstream: string; readonly model: string }>
}

const make = Effect.gen(function* () {
  const health = yield* UpstreamHealth
  const upstreams = yield* Upstreams
  const readiness = yield* Readiness
  const daily = yield* Daily
  const { models: chatModels } = yield* Models
  const models: ReadonlyArray<Routed> = [...chatModels, ...(yield* EmbeddingModels), ...(yield* RerankModels)]

  const list: OperatorUpstreamsContract["list"] = Effect.gen(function* () {
    const figures = health.figures([...upstreams.keys()])
    const failing = new Set(figures.filter(({ state }) => state === "failing").map(({ name }) => name))
    return {
      node: (yield* readiness.node)?.name ?? null,
      upstreams: figures.map((one) => ({ ...one, speaks: upstreams.get(one.name)!.speaks })),
      models: models.map(({ id, routes }) => {
        const names = routes.map(({ upstream }) => upstream)
        return { model: id, upstreams: names, serving: names.find((name) => !failing.has(name)) ?? null }
      })
    }
  })

  const span = (first: number, last: number): Effect.Effect<void, InvalidRequest> =>
    last < first
      ? InvalidRequest.of("to", "a day that is not before from")
      : (last - first) / day >= daysMax
        ? InvalidRequest.of("from", `at most ${daysMax} days`)
        : Effect.void

  const vendorCosts = new Map(
    chatModels.flatMap(({ id, routes }) =>
      routes.flatMap(({ cost, upstream }) => (cost === undefined ? [] : [[`${upstream}\n${id}`, cost] as const]))
    )
  )

  const vendorCostOf = (sum: DailySum): Nano | null => {
    const cost = vendorCosts.get(`${sum.provider}\n${sum.model}`)
    if (cost === undefined) return null
    return charge([
      { units: sum.prompt_tokens, price: cost.prompt_price },
      { units: sum.completion_tokens, price: cost.completion_price },
      { units: sum.requests - sum.failures, price: cost.request_price }
    ])
  }

  const costs: OperatorUpstreamsContract["costs"] = Effect.fn("OperatorUpstreams.costs")(function* ({ from, to }) {
    const now = yield* Clock.currentTimeMillis
    const last = (to === undefined ? undefined : parse(to)) ?? now - (now % day)
    const first = (from === undefined ? undefined : parse(from)) ?? last - 6 * day
    yield* span(first, last)
    const sums = yield* daily.sums({ first, last })
    return {
      from: toDay(first),
      to: toDay(last),
      rows: sums.slice(0, rowsMax).map((sum) => ({ ...sum, day: toDay(sum.day), vendor_cost: vendorCostOf(sum) })),
      truncated: sums.length > rowsMax
    }
  })

  /** What vendors call the models that they serve, by the vendor and our name. */
  const vendorNames = new Map(
    models.flatMap(({ id, routes }) => routes.map(({ model, upstream }) => [`${upstream}\n${id}`, model] as const))
  )
  const nameOf = ({ model, provider }: Pick<DailySum, "model" | "provider">): string =>
    vendorNames.get(`${provider}\n${model}`) ?? model

  const drift: OperatorUpstreamsContract["drift"] = Effect.fn("OperatorUpstreams.drift")(function* ({
    provider,
    text
  }) {
    const read = yield* Effect.promise(() =>
      Invoice.read(text).catch((error: unknown) => {
        if (error instanceof Invoice.NoInvoice) return error
        throw error
      })
    )
    const invoice = read instanceof Invoice.NoInvoice ? yield* InvalidRequest.of("", read.message) : read
    const days = invoice.lines.map((line) => line.day).toSorted()
    const [from] = days
    const to = days.at(-1)
    if (from === undefined || to === undefined) {
      const why = invoice.bad_lines[0]
      return yield* InvalidRequest.of(
        "",
        why === undefined ? "an invoice with lines" : `no line can be read; line ${why.line}: ${why.why}`
      )
    }
    yield* span(parse(from)!, parse(to)!)
    const sums = yield* daily.sums({ first: parse(from)!, last: parse(to)! })
    const ours = sums.filter((sum) => provider === undefined || sum.provider === provider)
    const rows = compared(invoice.lines, ours, nameOf)
    const theirs = rows.reduce((sum, row) => sum + row.theirs, 0n)
    const charged = rows.reduce((sum, row) => sum + row.ours, 0n)
    const { bad_lines, bad_lines_total, columns } = invoice
    return {
      columns,
      from,
      to,
      rows: rows.slice(0, rowsMax),
      totals: { theirs, ours: charged, difference: theirs - charged },
      bad_lines,
      bad_lines_total,
      truncated: rows.length > rowsMax
    }
  })

  return { list, costs, drift } satisfies OperatorUpstreamsContract
})

interface Compared {
  readonly day: string
  readonly model: string
  readonly theirs: Nano
  readonly ours: Nano
  readonly difference: Nano
  readonly requests: number
  readonly quantity: string | null
}

/** Both sides by day and model; of a day, the largest difference first. */
const compared = (
  lines: ReadonlyArray<Invoice.InvoiceLine>,
  sums: ReadonlyArray<DailySum>,
  nameOf: (sum: DailySum) => string
): ReadonlyArray<Compared> => {
  const keyOf = (day: string, model: string): string => `${day} ${model.toLowerCase()}`
  const rows = new Map<string, Compared>()
  for (const { amount, day, model, quantity } of lines) {
    const before = rows.get(keyOf(day, model))
    const theirs = (before?.theirs ?? 0n) + amount
    const row = { day, model: before?.model ?? model, theirs, ours: 0n, difference: theirs, requests: 0, quantity }
    rows.set(keyOf(day, model), row)
  }
  const invoiced = new Set(lines.map(({ model }) => model.toLowerCase()))
  for (const sum of sums) {
    const named = nameOf(sum)
    // Some vendors bill by the name that is also ours.
    const model = invoiced.has(named.toLowerCase()) || !invoiced.has(sum.model.toLowerCase()) ? named : sum.model
    const day = toDay(sum.day)
    const before = rows.get(keyOf(day, model))
    const theirs = before?.theirs ?? 0n
    const ours = (before?.ours ?? 0n) + sum.charged
    rows.set(keyOf(day, model), {
      day,
      model: before?.model ?? model,
      theirs,
      ours,
      difference: theirs - ours,
      requests: (before?.requests ?? 0) + sum.requests,
      quantity: before?.quantity ?? null
    })
  }
  return [...rows.values()].toSorted(
    (a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0) || largerFirst(a.difference, b.difference)
  )
}

const largerFirst = (a: Nano, b: Nano): number => {
  const [one, other] = [a < 0n ? -a : a, b < 0n ? -b : b]
  return one > other ? -1 : one < other ? 1 : 0
}
