/** Pages that go on behind the last record of the one before, whatever is added meanwhile. */
import { Schema } from "effect"
import { positive } from "../../kernel/Page.ts"

const limitMax = 200
const limitPreset = 50

/** The query. A limit above the most is the most. */
export const limit = Schema.optionalWith(
  Schema.transform(positive(`How many records are given: ${limitPreset}, at most ${limitMax}`), Schema.Int, {
    strict: true,
    decode: (count) => Math.min(count, limitMax),
    encode: (count) => count
  }),
  { default: () => limitPreset }
)

export const before = Schema.optional(
  Schema.String.pipe(Schema.maxLength(100)).annotations({ description: "`next` of the page before: goes on behind it" })
)

/** The same of a list that goes on in the order of time. */
export const after = before

/** A page. `next` is `null` at the end. */
export const Keyset = <A, I, R>(record: Schema.Schema<A, I, R>) =>
  Schema.Struct({ records: Schema.Array(record), next: Schema.NullOr(Schema.String) })

export interface KeysetOf<A> {
  readonly records: ReadonlyArray<A>
  readonly next: string | null
}

/** The page of what was found, one more than `limit` where there is more. */
export const keyset = <A>(found: ReadonlyArray<A>, limit: number, cursorOf: (record: A) => string): KeysetOf<A> => {
  const records = found.slice(0, limit)
  const last = records.at(-1)
  return { records, next: found.length > limit && last !== undefined ? cursorOf(last) : null }
}
