/**
 * Reads a tenant's usage records page by page.
 *
 * Where the specification is silent:
 * - A record contains `error_type` only after an error, and `uncollected` only above 0. It contains `usage_source` only if the figures are not the
 *   provider's own, and `token_details` only if the provider reported tokens that vendors bill separately.
 * - A record contains its API key (`application_id`, `application_name`) and its request (`request_id`). It omits the request if the service itself
 *   ended the call, as for media jobs and for calls interrupted by a crash.
 * - The vendor's id for a request, and the cost that the vendor reported, are visible only to the operator. They reveal the operator's account at the
 *   vendor and the vendor's prices.
 * - A record contains `tags`, `end_user` and `run_id` if the call had them, and `budgets` if any budget counted the call.
 * - An empty filter matches the empty string: `application_id=` means calls by user token.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Context, Effect, Layer } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { tagsOf } from "../../kernel/Labels.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { paginated } from "../../kernel/Page.ts"
import type { PageOf } from "../../kernel/Page.ts"
import { inSlices } from "../../kernel/Pieces.ts"
import type { Range } from "../../kernel/Pieces.ts"
import type { TokenDetails } from "../../kernel/TokenDetails.ts"
import { vendorRequestsOf } from "../../kernel/VendorRequests.ts"
import { keyNames } from "../../people/tenants/KeyNames.ts"
import { withDimensions } from "../../books/ledger/rows/Dimensions.ts"
import * as SortedIndex from "../../books/ledger/totals/SortedIndex.ts"
import type { UsageSource } from "../../books/ledger/rules/Transaction.ts"
import { valueOf } from "../../books/ledger/totals/Varints.ts"
import type { Value } from "../../books/ledger/totals/Varints.ts"
import * as Numbers from "./Numbers.ts"
import * as Filtered from "./Filtered.ts"
import type { Filter } from "./Filtered.ts"
import type { Direction, RecordPage, Sort, UsageRecord } from "./Usage.ts"
import { cursorOf, walkOf } from "./Walk.ts"
import type { Walk } from "./Walk.ts"
import type { Window } from "./Window.ts"

export interface RecordsContract {
  /**
   * Reads a page of the calls made with the tenant's credentials. An unfiltered chronological page costs the same at any depth. In any other
   * order, the page merges the window's sorted index with the records that the index does not cover yet, and numbered pages end at `depthMax`.
   * Money is in nano-USD; times are Unix times in milliseconds.
   */
  readonly page: (asked: RecordsAsked) => Effect.Effect<RecordPage, InvalidRequest>
  /** Returns each tenant's newest record number, which equals its record count. Tenants without records are absent. */
  readonly newest: (tenants: ReadonlyArray<TenantId>) => Effect.Effect<ReadonlyMap<TenantId, number>>
  /** Reads a tenant's records by number. Numbers start at 1, have no gaps, and follow chronological order. */
  readonly range: (tenant: TenantId, numbers: Range) => Effect.Effect<ReadonlyArray<UsageRecord>>
  /** Finds a record of any tenant by its id. */
  readonly find: (usage_id: string) => Effect.Effect<UsageRecord | undefined>
  /** Returns the vendor's request ids and cost for a call, for operators only. Unknown facts are absent. */
  readonly vendorOf: (usage_id: string) => Effect.Effect<VendorFacts>
}

export interface VendorFacts {
  /** The vendor's id for the request that served the call, or for the last one that failed. */
  readonly vendor_request?: string
  /** The vendors' ids for the preceding failed attempts. */
  readonly vendor_retries?: ReadonlyArray<string>
  readonly vendor_cost?: Nano
}

export interface RecordsAsked extends PageOf {
  readonly tenant_id: TenantId
  readonly window: Window
  /** Defaults to time. */
  readonly sort?: Sort | undefined
  /** Defaults to descending. */
  readonly direction?: Direction | undefined
  /** Filtered records are always in chronological order. Defaults to all records. */
  readonly filter?: Filter | undefined
  /** The `next_cursor` of an earlier page. The new page continues after that page, with the same order, window and filter. */
  readonly cursor?: string | undefined
}

/** The maximum depth of numbered pages in an order other than time, because each page skips all preceding records. Cursors have no limit. */
export const depthMax = 20_000

/** The maximum number of index positions that all sorted pages together hold in memory: about 20 MB. */
const placesMax = 200_000

export class Records extends Context.Tag("tollgate/usage/Records")<Records, RecordsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Records, make))
}

interface Parts {
  readonly sql: SqlClient
  readonly numbers: ReturnType<typeof Numbers.make>
  readonly filtered: ReturnType<typeof Filtered.make>
  /** The index positions that sorted pages may hold in memory. */
  readonly places: Effect.Semaphore
  /** Tenants with a sorted walk in progress or waiting. */
  readonly walks: Map<TenantId, { readonly one: Effect.Semaphore; users: number }>
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const numbers = Numbers.make(sql)
  const filtered = Filtered.make(sql, numbers)
  const parts: Parts = { sql, numbers, filtered, places: yield* Effect.makeSemaphore(placesMax), walks: new Map() }
  return {
    page: page(parts),
    newest: newest(parts),
    range: range(parts),
    find: find(parts),
    vendorOf: vendorOf(parts)
  } satisfies RecordsContract
})

/** Runs one sorted walk per tenant at a time. This bounds the tenant's share of memory. */
const withTenantLock = <A, E>({ walks }: Parts, tenant: TenantId, walk: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const mine = walks.get(tenant) ?? { one: Effect.unsafeMakeSemaphore(1), users: 0 }
      mine.users++
      walks.set(tenant, mine)
      return mine
    }),
    ({ one }) => one.withPermits(1)(walk),
    (mine) =>
      Effect.sync(() => {
        if (--mine.users === 0) walks.delete(tenant)
      })
  )

const page = (parts: Parts): RecordsContract["page"] =>
  Effect.fn("Records.page")(function* (asked) {
    const walk = yield* walkOf(asked)
    const { per_page, tenant_id: tenant } = asked
    const window = yield* Effect.orDie(parts.numbers.range(tenant, walk))
    if (walk.filter !== undefined) return yield* filteredPage(parts, tenant, walk, walk.filter, window, per_page)
    // A page beyond the end is empty and costs nothing.
    const exists = (walk.page - 1) * per_page < window.to - window.from
    if (walk.sort !== "timestamp" && walk.after === null && exists && walk.page * per_page > depthMax) {
      const rule = `must be within the first ${depthMax} records when sorted by ${walk.sort}; continue with the cursor beyond that`
      return yield* new InvalidRequest({ field: "page", rule })
    }
    const read = walk.sort === "timestamp" ? pageByTime : pageByValue
    const found = yield* Effect.orDie(read(parts, tenant, walk, window, per_page))
    return yield* pageOf(parts.sql, walk, per_page, window.to - window.from, found)
  })

const filteredPage = Effect.fnUntraced(function* (
  { filtered, numbers, sql }: Parts,
  tenant: TenantId,
  walk: Walk,
  filter: Filter,
  window: Range,
  per_page: number
) {
  const { after, direction, page } = walk
  const left = after === null ? window : rangeAfter(window, after.number, direction)
  const skipped = after === null ? (page - 1) * per_page : 0
  const asked = { direction, window, left, skipped, wanted: per_page + 1 }
  const found = yield* filtered.page(tenant, filter, asked)
  const shown = found.numbers.slice(0, per_page)
  const rows = yield* Effect.forEach(
    Filtered.rangesOf(shown),
    (range) => sql<RecordRow>`SELECT ${sql.literal(recordSelection)} FROM ${numbers.described(tenant, range)}
        AND r.number IN (SELECT CAST(value AS BIGINT) FROM json_each(${JSON.stringify(range.numbers)}))`
  )
  const byNumber = new Map(rows.flat().map((row) => [row.number, row]))
  const more = found.numbers.length > per_page
  return yield* pageOf(sql, walk, per_page, found.total, { more, rows: shown.map((number) => byNumber.get(number)!) })
}, Effect.orDie)

const newest =
  ({ numbers }: Parts): RecordsContract["newest"] =>
  (tenants) =>
    Effect.map(Effect.orDie(numbers.heads(tenants)), (rows) => new Map(rows.map(({ id, total }) => [id, total])))

const range =
  ({ numbers, sql }: Parts): RecordsContract["range"] =>
  (tenant, { from, to }) =>
    Effect.flatMap(
      Effect.orDie(sql<RecordRow>`SELECT ${sql.literal(recordSelection)}
        FROM ${numbers.described(tenant, { from, to })} ORDER BY r.number`),
      (rows) => recordsOf(sql, rows)
    )

const pageByTime: Read = Effect.fnUntraced(function* (
  { numbers, sql },
  tenant,
  { after, direction, page },
  window,
  per_page
) {
  const newestFirst = direction === "desc"
  const left = after === null ? window : rangeAfter(window, after.number, direction)
  const skipped = after === null ? (page - 1) * per_page : 0
  const from = newestFirst ? Math.max(left.from, left.to - skipped - per_page) : left.from + skipped
  const to = newestFirst ? left.to - skipped : Math.min(left.to, from + per_page)
  if (from >= to) return { rows: [], more: false }
  const rows = yield* sql<RecordRow>`SELECT ${sql.literal(recordSelection)}
      FROM ${numbers.described(tenant, { from, to })} ORDER BY r.number ${sql.literal(direction)}`
  return { rows, more: newestFirst ? from > left.from : to < left.to }
})

const pageByValue: Read = Effect.fnUntraced(function* (parts, tenant, walk, window, per_page) {
  const skipped = walk.after === null ? (walk.page - 1) * per_page : 0
  if (skipped >= window.to - window.from) return { rows: [], more: false }
  const cover = SortedIndex.cover(window, yield* SortedIndex.written(parts.sql, tenant))
  const maxCount = skipped + per_page + 1
  const permits = Math.min(placesMax, maxCount + cover.runs.length * SortedIndex.blockSize)
  return yield* withTenantLock(
    parts,
    tenant,
    parts.places.withPermits(permits)(sortedPage(parts, tenant, walk, cover, per_page, skipped))
  )
})

const sortedPage = Effect.fnUntraced(function* (
  parts: Parts,
  tenant: TenantId,
  walk: Walk,
  { rest, runs }: ReturnType<typeof SortedIndex.cover>,
  per_page: number,
  skipped: number
) {
  const { sql } = parts
  const { direction } = walk
  const sort = walk.sort as SortedIndex.Sort
  const after = walk.after === null ? undefined : yield* positionOf(parts, tenant, walk.after)
  const unsorted = yield* firstUnindexed(parts, tenant, { sort, direction, after }, rest, skipped + per_page + 1)
  const shown: Array<{ readonly value: Value; readonly seq: number }> = []
  let passed = 0
  yield* SortedIndex.walk(sql, { tenant, sort, direction, after, runs, rest: unsorted }, (value, seq) => {
    if (++passed > skipped) shown.push({ value, seq })
    return shown.length <= per_page
  })
  const more = shown.length > per_page
  if (more) shown.pop()
  const rows = yield* sql<RecordRow>`SELECT ${sql.literal(recordSelection)}
        FROM tollgate_usage_records r ${sql.literal(withDimensions)}
        WHERE r.seq IN (SELECT CAST(value AS BIGINT) FROM json_each(${JSON.stringify(shown.map(({ seq }) => seq))}))`
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  return { rows: shown.map(({ seq, value }) => ({ ...bySeq.get(seq)!, value: `${value}`.padStart(19, "0") })), more }
})

/** Finds a cursor's position in the sorted index. */
const positionOf = Effect.fnUntraced(function* (
  { numbers, sql }: Parts,
  tenant: TenantId,
  after: NonNullable<Walk["after"]>
) {
  const { number } = after
  const [row] = yield* sql<{ readonly seq: number }>`SELECT r.seq
      FROM ${numbers.among(tenant, { from: number, to: number + 1 })}`
  // No record has this number, so the position is before or after all records.
  const seq = row?.seq ?? (number < 1 ? 0 : Number.MAX_SAFE_INTEGER)
  return { value: valueOf(BigInt(after.value)), seq } satisfies SortedIndex.After
})

/** Reads the first records of ranges outside the sorted index, up to a limit. Returns them in ascending order for either direction. */
const firstUnindexed = Effect.fnUntraced(function* (
  { numbers, sql }: Parts,
  tenant: TenantId,
  { after, direction, sort }: Order,
  ranges: ReadonlyArray<Range>,
  maxCount: number
) {
  const value = sql.literal(SortedIndex.values[sort])
  const selection = sql.literal(`${SortedIndex.exact(SortedIndex.values[sort])} AS value, r.seq AS seq`)
  const sign = sql.literal(direction === "desc" ? "<" : ">")
  const afterCondition =
    after === undefined ? sql.literal("") : sql`AND (${value}, r.seq) ${sign} (${after.value}, ${after.seq})`
  let best: ReadonlyArray<SortPosition> = []
  const readSlice = (range: Range) => {
    // Once enough records are found, only records before the last one matter.
    const last = best[maxCount - 1]
    const boundCondition =
      last === undefined
        ? sql.literal("")
        : sql`AND ${value} ${sql.literal(direction === "desc" ? ">=" : "<")} ${last.value}`
    const places = sql<PlaceRow>`SELECT ${selection} FROM ${numbers.among(tenant, range)} ${afterCondition} ${boundCondition}
          ORDER BY ${value} ${sql.literal(direction)}, r.seq ${sql.literal(direction)} LIMIT ${maxCount}`
    return Effect.map(places, (found) => {
      const read = found.map((row) => ({ value: SortedIndex.valueRead(row.value), seq: row.seq }))
      if (read.length > 0) best = merge(best, read, direction, maxCount)
    })
  }
  yield* Effect.forEach(ranges, (range) => inSlices(range, readSlice), { discard: true })
  const ascending = direction === "desc" ? best.toReversed() : best
  return { values: ascending.map((place) => place.value), seqs: ascending.map((place) => place.seq) }
})

const requestsOf = (text: string | null | undefined): VendorFacts => {
  const { last, retried } = vendorRequestsOf(text)
  return {
    ...(last !== undefined && { vendor_request: last }),
    ...(retried.length > 0 && { vendor_retries: retried })
  }
}

const vendorOf =
  ({ sql }: Parts): RecordsContract["vendorOf"] =>
  (usage_id) =>
    Effect.map(
      Effect.orDie(
        sql<{ readonly vendor_request: string | null; readonly vendor_cost: string | null }>`
          SELECT vendor_request, CAST(vendor_cost AS TEXT) AS vendor_cost FROM tollgate_usage_records WHERE id = ${usage_id}`
      ),
      ([row]): VendorFacts => ({
        ...requestsOf(row?.vendor_request),
        ...(typeof row?.vendor_cost === "string" && { vendor_cost: fromRow(row.vendor_cost) })
      })
    )

const find =
  ({ sql }: Parts): RecordsContract["find"] =>
  (usage_id) =>
    Effect.orDie(
      sql<RecordRow>`SELECT ${sql.literal(recordSelection)}
          FROM tollgate_usage_records r ${sql.literal(withDimensions)} WHERE r.id = ${usage_id}`
    ).pipe(
      Effect.flatMap((rows) => recordsOf(sql, rows)),
      Effect.map(([record]) => record)
    )

interface PageRows {
  readonly rows: ReadonlyArray<RecordRow>
  readonly more: boolean
}

const pageOf = Effect.fnUntraced(function* (
  sql: SqlClient,
  walk: Walk,
  per_page: number,
  total: number,
  { more, rows }: PageRows
) {
  const last = rows.at(-1)
  const records = yield* recordsOf(sql, rows)
  return {
    ...paginated({ page: walk.page, per_page }, total, records),
    next_cursor:
      more && last !== undefined
        ? cursorOf({ ...walk, page: walk.page + 1, after: { number: last.number, value: last.value ?? "0" } })
        : null
  } satisfies RecordPage
})

type Read = (
  parts: Parts,
  tenant: TenantId,
  walk: Walk,
  window: Range,
  per_page: number
) => Effect.Effect<PageRows, SqlError>

const rangeAfter = ({ from, to }: Range, number: number, direction: Direction): Range =>
  direction === "desc" ? { from, to: Math.max(from, Math.min(to, number)) } : { from: Math.max(from, number + 1), to }

// ---- sorted by value ----------------------------------------------------------------------------------------------------

interface Order {
  readonly sort: SortedIndex.Sort
  readonly direction: Direction
  readonly after: SortedIndex.After | undefined
}

/** A record's position when sorted by value. Of equal values, the later record's is greater. */
interface SortPosition {
  readonly value: Value
  readonly seq: number
}

interface PlaceRow {
  readonly value: number | string
  readonly seq: number
}

/** Merges two ordered arrays up to a limit. All records in `later` are newer than those in `earlier`. */
const merge = (
  earlier: ReadonlyArray<SortPosition>,
  later: ReadonlyArray<SortPosition>,
  direction: Direction,
  maxCount: number
): ReadonlyArray<SortPosition> => {
  const descending = direction === "desc"
  const merged: Array<SortPosition> = []
  for (let i = 0, j = 0; merged.length < maxCount && (i < earlier.length || j < later.length);) {
    const a = earlier[i]
    const b = later[j]
    const takesLater = a === undefined || (b !== undefined && (descending ? b.value >= a.value : b.value < a.value))
    merged.push(takesLater ? later[j++]! : earlier[i++]!)
  }
  return merged
}

// ---- rows ---------------------------------------------------------------------------------------------------------------

const recordSelection = `r.seq, r.number, r.id, r.at, d.account_id, r.tenant_id, d.usage_type, d.model, d.provider,
  r.prompt_tokens, r.completion_tokens, r.units, CAST(r.cost AS TEXT) AS cost, CAST(r.uncollected AS TEXT) AS uncollected,
  r.latency_ms, r.success, r.error_type, d.endpoint, d.billing_account_id, d.billing_source_tenant_id,
  d.billing_source_kind, r.usage_source, r.token_details, NULLIF(d.application_id, '') AS application_id, r.request_id,
  d.tags, d.end_user, d.run_id, r.budgets`

interface RecordRow {
  readonly seq: number
  readonly number: number
  readonly id: string
  readonly at: number
  readonly account_id: string
  readonly tenant_id: string
  readonly usage_type: "inference" | "tool"
  readonly model: string
  readonly provider: string
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly cost: string
  readonly uncollected: string
  readonly latency_ms: number
  readonly success: number
  readonly error_type: string | null
  readonly endpoint: string
  readonly billing_account_id: string
  readonly billing_source_tenant_id: string
  readonly billing_source_kind: "own" | "team"
  readonly usage_source: UsageSource
  readonly token_details: string | null
  readonly application_id: string | null
  readonly request_id: string | null
  readonly tags: string
  readonly end_user: string
  readonly run_id: string
  /** A JSON array of budget ids. */
  readonly budgets: string | null
  /** The sort value. Present only in pages sorted by value. */
  readonly value?: string
}

/** Converts rows to records and adds their API key names. */
const recordsOf = (sql: SqlClient, rows: ReadonlyArray<RecordRow>): Effect.Effect<ReadonlyArray<UsageRecord>> => {
  const ids = new Set(rows.flatMap(({ application_id }) => (application_id === null ? [] : [application_id])))
  return Effect.map(keyNames(sql, [...ids]), (names) => rows.map((row) => recordOf(row, names)))
}

const recordOf = (row: RecordRow, names: ReadonlyMap<string, string>): UsageRecord => ({
  id: row.id,
  timestamp: row.at,
  account_id: row.account_id,
  tenant_id: row.tenant_id,
  ...(row.application_id !== null && keyOf(row.application_id, names)),
  ...(row.request_id !== null && { request_id: row.request_id }),
  usage_type: row.usage_type,
  model: row.model,
  provider: row.provider,
  prompt_tokens: row.prompt_tokens,
  completion_tokens: row.completion_tokens,
  total_tokens: row.prompt_tokens + row.completion_tokens,
  units: row.units,
  cost: fromRow(row.cost),
  ...(row.uncollected !== "0" && { uncollected: fromRow(row.uncollected) }),
  latency: row.latency_ms,
  success: row.success === 1,
  ...(row.error_type !== null && { error_type: row.error_type }),
  endpoint: row.endpoint,
  ...labelsOf(row),
  billing_account_id: row.billing_account_id,
  billing_source_tenant_id: row.billing_source_tenant_id,
  billing_source_kind: row.billing_source_kind,
  ...((row.usage_source === "counted" || row.usage_source === "estimated") && { usage_source: row.usage_source }),
  ...(row.token_details !== null && { token_details: detailsOf(row)! })
})

/** Returns a record's labels and the budgets that counted its call. */
export const labelsOf = ({
  budgets,
  end_user,
  run_id,
  tags
}: Pick<RecordRow, "tags" | "end_user" | "run_id" | "budgets">) => ({
  ...(tags !== "" && { tags: tagsOf(tags) }),
  ...(end_user !== "" && { end_user }),
  ...(run_id !== "" && { run_id }),
  ...(budgets !== null && { budgets: JSON.parse(budgets) as ReadonlyArray<string> })
})

const keyOf = (application_id: string, names: ReadonlyMap<string, string>) => {
  const application_name = names.get(application_id)
  return { application_id, ...(application_name !== undefined && { application_name }) }
}

/** Returns a record's separately billed tokens, if any. */
export const detailsOf = ({ token_details }: Pick<RecordRow, "token_details">): TokenDetails | undefined =>
  token_details === null ? undefined : (JSON.parse(token_details) as TokenDetails)
