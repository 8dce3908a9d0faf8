/**
 * Compares vendors' bills with the metered calls, day by day, and stores the result. A new comparison of a day replaces the earlier result.
 *
 * Where the specification is silent:
 * - Only closed days are compared: the vendor's UTC day must be over, and its bill must have had time to settle.
 * - The loop compares the last three closed days again, because vendors correct bills. The loop never requests days that the vendor no longer
 *   reports.
 * - A bill that lists calls is joined by call; any other is joined by day, model and kind of token (`Join`). Single calls explain what remains if the
 *   vendor describes them (`Explained`).
 * - Coverage is the part of a bill that known calls account for.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { Readable } from "node:stream"
import * as Loop from "../../kernel/Loop.ts"
import { day as dayMillis, parse, toDay, toIso } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { BooksUnavailable, Conflict } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { Models } from "../../calls/prompts/Model.ts"
import type { Model } from "../../calls/prompts/Model.ts"
import { eachVendorCall } from "../../money/usage/VendorCalls.ts"
import { NoBill } from "../../upstream/billing/Bill.ts"
import type { BilledLine, BillWindow } from "../../upstream/billing/Bill.ts"
import { readBill } from "../../upstream/billing/Files.ts"
import { billingApis } from "../../upstream/billing/Vendors.ts"
import { explained } from "./Explained.ts"
import { join, marginMillis } from "./Join.ts"
import { Hours, meteredCallOf, servedLookup } from "./Metering.ts"
import { billOf, forgotten } from "./Pages.ts"
import { BillUnavailable, CannotReconcile } from "./Problems.ts"
import { coverageOf, magnitude, sumOf } from "./Reconciliation.ts"
import type {
  Cause,
  CauseSum,
  Compared,
  Difference,
  Joined,
  MeteredCall,
  ReconciledVendor,
  ReconciliationLine
} from "./Reconciliation.ts"
import { BillingVendors } from "./Settings.ts"
import type { BillingVendor } from "./Settings.ts"
import * as Stored from "./Stored.ts"

type Failed = CannotReconcile | BillUnavailable | BooksUnavailable | Conflict

export interface ReconciliationsContract extends Stored.StoredContract {
  /** Reads the bill for these days from the vendor's API and compares it. */
  readonly reconcile: (vendor: string, window: BillWindow) => Effect.Effect<ReadonlyArray<ReconciliationLine>, Failed>
  readonly reconcileFile: (
    vendor: string,
    window: BillWindow,
    bill: () => Readable
  ) => Effect.Effect<ReadonlyArray<ReconciliationLine>, Failed>
  /** Lists the vendors that are configured or have results, by name. */
  readonly vendors: Effect.Effect<ReadonlyArray<ReconciledVendor>>
  /** Compares the newly closed days of every vendor that has an API. */
  readonly job: Loop.Job
}

export class Reconciliations extends Context.Tag("tollgate/reconciliation/Reconciliations")<
  Reconciliations,
  ReconciliationsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Reconciliations, make))
  static readonly layerJobs = Loop.layer(Reconciliations, ({ job }) => [job])
}

const daysMax = 31
/** The maximum number of differences stored per vendor and day. The service stores the largest differences, but the sums include all of them. */
const differencesMax = 5_000
/** The number of closed days that the loop compares again. */
const daysAgain = 3

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly vendors: ReadonlyArray<BillingVendor>
  readonly models: ReadonlyArray<Model>
}

const make = Effect.gen(function* () {
  const { models } = yield* Models
  const parts: Parts = {
    sql: yield* SqlClient,
    writer: yield* Writer,
    vendors: yield* BillingVendors,
    models
  }
  return {
    reconcile: reconcile(parts),
    reconcileFile: reconcileFile(parts),
    ...Stored.make(parts.sql),
    vendors: vendorsOf(parts),
    job: { name: "reconciliation", turn: Effect.as(turn(parts), "1 hour") }
  } satisfies ReconciliationsContract
})

const vendorsOf = ({ sql, vendors }: Parts): ReconciliationsContract["vendors"] =>
  Effect.map(Stored.spans(sql), (spans) => {
    const apis = new Map(vendors.map(({ api, name }) => [name, api ?? null]))
    const found = new Map(spans.map((span) => [span.vendor, span]))
    return [...new Set([...apis.keys(), ...found.keys()])].toSorted().map((vendor) => ({
      vendor,
      api: apis.get(vendor) ?? null,
      first_day: found.get(vendor)?.first_day ?? null,
      last_day: found.get(vendor)?.last_day ?? null
    }))
  })

// ---- the comparison -----------------------------------------------------------------------------------------------------

const vendorNamed = ({ vendors }: Parts, name: string): Effect.Effect<BillingVendor, CannotReconcile> => {
  const vendor = vendors.find((one) => one.name === name)
  if (vendor !== undefined) return Effect.succeed(vendor)
  const known = vendors.map((one) => one.name).join(", ")
  return new CannotReconcile({
    message: `there is no vendor ${JSON.stringify(name.slice(0, 100))} in "reconciliation" (${known === "" ? "it is empty" : known})`
  })
}

/** Returns the last day with a closed bill. */
const lastClosed = ({ api }: BillingVendor, now: number): string =>
  toDay(now - (api === undefined ? 0 : billingApis[api].closes_after_ms) - dayMillis)

const within = (vendor: BillingVendor, { first, last }: BillWindow): Effect.Effect<void, CannotReconcile> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const closed = lastClosed(vendor, now)
    if (last < first) return new CannotReconcile({ message: `the last day ${last} is before the first day ${first}` })
    if (parse(last)! - parse(first)! >= daysMax * dayMillis)
      return new CannotReconcile({ message: `a comparison must cover at most ${daysMax} days` })
    if (last > closed)
      return new CannotReconcile({ message: `the bill of ${last} is not closed; the last closed day is ${closed}` })
    return Effect.void
  })

const reconcile = (parts: Parts): ReconciliationsContract["reconcile"] =>
  Effect.fn("Reconciliations.reconcile")(function* (name, window) {
    const vendor = yield* vendorNamed(parts, name)
    if (vendor.api === undefined)
      return yield* new CannotReconcile({ message: `the vendor ${name} has no billing API; pass its bill as a file` })
    yield* within(vendor, window)
    return yield* compared(parts, vendor, window, yield* billOf(parts, vendor, window))
  })

const reconcileFile = (parts: Parts): ReconciliationsContract["reconcileFile"] =>
  Effect.fn("Reconciliations.reconcileFile")(function* (name, window, bill) {
    const vendor = yield* vendorNamed(parts, name)
    yield* within(vendor, window)
    const { lines } = yield* Effect.tryPromise({
      try: () => readBill(bill()),
      catch: (error) =>
        new BillUnavailable({
          message: error instanceof NoBill ? error.message : "the file cannot be read"
        })
    })
    const inside = lines.filter(({ day }) => day >= window.first && day <= window.last)
    return yield* compared(parts, vendor, window, inside)
  })

/** Reads the vendor's metered calls by hour, and each call if the bill lists calls. */
const metered = (parts: Parts, vendor: BillingVendor, { first, last }: BillWindow, listsCalls: boolean) =>
  Effect.suspend(() => {
    const servedOf = servedLookup(parts.models)
    const hours = new Hours()
    const calls: Array<MeteredCall> = []
    const [from, to] = [parse(first)! - marginMillis, parse(last)! + dayMillis + marginMillis]
    return Effect.as(
      eachVendorCall(parts.sql, from, to, (call) => {
        if (!vendor.upstreams.has(call.provider)) return
        const one = meteredCallOf(call, servedOf(call))
        hours.add(one)
        if (listsCalls) calls.push(one)
      }),
      { hours, calls }
    )
  })

const compared = Effect.fnUntraced(function* (
  parts: Parts,
  vendor: BillingVendor,
  window: BillWindow,
  bill: ReadonlyArray<BilledLine>
) {
  const lines = bill.map((line) => ({ ...line, model: vendor.models[line.model] ?? line.model }))
  const listsCalls = lines.some(({ call }) => call !== undefined)
  const { calls, hours } = yield* metered(parts, vendor, window, listsCalls)
  const joined = yield* explained(parts, vendor, window, lines, join(hours.list, lines, window, calls))
  const now = yield* Clock.currentTimeMillis
  const days = daysOf(window).map((day) => resultOf(vendor.name, day, now, joined))
  yield* parts.writer.submit({ postings: [], statements: replacing(parts, vendor.name, window, days) })
  return days.map(({ line }) => line)
})

const daysOf = ({ first, last }: BillWindow): ReadonlyArray<string> =>
  Array.from({ length: (parse(last)! - parse(first)!) / dayMillis + 1 }, (_, i) => toDay(parse(first)! + i * dayMillis))

interface Result {
  readonly line: ReconciliationLine
  readonly models: ReadonlyArray<Compared>
  readonly differences: ReadonlyArray<Difference>
}

const byCause = (differences: ReadonlyArray<Difference>): ReadonlyArray<CauseSum> => {
  const sums = new Map<Cause, { amount: Nano; lines: number }>()
  for (const { amount, cause } of differences) {
    const sum = sums.get(cause) ?? { amount: 0n, lines: 0 }
    sums.set(cause, { amount: sum.amount + amount, lines: sum.lines + 1 })
  }
  return [...sums]
    .map(([cause, sum]) => ({ cause, ...sum }))
    .toSorted((a, b) => (magnitude(b.amount) > magnitude(a.amount) ? 1 : -1))
}

const resultOf = (vendor: string, day: string, now: number, joined: Joined): Result => {
  const models = joined.compared.filter((one) => one.day === day)
  const differences = joined.differences.filter((one) => one.day === day)
  const billed = sumOf(models, (one) => one.billed)
  const expected = sumOf(models, (one) => one.expected)
  const causes = byCause(differences)
  return {
    line: {
      vendor,
      day,
      reconciled_at: toIso(now),
      billed,
      expected,
      charged: sumOf(models, (one) => one.charged),
      drift: billed - expected,
      coverage: coverageOf(billed, causes),
      causes
    },
    models,
    differences: differences
      .toSorted((a, b) => (magnitude(b.amount) > magnitude(a.amount) ? 1 : -1))
      .slice(0, differencesMax)
  }
}

// ---- rows -----------------------------------------------------------------------------------------------------------------

const asText = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? part.toString() : part))

/** Replaces the results for a window and deletes its stored pages. */
const replacing = (
  { sql }: Parts,
  vendor: string,
  window: BillWindow,
  results: ReadonlyArray<Result>
): ReadonlyArray<Statement> => [
  statement(
    sql`DELETE FROM tollgate_reconciliation_days WHERE vendor = ${vendor} AND day >= ${window.first} AND day <= ${window.last}`
  ),
  ...results.map(({ differences, line, models }) =>
    statement(
      sql`INSERT INTO tollgate_reconciliation_days ${sql.insert({
        vendor,
        day: line.day,
        reconciled_at: parse(line.reconciled_at)!,
        billed: line.billed,
        expected: line.expected,
        charged: line.charged,
        causes: asText(line.causes),
        models: asText(models),
        differences: asText(differences)
      })}`
    )
  ),
  forgotten(sql, vendor, window)
]

// ---- the loop -------------------------------------------------------------------------------------------------------------

/** Returns the days to compare now. Returns `undefined` if the last closed day was already compared. */
const due = Effect.fnUntraced(function* ({ sql }: Parts, vendor: BillingVendor) {
  const now = yield* Clock.currentTimeMillis
  const last = lastClosed(vendor, now)
  const [row] = yield* Effect.orDie(sql<{ readonly day: string | null }>`
    SELECT MAX(day) AS day FROM tollgate_reconciliation_days WHERE vendor = ${vendor.name}`)
  const newest = row?.day ?? null
  if (newest !== null && newest >= last) return undefined
  const back = (days: number) => toDay(parse(last)! - (days - 1) * dayMillis)
  const { days_max } = billingApis[vendor.api!]
  const earliest = back(Math.min(daysMax, days_max - 1))
  const first = newest === null ? back(daysAgain) : [toDay(parse(newest)! + dayMillis), back(daysAgain)].toSorted()[0]!
  return { first: first < earliest ? earliest : first, last }
})

/** Compares the due days of all vendors. A failing vendor does not affect the others. Fails with the first problem. */
const turn = (parts: Parts) =>
  Effect.forEach(
    parts.vendors.filter(({ api }) => api !== undefined),
    (vendor) =>
      Effect.flatMap(due(parts, vendor), (window) =>
        window === undefined ? Effect.void : reconcile(parts)(vendor.name, window)
      ).pipe(
        Effect.as(undefined),
        Effect.catchAll((problem) => Effect.succeed(problem))
      )
  ).pipe(
    Effect.flatMap((problems) => {
      const problem = problems.find((one) => one !== undefined)
      return problem === undefined ? Effect.void : Effect.fail(problem)
    })
  )
