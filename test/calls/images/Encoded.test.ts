/** An answer that holds its images as base64: its bytes, its room, and what is left of a download that breaks. */
import { Effect } from "effect"
import fc from "fast-check"
import { Readable } from "node:stream"
import { describe, expect, it } from "vitest"
import { encoded } from "../../../src/calls/images/Encoded.ts"
import type { Room } from "../../../src/kernel/Room.ts"
import type { FileDownload } from "../../../src/upstream/wire/Download.ts"
import { Unreachable } from "../../../src/upstream/wire/Wire.ts"

const roomFor = (bytes: number) => {
  const room = {
    held: 0,
    most: 0,
    reserve: () => true,
    take: () => true,
    claim: (count: number, then: (granted: boolean) => void) => {
      if (count > bytes) {
        const timer = setTimeout(() => then(false), 10)
        return () => clearTimeout(timer)
      }
      room.held = room.most = count
      return undefined
    },
    become: (count: number) => {
      room.held = count
    }
  }
  return room satisfies Room
}

const coming = (chunks: ReadonlyArray<Uint8Array>, length: number | undefined): FileDownload => ({
  content_type: "image/png",
  length,
  body: Readable.from(
    chunks.map((chunk) => Buffer.from(chunk)),
    { objectMode: true }
  )
})

const images = (all: ReadonlyArray<FileDownload>) => {
  const opened: Array<FileDownload> = []
  const urls = all.map((_, i) => String(i))
  const open = (url: string) =>
    Effect.sync(() => {
      opened.push(all[Number(url)]!)
      return all[Number(url)]!
    })
  return { open, opened, urls }
}

describe("an answer with its images", () => {
  it("is the JSON of their base64, however their bytes come, and holds as much room as it is long", async () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(fc.array(chunks, { maxLength: 4 }), fc.boolean(), async (all, says) => {
        const whole = all.map((one) => Buffer.concat(one))
        const { open, urls } = images(all.map((one, i) => coming(one, says ? whole[i]!.length : undefined)))
        const room = roomFor(10_000)
        const body = (await Effect.runPromise(encoded(17, urls, open, 60, room)))!
        expect(JSON.parse(body.toString())).toEqual({
          created: 17,
          data: whole.map((bytes) => ({ b64_json: bytes.toString("base64") }))
        })
        expect(room.held).toBe(body.length)
        if (says) expect(room.most).toBe(all.length === 0 ? body.length : body.length + 1)
      })
    )
  })

  it("is none where there is no room for all of it, and the images are let go", async () => {
    const all = [coming([Buffer.alloc(1_000)], 1_000), coming([Buffer.alloc(1_000)], undefined)]
    const { open, opened, urls } = images(all)
    expect(await Effect.runPromise(encoded(17, urls, open, 1_000, roomFor(2_700)))).toBeUndefined()
    expect(opened.map(({ body }) => body.destroyed)).toEqual([true, true])
  })

  it("fails where an image does not come or breaks off, and the others are let go", async () => {
    const broken = new Readable({ read: () => broken.destroy(new Error("reset")) })
    const one = coming([Buffer.alloc(10)], 10)
    const { open, urls } = images([one, { content_type: "", length: 10, body: broken }])
    const failed = await Effect.runPromise(Effect.flip(encoded(17, urls, open, 1_000, roomFor(10_000))))
    expect(failed).toMatchObject({ _tag: "Unreachable", reason: "Error: reset" })
    const other = coming([Buffer.alloc(10)], 10)
    const none = (url: string) => (url === "0" ? Effect.succeed(other) : new Unreachable({ reason: "status 404" }))
    const missed = await Effect.runPromise(Effect.flip(encoded(17, ["0", "1"], none, 1_000, roomFor(10_000))))
    expect([missed.reason, one.body.destroyed, other.body.destroyed]).toEqual(["status 404", true, true])
  })
})
