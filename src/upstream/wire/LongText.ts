/** Serializes JSON with long strings, such as base64 images, in chunks, so that other work can run in between. */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { turn } from "../../kernel/Pieces.ts"

/** The length of a chunk, in characters or bytes. */
const piece = 192 * 1024

/**
 * Long strings that another thread has read. The keys are short, unguessable strings that take their places in values. The bytes are a string's JSON
 * without its quotes.
 */
export type LongTexts = ReadonlyMap<string, Buffer>

/** The placeholder for a long string while the surrounding JSON is serialized. */
const standIn = randomUUID()

/** Serializes a value as JSON, in pieces if it has long strings. */
export const jsonOf = (value: object, texts?: LongTexts): Effect.Effect<string | ReadonlyArray<Buffer>> => {
  const long: Array<string | Buffer> = []
  const text = JSON.stringify(value, (_, one: unknown) => {
    if (typeof one !== "string") return one
    const bytes = texts?.get(one)
    return bytes === undefined && one.length <= piece ? one : `${standIn}${long.push(bytes ?? one) - 1}`
  })
  return long.length === 0 ? Effect.succeed(text) : filled(text, long)
}

const filled = Effect.fnUntraced(function* (text: string, long: ReadonlyArray<string | Buffer>) {
  const [first, ...rest] = text.split(standIn)
  const written: Array<Buffer> = [Buffer.from(first!)]
  for (const [i, after] of rest.entries()) {
    const one = long[i]!
    if (typeof one !== "string") written.push(one)
    else
      for (let at = 0; at < one.length; at += piece) {
        yield* turn
        // A surrogate pair may be split, because JSON then escapes each half.
        written.push(Buffer.from(JSON.stringify(one.slice(at, at + piece)).slice(1, -1)))
      }
    written.push(Buffer.from(after.slice(String(i).length)))
  }
  return written
})
