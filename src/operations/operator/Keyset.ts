/** Keyset pagination: each page starts after the last record of the previous page, so that new rows do not shift it. */
import { Schema } from "effect"
import { positive } from "../../kernel/Page.ts"

const limitMax = 200
const limitPreset = 50

/** The page size. A value above the maximum is reduced to the maximum. */
export const limit = Schema.optionalWith(
  Schema.transform(positive(`Records per page: ${limitPreset} by default, at most ${limitMax}`), Schema.Int, {
    strict: true,
    decode: (count) => Math.min(count, limitMax),
    encode: (count) => count
  }),
  { default: () => limitPreset }
)

export const before = Schema.optional(
  Schema.String.pipe(Schema.maxLength(100)).annotations({
    description: "`next` from the previous page; the new page continues after it"
  })
)

/** The cursor for a list in chronological order. */
export const after = before

/** Creates the schema of a page. `next` is null on the last page. */
export const Keyset = <A, I, R>(record: Schema.Schema<A, I, R>) =>
  Schema.Struct({ records: Schema.Array(record), next: Schema.NullOr(Schema.String) })

export interface KeysetOf<A> {
  readonly records: ReadonlyArray<A>
  readonly next: string | null
}

/** Builds a page from `found`. If there is a next page, `found` must contain one record more than `limit`. */
export const keyset = <A>(found: ReadonlyArray<A>, limit: number, cursorOf: (record: A) => string): KeysetOf<A> => {
  const records = found.slice(0, limit)
  const last = records.at(-1)
  return { records, next: found.length > limit && last !== undefined ? cursorOf(last) : null }
}
