/**
 * A walk through a tenant's records: which, in which order, and how far it has come. A cursor is a walk as opaque text: what
 * it names stays where it is however many records arrive, so a walk by cursor neither repeats nor skips one.
 */
import { Either, Schema } from "effect"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { directions, sorts } from "./Usage.ts"
import type { RecordsQuery } from "./Usage.ts"
import { endOf, startOf } from "./Window.ts"

export interface Walk extends Schema.Schema.Type<typeof Walk> {}
export const Walk = Schema.Struct({
  sort: Schema.Literal(...sorts),
  direction: Schema.Literal(...directions),
  start: Schema.NullOr(Schema.Int),
  end: Schema.NullOr(Schema.Int),
  page: Schema.Int,
  /** The last record that was given: its number, and by what it was sorted. */
  after: Schema.NullOr(
    Schema.Struct({ number: Schema.NonNegativeInt, value: Schema.String.pipe(Schema.pattern(/^\d{1,19}$/)) })
  )
})

const Cursor = Schema.compose(Schema.StringFromBase64Url, Schema.parseJson(Walk))

export const cursorOf: (walk: Walk) => string = Schema.encodeSync(Cursor)

const read = Schema.decodeUnknownEither(Cursor)

/** The walk that a query asks for. A cursor goes on with its own; what stands beside it must be valid, and is not needed. */
export const walkOf = (query: RecordsQuery): Either.Either<Walk, InvalidRequest> => {
  const { cursor, direction = "desc", page, sort = "timestamp" } = query
  if (!isOneOf(sorts, sort)) return refuse("sort", `one of ${sorts.join(", ")}`)
  if (!isOneOf(directions, direction)) return refuse("direction", "asc or desc")
  const start = startOf(query.start_date)
  if (start === undefined) return refuse("start_date", "an RFC 3339 date and time")
  const end = endOf(query.end_date)
  if (end === undefined) return refuse("end_date", "an RFC 3339 date and time")
  if (cursor === undefined) return Either.right({ sort, direction, start, end, page, after: null })
  return Either.mapLeft(read(cursor), () => invalid("cursor", "the next_cursor of an earlier page"))
}

const isOneOf = <const Values extends ReadonlyArray<string>>(values: Values, text: string): text is Values[number] =>
  values.includes(text)

const invalid = (field: string, rule: string) => new InvalidRequest({ field, rule })

const refuse = (field: string, rule: string) => Either.left(invalid(field, rule))
