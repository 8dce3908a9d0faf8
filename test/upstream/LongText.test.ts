/** Long texts are written in pieces: what they come to, and that other work has its turns meanwhile. */
import { Effect, Redacted } from "effect"
import fc from "fast-check"
import { randomBytes } from "node:crypto"
import { describe, expect, it } from "vitest"
import { jsonOf } from "../../src/upstream/wire/LongText.ts"
import type { Admission } from "../../src/books/gate/Gate.ts"
import { submit } from "../../src/upstream/generation/GenerationQueue.ts"
import type { Upstream } from "../../src/upstream/models/Upstreams.ts"

const megabyte = 1024 * 1024

const joined = (written: string | ReadonlyArray<Buffer>): string =>
  typeof written === "string" ? written : Buffer.concat(written).toString()

/** How many immediates run while the effect does. */
const turnsDuring = async <A, E>(effect: Effect.Effect<A, E>): Promise<readonly [A, number]> => {
  let turns = 0
  let over = false
  const count = () => {
    turns++
    if (!over) setImmediate(count)
  }
  setImmediate(count)
  const value = await Effect.runPromise(effect)
  over = true
  return [value, turns]
}

describe("JSON with long strings", () => {
  it("is what JSON.stringify writes, to every reader", async () => {
    const filler = fc.constantFrom(
      "x".repeat(200_000),
      "\u{1f600}".repeat(150_000),
      '"\\\n'.repeat(90_000),
      "é".repeat(200_000)
    )
    const text = fc.tuple(fc.string({ unit: "binary" }), filler, fc.string()).map((parts) => parts.join(""))
    const value = fc.dictionary(
      fc.string(),
      fc.oneof(fc.string(), fc.double({ noNaN: true }), text, fc.array(text, { maxLength: 2 }))
    )
    await fc.assert(
      fc.asyncProperty(value, async (value) => {
        const written = await Effect.runPromise(jsonOf(value))
        expect(JSON.parse(joined(written))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
      { numRuns: 15 }
    )
  })

  it("is one text without them", async () => {
    expect(await Effect.runPromise(jsonOf({ a: "x", b: undefined, c: [1] }))).toBe('{"a":"x","c":[1]}')
  })

  it("goes to a vendor of images while other work has its turns", async () => {
    const picture = `data:image/png;base64,${randomBytes(22 * megabyte).toString("base64")}`
    let sent = ""
    const upstream = {
      name: "vendor",
      key: Redacted.make("k"),
      wire: () => ({
        exchange: ({ body }: { readonly body: string | ReadonlyArray<Buffer> }) => {
          sent = joined(body)
          return Effect.succeed({ status: 200, headers: {}, body: Buffer.from('{"request_id":"job"}') })
        }
      })
    } as unknown as Upstream
    const admission = { to_its_end: false } as unknown as Admission
    const [taken, turns] = await turnsDuring(
      submit(upstream, admission, "edit", { prompt: "a hill", image_url: picture })
    )
    expect(taken.vendor_id).toBe("job")
    expect(turns).toBeGreaterThan(50)
    expect(JSON.parse(sent)).toEqual({ prompt: "a hill", image_url: picture })
  })
})
