/** How an answer is captured for its Idempotency-Key, whole or as it streams, and how it is given again. */
import { Effect } from "effect"
import type * as Reply from "../http/Reply.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"
import { ByteStream, ofReadable } from "../upstream/ByteStream.ts"
import { IdempotencyAnswerLost } from "./Problems.ts"
import type { Row, StoredAnswer } from "./Keys.ts"

/** Answers longer than this are not stored. */
export const answerBytesMax = 8 * 1024 * 1024

/** What is stored in place of an answer that is too long or was cut off. */
export const lost = (refusal: Refusal): StoredAnswer => refusal(new IdempotencyAnswerLost())

/** How a problem is answered on the route of a key. */
export type Refusal = (problem: ProblemInstance<string>) => StoredAnswer

/** The stored answer of this row. */
export const replay = ({ body, headers }: Row, status: number): Reply.Reply => ({
  status,
  headers: { ...(JSON.parse(headers ?? "{}") as Record<string, string>), "idempotency-replayed": "true" },
  body: Buffer.from(body ?? [])
})

/**
 * Has the answer stored. A whole one is stored before it goes out. A stream is collected as it passes, and its end waits until it is
 * stored. One that breaks off, or whose client leaves, is not the answer. `run` runs an effect behind the answer.
 */
export const capture = (
  reply: Reply.Reply,
  refusal: Refusal,
  store: (answer: StoredAnswer) => Effect.Effect<void>,
  run: (effect: Effect.Effect<void>) => void
): Effect.Effect<Reply.Reply> => {
  const { body, headers, status } = reply
  if (typeof body === "string" || Buffer.isBuffer(body)) {
    return Effect.as(store(body.length > answerBytesMax ? lost(refusal) : { status, headers, body }), reply)
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
      const stored = store(all ? { status, headers, body: Buffer.concat(chunks!) } : lost(refusal))
      return Effect.map(stored, () => (how === "complete" ? stream.finish() : stream.cut("the answer broke off")))
    })
    run(end)
    return { status, headers, body: stream.body }
  })
}
