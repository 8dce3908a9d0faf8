/**
 * Writes a response with base64 images into its reserved memory. Image bytes are encoded as they arrive, so images are never buffered separately, and
 * encoding never blocks the serving thread for long.
 */
import { Effect } from "effect"
import type { Room } from "../../kernel/Room.ts"
import type { FileDownload } from "../../upstream/wire/Download.ts"
import { Unreachable } from "../../upstream/wire/Wire.ts"

const fetchesAtOnce = 4

const begin = (created: number) => `{"created":${created},"data":[`
const before = '{"b64_json":"'
const after = '"}'
const end = "]}"

/** Returns the length of `bytes` bytes as base64. */
const encodedLength = (bytes: number): number => Math.ceil(bytes / 3) * 4

/** Writes the response with the images from `open`, each at most `limit` bytes. Returns `undefined` if the response does not fit in memory. */
export const encoded = Effect.fnUntraced(function* <E>(
  created: number,
  urls: ReadonlyArray<string>,
  open: (url: string) => Effect.Effect<FileDownload, E>,
  limit: number,
  room: Room
): Effect.fn.Return<Buffer | undefined, E | Unreachable> {
  const opened: Array<FileDownload> = []
  const kept = (url: string) =>
    Effect.tap(open(url), (image) => {
      opened.push(image)
    })
  const answer = Effect.gen(function* () {
    const images = yield* Effect.forEach(urls, kept, { concurrency: fetchesAtOnce })
    const most = images.reduce(
      (sum, { length = limit }) => sum + encodedLength(length) + before.length + after.length + 1,
      begin(created).length + end.length
    )
    if (!(yield* claimed(room, most))) return undefined
    const body = yield* Effect.tryPromise({
      try: () => writeAll(images, begin(created), Buffer.allocUnsafeSlow(most)),
      catch: (error) => new Unreachable({ reason: String(error) })
    })
    room.become(body.length)
    return body
  })
  const close = Effect.sync(() => {
    for (const { body } of opened) body.destroy()
  })
  return yield* Effect.ensuring(answer, close)
})

/** Claims bytes for the response. Returns `false` if they are not granted. */
const claimed = (room: Room, bytes: number): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    const stop = room.claim(bytes, (granted) => resume(Effect.succeed(granted)))
    if (stop === undefined) resume(Effect.succeed(true))
    return Effect.sync(() => stop?.())
  })

/** Writes the images into `to`, one after another, and returns the written part. */
const writeAll = async (images: ReadonlyArray<FileDownload>, begin: string, to: Buffer): Promise<Buffer> => {
  let at = to.write(begin, "latin1")
  for (const [i, { body }] of images.entries()) {
    at += to.write(i === 0 ? before : `,${before}`, at, "latin1")
    let rest: Buffer = Buffer.alloc(0)
    for await (const chunk of body) {
      const bytes = Buffer.concat([rest, chunk as Buffer])
      const whole = bytes.length - (bytes.length % 3)
      at += to.write(bytes.toString("base64", 0, whole), at, "latin1")
      rest = bytes.subarray(whole)
    }
    at += to.write(rest.toString("base64") + after, at, "latin1")
  }
  at += to.write(end, at, "latin1")
  return to.subarray(0, at)
}
