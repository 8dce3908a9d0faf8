/**
 * A walk through a tenant's records: its filter, order and position. A cursor is a walk encoded as an opaque string. New records do not move the
 * position, so a walk by cursor neither repeats nor skips a record.
 *
 * Where the specification is silent:
 * - A cursor contains the sort, direction, window and filter, and the next page uses them. Pages by cost, tokens or latency are read in slices, one
 *   page per tenant at a time. Pages by number are limited to the first 20,000 records; pages by cursor are not limited. A page beyond the end is
 *   empty.
 */
import { Either, Schema } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { Filter } from "./Filtered.ts"
import type { RecordsAsked } from "./Records.ts"
import { directions, sorts } from "./Usage.ts"

export interface Walk extends Schema.Schema.Type<typeof Walk> {}
export const Walk = Schema.Struct({
  sort: Schema.Literal(...sorts),
  direction: Schema.Literal(...directions),
  start: Schema.NullOr(Schema.Int),
  end: Schema.NullOr(Schema.Int),
  page: Schema.Int,
  filter: Schema.optionalWith(Filter, { exact: true }),
  /** The last record returned: its number and sort value. */
  after: Schema.NullOr(
    Schema.Struct({ number: Schema.NonNegativeInt, value: Schema.String.pipe(Schema.pattern(/^\d{1,19}$/)) })
  )
})

const Cursor = Schema.compose(Schema.StringFromBase64Url, Schema.parseJson(Walk))

export const cursorOf: (walk: Walk) => string = Schema.encodeSync(Cursor)

const read = Schema.decodeUnknownEither(Cursor)

/** Returns the requested walk. A cursor replaces the query's order, window and filter. */
export const walkOf = (asked: RecordsAsked): Either.Either<Walk, InvalidRequest> => {
  const { cursor, direction = "desc", filter, page, sort = "timestamp", window } = asked
  if (cursor === undefined) {
    if (filter === undefined) return Either.right({ sort, direction, ...window, page, after: null })
    if (sort === "timestamp") return Either.right({ sort, direction, ...window, page, filter, after: null })
    return Either.left(new InvalidRequest({ field: "sort", rule: "must be timestamp if records are filtered" }))
  }
  return Either.mapLeft(
    read(cursor),
    () => new InvalidRequest({ field: "cursor", rule: "must be the next_cursor of an earlier page" })
  )
}
