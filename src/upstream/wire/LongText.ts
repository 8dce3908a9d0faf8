/** Serializes long strings, such as base64 images, in chunks, so that other work can run in between. */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { turn } from "../../kernel/Pieces.ts"

/** The length of a chunk, in characters or bytes. */
const piece = 192 * 1024

/** The placeholder for a long string while the surrounding JSON is serialized. */
const standIn = randomUUID()

export const jsonOf = (value: object): Effect.Effect<string | Buffer> => {
  const long: Array<string> = []
  const text = JSON.stringify(value, (_, one: unknown) =>
    typeof one === "string" && one.length > piece ? `${standIn}${long.push(one) - 1}` : one
  )
  return long.length === 0 ? Effect.succeed(text) : filled(text, long)
}

const filled = Effect.fnUntraced(function* (text: string, long: ReadonlyArray<string>) {
  const [first, ...rest] = text.split(standIn)
  const written = [Buffer.from(first!)]
  for (const [i, after] of rest.entries()) {
    const one = long[i]!
    for (let at = 0; at < one.length; at += piece) {
      yield* turn
      // Splitting a surrogate pair is harmless, because JSON escapes each half.
      written.push(Buffer.from(JSON.stringify(one.slice(at, at + piece)).slice(1, -1)))
    }
    written.push(Buffer.from(after.slice(String(i).length)))
  }
  return Buffer.concat(written)
})

/** Encodes bytes as base64. The chunk length is a multiple of three, so only the last chunk is padded. */
export const base64Of = Effect.fnUntraced(function* (bytes: Buffer) {
  let text = ""
  for (let at = 0; at < bytes.length; at += piece) {
    if (at > 0) yield* turn
    text += bytes.toString("base64", at, Math.min(bytes.length, at + piece))
  }
  return text
})
