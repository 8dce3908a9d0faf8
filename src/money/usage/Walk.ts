/**
 * A walk through a tenant's records: which, in which order, and how far it has come. A cursor is a walk as opaque text: what
 * it names stays where it is however many records arrive, so a walk by cursor neither repeats nor skips one.
 *
 * Where the specification is silent:
 * - A cursor carries its sort, direction, window and filter, and goes on with those. A page by cost, tokens or latency is read in pieces, one page
 *   of a tenant at a time and one piece of all pages between two looks at the sockets; pages by number of such a sort reach 20,000
 *   records deep, the cursor has no limit. A page beyond the end is empty.
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
  /** The last record that was given: its number, and by what it was sorted. */
  after: Schema.NullOr(
    Schema.Struct({ number: Schema.NonNegativeInt, value: Schema.String.pipe(Schema.pattern(/^\d{1,19}$/)) })
  )
})

const Cursor = Schema.compose(Schema.StringFromBase64Url, Schema.parseJson(Walk))

export const cursorOf: (walk: Walk) => string = Schema.encodeSync(Cursor)

const read = Schema.decodeUnknownEither(Cursor)

/** The walk that is asked for. A cursor goes on with its own order and window; those that stand beside it are not needed. */
export const walkOf = (asked: RecordsAsked): Either.Either<Walk, InvalidRequest> => {
  const { cursor, direction = "desc", filter, page, sort = "timestamp", window } = asked
  if (cursor === undefined) {
    if (filter === undefined) return Either.right({ sort, direction, ...window, page, after: null })
    if (sort === "timestamp") return Either.right({ sort, direction, ...window, page, filter, after: null })
    return Either.left(new InvalidRequest({ field: "sort", rule: "timestamp, where records are filtered" }))
  }
  return Either.mapLeft(
    read(cursor),
    () => new InvalidRequest({ field: "cursor", rule: "the next_cursor of an earlier page" })
  )
}
