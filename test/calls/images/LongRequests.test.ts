/** Long requests for images: another thread reads them as this one would, and their images go upstream as bytes. */
import { Effect, Either } from "effect"
import { randomBytes } from "node:crypto"
import { describe, expect, it } from "vitest"
import { editOf } from "../../../src/calls/images/Edit.ts"
import { ImageRequest } from "../../../src/calls/images/Image.ts"
import * as LongRequests from "../../../src/calls/images/LongRequests.ts"
import { hashOf } from "../../../src/calls/metered/TextHash.ts"
import { json } from "../../../src/http/transport/Body.ts"
import type { LongTexts } from "../../../src/upstream/wire/LongText.ts"

const decode = json(ImageRequest)
const png = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), randomBytes(300_000)])
const picture = `data:image/png;base64,${png.toString("base64")}`

/** A value with its long strings filled in. */
const whole = (value: unknown, texts: LongTexts = new Map()): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, one: unknown) => {
      const bytes = typeof one === "string" ? texts.get(one) : undefined
      return bytes === undefined ? one : (JSON.parse(`"${bytes.toString()}"`) as string)
    })
  )

const generation = (body: unknown) =>
  Effect.runPromise(Effect.either(LongRequests.generation(Buffer.from(JSON.stringify(body)), "acc_1")))

describe("a long request for images", () => {
  it("is decoded on another thread, with its long strings as bytes", async () => {
    for (const body of [
      { prompt: "a hill", source_url: picture, strength: 0.5, seed: null },
      { prompt: `"\u{1f600}\n${"x".repeat(300_000)}`, num_images: 2, provider: "p" }
    ]) {
      const { request, texts } = Either.getOrThrow(await generation(body))
      expect(JSON.stringify(request).length).toBeLessThan(1_000)
      expect(texts?.size).toBe(1)
      expect(whole(request, texts)).toEqual(whole(Either.getOrThrow(decode(Buffer.from(JSON.stringify(body))))))
    }
  })

  it("names a user with a long name by its hash, as the call's labels do", async () => {
    const user = "u".repeat(300_000)
    const { request, texts } = Either.getOrThrow(await generation({ prompt: "a", user }))
    expect([request.user, texts?.size]).toEqual([hashOf(user), 0])
  })

  it("is refused as a short one is, for each kind of mistake", async () => {
    const wrong = (padding: string) => [
      { prompt: "a", source_url: `data:image/png;base64,!${padding}` },
      { prompt: "a", source_url: padding },
      { prompt: " ", user: padding },
      { prompt: "a", num_images: 0, user: padding },
      { prompt: "a", image_size: padding },
      { prompt: "a", strength: 2, user: padding },
      { source_url: `data:image/png;base64,${padding}` }
    ]
    const [short, long] = [wrong("xxxx"), wrong("x".repeat(300_000))]
    for (const [i, body] of short.entries()) {
      const expected = decode(Buffer.from(JSON.stringify(body)))
      expect(Either.isLeft(expected)).toBe(true)
      expect(await generation(long[i])).toEqual(expected)
    }
    const broken = Buffer.from(`{"prompt":"${"x".repeat(300_000)}`)
    const read = await Effect.runPromise(Effect.either(LongRequests.generation(Buffer.from(broken), "acc_1")))
    expect(read).toEqual(decode(broken))
  })
})

describe("a long form of an edit", () => {
  const formOf = async (parts: ReadonlyArray<readonly [name: string, value: string | Buffer]>) => {
    const form = new FormData()
    for (const [name, value] of parts)
      if (typeof value === "string") form.append(name, value)
      else form.append(name, new Blob([Uint8Array.from(value)]), `${name}.png`)
    const response = new Response(form)
    return { type: response.headers.get("content-type")!, bytes: Buffer.from(await response.arrayBuffer()) }
  }
  const edit = (type: string, bytes: Buffer, fingerprints = true) =>
    Effect.runPromise(Effect.either(LongRequests.edit(type, Buffer.from(bytes), fingerprints, "acc_1")))

  it("is read on another thread, with its images as bytes and the same fingerprint", async () => {
    const { bytes, type } = await formOf([
      ["prompt", "a hill"],
      ["n", "2"],
      ["image[]", png],
      ["image[]", png.subarray(0, 1_000)],
      ["mask", png]
    ])
    const here = Either.getOrThrow(editOf(type, bytes))
    const { creation, fingerprint, texts } = Either.getOrThrow(await edit(type, bytes))
    expect(texts?.size).toBe(2)
    expect(whole(creation, texts)).toEqual(whole(here.creation))
    expect(fingerprint()).toBe(here.fingerprint())
  })

  it("is refused as a short one is, for each kind of mistake", async () => {
    const wrong = (image: Buffer): ReadonlyArray<ReadonlyArray<readonly [string, string | Buffer]>> => [
      [["image", image]],
      [
        ["prompt", "a"],
        ["picture", image]
      ],
      [
        ["prompt", "a"],
        ["image", Buffer.concat([Buffer.from("no image"), image])]
      ],
      [
        ["prompt", "a"],
        ["mask", image]
      ],
      [
        ["prompt", "a"],
        ["image", image],
        ["mask", image],
        ["mask", image]
      ],
      [
        ["prompt", "a"],
        ["image", image],
        ["odd", "field"]
      ]
    ]
    const [short, long] = [wrong(png.subarray(0, 1_000)), wrong(png)]
    for (const [i, parts] of short.entries()) {
      const small = await formOf(parts)
      const expected = editOf(small.type, small.bytes)
      expect(Either.isLeft(expected)).toBe(true)
      const { bytes, type } = await formOf(long[i]!)
      expect(await edit(type, bytes)).toEqual(expected)
    }
  })
})
