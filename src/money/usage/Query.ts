/** Parses the queries of the usage routes. Dates, names and lists arrive as strings, and each error has specific wording. */
import { Either } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import { isName } from "../../kernel/Labels.ts"
import { InvalidEndTime, InvalidRollup, InvalidStartTime } from "./Problems.ts"
import type { Filter, LabelFilter } from "./Filtered.ts"
import type { RecordsAsked } from "./Records.ts"
import type { RollupAsked, SummaryAsked } from "./Sums.ts"
import { fewMembers } from "./TeamUsage.ts"
import type { TeamAsked } from "./TeamUsage.ts"
import { bucketsMax, millisOf } from "./Series.ts"
import type { PayersAsked, SeriesAsked } from "./Series.ts"
import { directions, grains, rollups, seriesBy, seriesMax, seriesPreset, sorts, usageTypes } from "./Usage.ts"
import type {
  PayersQuery,
  RecordsQuery,
  RollupName,
  RollupQuery,
  SeriesBy,
  SeriesQuery,
  SummaryQuery,
  TagSeries,
  TeamQuery
} from "./Usage.ts"
import { endOf, instantOf, startOf } from "./Window.ts"
import type { Window } from "./Window.ts"

/** Parses a summary's window, to the millisecond, and its `key`. */
export const summaryOf = (
  query: SummaryQuery,
  { application_id, runs }: Pick<Caller, "application_id" | "runs">
): Either.Either<Omit<SummaryAsked, "caller">, InvalidStartTime | InvalidEndTime | InvalidRequest> => {
  const start = instantOf(query.start_time)
  if (start === undefined) return Either.left(new InvalidStartTime())
  const end = instantOf(query.end_time)
  if (end === undefined) return Either.left(new InvalidEndTime())
  if (query.key === undefined) return Either.right({ window: { start, end } })
  if (query.key !== "self") return refuse("key", "must be `self`, or absent for all calls of the account")
  if (application_id === null) return refuse("key", "requires an API key; a user token has none")
  const own = runs === undefined ? { application_id } : { run_id: runs[0] }
  return Either.right({ window: { start, end }, ...own })
}

export const windowOf = (
  query: Pick<RollupQuery, "start_date" | "end_date">
): Either.Either<Window, InvalidRequest> => {
  const start = startOf(query.start_date)
  if (start === undefined) return refuse("start_date", "must be an RFC 3339 date and time")
  const end = endOf(query.end_date)
  if (end === undefined) return refuse("end_date", "must be an RFC 3339 date and time")
  return Either.right({ start, end })
}

const rollupName = (text: string | undefined): Either.Either<RollupName, InvalidRollup> => {
  const name = rollups.find((one) => one === text)
  return name === undefined ? Either.left(new InvalidRollup()) : Either.right(name)
}

export const rollupOf = (
  query: RollupQuery
): Either.Either<Omit<RollupAsked, "tenant_id">, InvalidRollup | InvalidRequest> =>
  Either.gen(function* () {
    const { application_id, provider } = query
    const rollup = yield* rollupName(query.rollup)
    const usage_type = usageTypes.find((type) => type === query.usage_type)
    if (query.usage_type !== undefined && usage_type === undefined) {
      return yield* refuse("usage_type", `must be ${usageTypes.join(" or ")}`)
    }
    const labels = labelsOf(query)
    return { rollup, window: yield* windowOf(query), application_id, usage_type, provider, labels }
  })

export const recordsOf = (query: RecordsQuery): Either.Either<Omit<RecordsAsked, "tenant_id">, InvalidRequest> =>
  Either.gen(function* () {
    const { cursor, page, per_page } = query
    const sort = sorts.find((one) => one === (query.sort ?? "timestamp"))
    if (sort === undefined) return yield* refuse("sort", `must be one of ${sorts.join(", ")}`)
    const direction = directions.find((one) => one === (query.direction ?? "desc"))
    if (direction === undefined) return yield* refuse("direction", "must be asc or desc")
    return { sort, direction, window: yield* windowOf(query), page, per_page, cursor, filter: yield* filterOf(query) }
  })

const texts = ["model", "provider", "endpoint", "account_id", "application_id", "billing_source_tenant_id"] as const

/** Parses the filter by labels. Returns `undefined` if the query contains none. */
const labelsOf = ({ end_user, run, tag }: Pick<RecordsQuery, "tag" | "end_user" | "run">): LabelFilter | undefined =>
  tag === undefined && end_user === undefined && run === undefined
    ? undefined
    : {
        ...(tag !== undefined && { tag }),
        ...(end_user !== undefined && { end_user }),
        ...(run !== undefined && { run_id: run })
      }

/** Parses the filter. Returns `undefined` if the query contains none. */
const filterOf = (query: RecordsQuery): Either.Either<Filter | undefined, InvalidRequest> => {
  const usage_type = usageTypes.find((type) => type === query.usage_type)
  if (query.usage_type !== undefined && usage_type === undefined)
    return refuse("usage_type", `must be ${usageTypes.join(" or ")}`)
  const { success } = query
  if (success !== undefined && success !== "true" && success !== "false")
    return refuse("success", "must be true or false")
  const filter: Filter = {
    ...Object.fromEntries(texts.filter((name) => query[name] !== undefined).map((name) => [name, query[name]!])),
    ...labelsOf(query),
    ...(usage_type !== undefined && { usage_type }),
    ...(success !== undefined && { success: success === "true" })
  }
  return Either.right(Object.keys(filter).length === 0 ? undefined : filter)
}

/** Parses a series query and widens its window to whole buckets. */
export const seriesOf = (query: SeriesQuery): Either.Either<Omit<SeriesAsked, "tenant_id">, InvalidRequest> =>
  Either.gen(function* () {
    const by = seriesByOf(query.by ?? query.group_by ?? "none")
    if (by === undefined)
      return yield* refuse(
        query.by === undefined ? "group_by" : "by",
        `must be one of ${seriesBy.join(", ")}, or tag:name`
      )
    const grain = grains.find((one) => one === (query.grain ?? "day"))
    if (grain === undefined) return yield* refuse("grain", "must be hour or day")
    const top = Number(query.top ?? seriesPreset)
    if (!Number.isInteger(top) || top < 1 || top > seriesMax)
      return yield* refuse("top", `must be a whole number from 1 to ${seriesMax}`)
    const [first, last] = [startOf(query.start_time), endOf(query.end_time)]
    if (first === undefined || first === null) return yield* refuse("start_time", "must be an RFC 3339 date and time")
    if (last === undefined || last === null) return yield* refuse("end_time", "must be an RFC 3339 date and time")
    const width = millisOf[grain]
    const start = Math.floor(first / width) * width
    const end = Math.max(start, Math.ceil(last / width) * width)
    if ((end - start) / width > bucketsMax) {
      return yield* refuse("end_time", `must be at most ${bucketsMax} buckets of one ${grain} after start_time`)
    }
    return { by, filter: labelsOf(query), grain, top, start, end }
  })

const seriesByOf = (text: string): SeriesBy | undefined =>
  text.startsWith("tag:") && isName(text.slice("tag:".length))
    ? (text as TagSeries)
    : seriesBy.find((one) => one === text)

export const payersOf = (query: PayersQuery): Either.Either<Omit<PayersAsked, "account_id">, InvalidRequest> =>
  Either.map(seriesOf(query), ({ end, start, top }) => ({ start, end, top }))

/** Parses a query for team usage. `members` is `undefined` if the list of account ids is missing or empty. */
export const teamOf = (query: TeamQuery): Either.Either<Omit<TeamAsked, "tenant_id">, InvalidRollup | InvalidRequest> =>
  Either.gen(function* () {
    const members = yield* membersOf(query.members)
    const rollup = yield* rollupName(query.rollup ?? "daily")
    return { members, rollup, window: yield* windowOf(query), labels: labelsOf(query) }
  })

const membersOf = (text: string | undefined): Either.Either<TeamAsked["members"], InvalidRequest> => {
  if (text === undefined || text === "") return Either.right(undefined)
  return fewMembers([...new Set(text.split(",").map((id) => id.trim() as AccountId))].filter((id) => id !== ""))
}

const refuse = (field: string, rule: string) => Either.left(new InvalidRequest({ field, rule }))
