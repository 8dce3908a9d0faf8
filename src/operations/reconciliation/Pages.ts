/**
 * Reads a bill page by page. Stores each page with its cursor, so that an interrupted read continues where it stopped. Storing a window's result
 * deletes its pages. A read ignores pages that are more than a day old, because the bill may have changed, and storing a page deletes them.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect, Schedule } from "effect"
import { day as dayMillis } from "../../kernel/Moment.ts"
import type { BooksUnavailable, Conflict } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { BillingApi, BillPage, CallApi } from "../../upstream/billing/BillingApi.ts"
import { NoBill } from "../../upstream/billing/Bill.ts"
import type { BilledLine, BillWindow } from "../../upstream/billing/Bill.ts"
import { billingApis } from "../../upstream/billing/Vendors.ts"
import { readJson } from "../../upstream/wire/Failures.ts"
import * as Wire from "../../upstream/wire/Wire.ts"
import { BillUnavailable } from "./Problems.ts"
import type { BillingVendor } from "./Settings.ts"

export interface PageParts {
  readonly sql: SqlClient
  readonly writer: WriterContract
}

/** The maximum number of pages per report and window. Without this limit, a read from a vendor that repeats cursors would never end. */
const pagesMax = 1_000
const pageBytesMax = 32 * 1024 * 1024

interface PageRow {
  readonly number: number
  readonly next: string | null
  readonly lines: string
}

/** Converts lines to JSON. Amounts become strings. */
const written = (lines: ReadonlyArray<BilledLine>): string =>
  JSON.stringify(lines, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value))

const readLines = (text: string): ReadonlyArray<BilledLine> =>
  (
    JSON.parse(text) as ReadonlyArray<
      Omit<BilledLine, "amount" | "resolution"> & { readonly amount: string | null; readonly resolution: string }
    >
  ).map(({ amount, resolution, ...line }) => ({
    ...line,
    amount: amount === null ? null : BigInt(amount),
    resolution: BigInt(resolution)
  }))

const stored = ({ sql }: PageParts, vendor: string, { first, last }: BillWindow, report: string, after: number) =>
  Effect.orDie(
    sql<PageRow>`SELECT number, next, lines FROM tollgate_reconciliation_pages
      WHERE vendor = ${vendor} AND first = ${first} AND last = ${last} AND report = ${report} AND read_at > ${after}
      ORDER BY number`
  )

/** Creates the statement that deletes the pages of a window. */
export const forgotten = (sql: SqlClient, vendor: string, { first, last }: BillWindow): Statement =>
  statement(
    sql`DELETE FROM tollgate_reconciliation_pages WHERE vendor = ${vendor} AND first = ${first} AND last = ${last}`
  )

const unavailable = (vendor: string, why: string) => new BillUnavailable({ message: `the bill of ${vendor}: ${why}` })

/** Returns whether another attempt may succeed. */
const isTransient = (status: number): boolean => status === 429 || status >= 500

/** Sends one request, with up to five attempts that are one, two, four and eight seconds apart. */
const requested = (wire: Wire.Wire, vendor: BillingVendor, api: BillingApi, path: string) =>
  wire.exchange({ method: "GET", path, headers: api.headers(vendor.key!) }, { limit: pageBytesMax }).pipe(
    Effect.mapError(({ reason }) => unavailable(vendor.name, `no response (${reason})`)),
    Effect.flatMap((answer) =>
      isTransient(answer.status)
        ? unavailable(vendor.name, `the vendor responded with status ${answer.status}`)
        : Effect.succeed(answer)
    ),
    Effect.retry(Schedule.intersect(Schedule.exponential(Duration.seconds(1)), Schedule.recurs(4)))
  )

type Response = Effect.Effect.Success<ReturnType<typeof requested>>

const jsonOf = ({ name }: BillingVendor, { body, status }: Response): Effect.Effect<unknown, BillUnavailable> => {
  if (status !== 200) return unavailable(name, `the vendor responded with status ${status}`)
  const json = readJson(body)
  return json === undefined ? unavailable(name, "the response is not a JSON object") : Effect.succeed(json.value)
}

const read = <A>(vendor: BillingVendor, make: () => A): Effect.Effect<A, BillUnavailable> =>
  Effect.try({
    try: make,
    catch: (error) => {
      if (error instanceof NoBill) return unavailable(vendor.name, error.message)
      throw error
    }
  })

/** Reads one report to its end, starting after the last stored page. */
const reportOf = Effect.fnUntraced(function* (
  parts: PageParts,
  wire: Wire.Wire,
  vendor: BillingVendor,
  window: BillWindow,
  report: string
): Effect.fn.Return<ReadonlyArray<BilledLine>, BillUnavailable | BooksUnavailable | Conflict> {
  const api = billingApis[vendor.api!]
  const now = yield* Clock.currentTimeMillis
  const found = yield* stored(parts, vendor.name, window, report, now - dayMillis)
  // If the first pages are a day old, the read starts over.
  const known = found.every((page, i) => page.number === i) ? found : []
  const lines = known.flatMap((page) => readLines(page.lines))
  let number = known.length
  let cursor = known.at(-1)?.next ?? null
  while (number === 0 || cursor !== null) {
    if (number >= pagesMax) return yield* unavailable(vendor.name, `the report has more than ${pagesMax} pages`)
    const from = cursor
    const body = yield* jsonOf(vendor, yield* requested(wire, vendor, api, api.path(report, window, from)))
    const page = yield* read(vendor, () => api.read(report, window, from, body))
    if (page.next !== null && page.next === from)
      return yield* unavailable(vendor.name, "a page refers to itself as the next page")
    yield* keep(parts, vendor.name, window, report, number, page)
    lines.push(...page.lines)
    cursor = page.next
    number += 1
  }
  return lines
})

const keep = (
  { sql, writer }: PageParts,
  vendor: string,
  { first, last }: BillWindow,
  report: string,
  number: number,
  { lines, next }: BillPage
) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    writer.submit({
      postings: [],
      statements: [
        statement(sql`DELETE FROM tollgate_reconciliation_pages WHERE read_at <= ${now - dayMillis} OR (vendor = ${vendor}
          AND first = ${first} AND last = ${last} AND report = ${report} AND number >= ${number})`),
        statement(sql`INSERT INTO tollgate_reconciliation_pages (vendor, first, last, report, number, next, lines, read_at)
          VALUES (${vendor}, ${first}, ${last}, ${report}, ${number}, ${next}, ${written(lines)}, ${now})`)
      ]
    })
  )

const wireTo = ({ base_url }: BillingVendor) => Wire.make({ base_url, silence_ms_max: 60_000, total_ms_max: 300_000 })

/** Reads the lines of single calls by the vendor's ids, four calls at a time. A call that the vendor does not know has no lines. */
export const callsOf = (
  vendor: BillingVendor,
  api: BillingApi,
  { path, read: linesIn }: CallApi,
  ids: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<BilledLine>, BillUnavailable> =>
  Effect.scoped(
    Effect.gen(function* () {
      const wire = yield* wireTo(vendor)
      const linesOf = Effect.fnUntraced(function* (id: string) {
        const response = yield* requested(wire, vendor, api, path(id))
        if (response.status === 404) return []
        const body = yield* jsonOf(vendor, response)
        return yield* read(vendor, () => linesIn(body).map((line) => ({ ...line, call: id })))
      })
      return (yield* Effect.forEach(ids, linesOf, { concurrency: 4 })).flat()
    })
  )

export const billOf = (parts: PageParts, vendor: BillingVendor, window: BillWindow) =>
  Effect.scoped(
    Effect.gen(function* () {
      const wire = yield* wireTo(vendor)
      const reports = billingApis[vendor.api!].reports
      const lines = yield* Effect.forEach(reports, (report) => reportOf(parts, wire, vendor, window, report))
      return lines.flat()
    })
  )
