/** Instants. In code and rows, they are Unix times in milliseconds. On the wire, they are ISO 8601 strings in UTC, with milliseconds. */
import { ParseResult, Schema } from "effect"

// RFC 3339 requires a date, a time with seconds, and an offset. This pattern also accepts a bare date, for the start of that day in UTC.
const pattern = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?([Zz]|[+-]\d{2}:\d{2}))?$/

/** Parses an RFC 3339 string. Returns `undefined` if it is not a valid instant (for example, 30 February). */
export const parse = (text: string): number | undefined => {
  const match = pattern.exec(text)
  if (match === null) return undefined
  const [, year, month, day, hour = "0", minute = "0", second = "0"] = match
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (Number(month) < 1 || Number(month) > 12 || Number(day) < 1 || Number(day) > days) return undefined
  const millis = Date.parse(text.replace(" ", "T").toUpperCase())
  return Number.isNaN(millis) ? undefined : millis
}

export const toDate = (millis: number): Date => new Date(millis)

export const toIso = (millis: number): string => toDate(millis).toISOString()

/** Formats the instant's UTC day: `2026-03-01`. */
export const toDay = (millis: number): string => toIso(millis).slice(0, 10)

export const Moment: Schema.Schema<number, string> = Schema.transformOrFail(Schema.String, Schema.Int, {
  strict: true,
  decode: (text, _, ast) => {
    const millis = parse(text)
    return millis === undefined
      ? ParseResult.fail(new ParseResult.Type(ast, text, "must be an RFC 3339 date and time"))
      : ParseResult.succeed(millis)
  },
  encode: (millis) => ParseResult.succeed(toIso(millis))
}).annotations({ identifier: "Moment", jsonSchema: { type: "string", format: "date-time" } })

export const day = 86_400_000
export const hour = 3_600_000

/** The calendar month of the last lookup. It is cached because nearly all instants fall in the same month and creating a `Date` is expensive. */
let month = { start: 0, end: 0 }

const monthAround = (millis: number): typeof month => {
  if (millis >= month.start && millis < month.end) return month
  const date = toDate(millis)
  const [year, number] = [date.getUTCFullYear(), date.getUTCMonth()]
  month = { start: Date.UTC(year, number), end: Date.UTC(year, number + 1) }
  return month
}

/** Returns the start of the calendar month after the instant, in UTC. */
export const nextMonthOf = (millis: number): number => monthAround(millis).end

/** Returns the start of the instant's calendar month, in UTC. */
export const monthOf = (millis: number): number => monthAround(millis).start
