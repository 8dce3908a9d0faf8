/**
 * Captures the response for an Idempotency-Key, complete or streamed, and replays it.
 *
 * Responses of 1 KiB or more are compressed. Their stored headers then contain `content-encoding: gzip`. A replay decompresses them, because not
 * every client accepts compression. Both steps run on a zlib thread.
 */
import { Effect } from "effect"
import { isRateHeader } from "../../books/gate/RateHeaders.ts"
import { constants, gunzip, gzip } from "node:zlib"
import type * as Reply from "../transport/Reply.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import { ByteStream, ofReadable } from "../../upstream/wire/ByteStream.ts"
import { IdempotencyAnswerLost } from "./Problems.ts"
import type { PackedAnswer, Row, StoredAnswer } from "./Keys.ts"

export const answerBytesMax = 8 * 1024 * 1024

/** The minimum size for compression, in bytes. */
const compressedMin = 1024

/** Builds the response for a key without a stored response. The response was too long, ended early, was never stored, or was deleted. */
export const lost = (refusal: Refusal, usage_id?: string): StoredAnswer =>
  refusal(new IdempotencyAnswerLost({ usage_id }))

/** Converts a problem to a response of the key's route. */
export type Refusal = (problem: ProblemInstance<string>) => StoredAnswer

/** Prepares a response for storage. Compresses it if it is long enough and becomes shorter. */
export const packed = ({ body, headers, status }: StoredAnswer): Effect.Effect<PackedAnswer> => {
  const bytes = typeof body === "string" ? Buffer.from(body) : body
  const plain: PackedAnswer = { status, headers, body: bytes }
  if (bytes.length < compressedMin || encoding in headers) return Effect.succeed(plain)
  return Effect.async((resume) =>
    // The default level takes twice as long and saves only another 5 %.
    gzip(bytes, { level: constants.Z_BEST_SPEED }, (error, short) =>
      resume(
        Effect.succeed(
          error !== null || short.length >= bytes.length
            ? plain
            : { status, headers: { ...headers, [encoding]: "gzip" }, body: short }
        )
      )
    )
  )
}

export const replay = ({ body, headers }: Row, status: number): Effect.Effect<Reply.Reply> => {
  const { [encoding]: how, ...stored } = JSON.parse(headers ?? "{}") as Record<string, string>
  // The rate limits in the first response are out of date.
  const plain = Object.fromEntries(Object.entries(stored).filter(([name]) => !isRateHeader(name)))
  const bytes = Buffer.from(body ?? [])
  const again = (body: Buffer): Reply.Reply => ({
    status,
    headers: { ...plain, "idempotency-replayed": "true" },
    body
  })
  if (how !== "gzip") return Effect.succeed(again(bytes))
  return Effect.async((resume) =>
    gunzip(bytes, { maxOutputLength: answerBytesMax }, (error, long) =>
      resume(error === null ? Effect.succeed(again(long)) : Effect.die(error))
    )
  )
}

const encoding = "content-encoding"

/**
 * Stores the response. A complete response is stored before it is sent. A stream is collected while it passes through, and it ends only after it has
 * been stored. In place of a response that is too long, ends early or loses its client, stores the refusal `IdempotencyAnswerLost`. `run` runs an
 * effect in the background.
 */
export const capture = (
  reply: Reply.Reply,
  refusal: Refusal,
  store: (answer: StoredAnswer) => Effect.Effect<void>,
  run: (effect: Effect.Effect<void>) => void
): Effect.Effect<Reply.Reply> => {
  const { body, headers, status } = reply
  const usage_id = headers["x-usage-id"]
  if (typeof body === "string" || Buffer.isBuffer(body)) {
    return Effect.as(store(body.length > answerBytesMax ? lost(refusal, usage_id) : { status, headers, body }), reply)
  }
  return Effect.sync(() => {
    let chunks: Array<Buffer> | undefined = []
    let size = 0
    const stream = new ByteStream(ofReadable(body), {
      read_on: 0,
      tap: {
        data: (chunk, stream) => {
          size += chunk.length
          if (size > answerBytesMax) chunks = undefined
          else chunks?.push(chunk)
          stream.pass(chunk)
        }
      }
    })
    const end = Effect.flatMap(stream.ended, (how) => {
      const all = how === "complete" && chunks !== undefined
      const stored = store(all ? { status, headers, body: Buffer.concat(chunks!) } : lost(refusal, usage_id))
      return Effect.map(stored, () => (how === "complete" ? stream.finish() : stream.cut("the response ended early")))
    })
    run(end)
    return { status, headers, body: stream.body }
  })
}
