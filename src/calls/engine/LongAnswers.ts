/**
 * Handles complete responses that are too long to parse on the main thread. A response to pass on unchanged is checked by its outline. A separate
 * thread (`BodyThreads`) parses a response that must be translated, reports no complete usage or contains ids to record.
 */
import { Effect, Either } from "effect"
import { bodyHashInChunks } from "../../upstream/wire/BodyHash.ts"
import type { Receipt } from "../../books/gate/Gate.ts"
import type { JsonOutline } from "../../kernel/JsonOutline.ts"
import type { AnswerOptions } from "../../protocols/conversation/Translation.ts"
import { noUsage } from "../../protocols/conversation/Usage.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { movable, readOnThread } from "../threads/BodyThreads.ts"
import { bufferOf } from "../threads/Task.ts"
import type { CountTask, TranslateTask } from "./BodyTask.ts"
import type { Completed } from "./Engine.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import { tokensOfString } from "../prompts/Tokens.ts"
import type { Pair } from "./Translated.ts"

export interface LongAnswer {
  readonly protocol: Protocol
  readonly pair: Pair | undefined
  /** The complete body, or `undefined` if it did not fit in memory. */
  readonly body: Buffer | undefined
  readonly outline: JsonOutline
  readonly options: () => Effect.Effect<AnswerOptions>
  /** Whether the caller needs the response's ids. */
  readonly needsIds: boolean
  /** The account to schedule on the thread. */
  readonly account: string
}

export interface ReadLong {
  /** The bytes for the client, or `undefined` if the response cannot be delivered. */
  readonly bytes: Buffer | undefined
  /** The hash of `bytes`. */
  readonly hash: string | undefined
  readonly usage: Usage
  readonly tokens_counted: number
  /** The response's ids, if the caller needs them. */
  readonly ids: ReadonlyArray<string>
}

/** Estimates the tokens in a response's long members from their size. */
export const countedIn = ({ emptied }: JsonOutline): number =>
  tokensOfString(emptied.reduce((sum, { from, to }) => sum + to - from, 0))

/** Reads a long response's usage and builds the bytes for the client. `Left` holds the response's defect. */
export const read = Effect.fnUntraced(function* ({
  account,
  body,
  needsIds,
  options,
  outline,
  pair,
  protocol
}: LongAnswer) {
  const answer = outline.value
  const right = (
    bytes: Buffer | undefined,
    hash: string | undefined,
    usage: Usage,
    tokens_counted = countedIn(outline),
    ids: ReadonlyArray<string> = []
  ) => Either.right<ReadLong>({ bytes, hash, usage, tokens_counted, ids })
  if (answer === undefined) return Either.left("the response is not a JSON object")

  if (pair !== undefined) {
    const reported = () => pair.vendor.usageOf(answer.usage ?? answer.usageMetadata) ?? noUsage
    if (body === undefined) return right(undefined, undefined, reported())
    const task: TranslateTask = {
      how: "translate",
      client: protocol.name,
      vendor: pair.vendor.protocol,
      options: yield* options(),
      body: movable(body)
    }
    const done = yield* readOnThread(task, account)
    if (done === undefined) return right(undefined, undefined, reported())
    if (done.fault !== undefined) return Either.left(done.fault)
    return right(bufferOf(done.bytes), done.hash, done.usage!, done.tokens_counted)
  }

  const fault = protocol.faultIn(answer)
  if (fault !== undefined) return Either.left(fault)
  const usage = protocol.usageIn(answer)
  const reports = usage.prompt_tokens !== undefined && usage.completion_tokens !== undefined
  const hash = body && (yield* bodyHashInChunks(body))
  if (body === undefined || (reports && !needsIds)) {
    return right(body, hash, usage)
  }
  const task: CountTask = { how: "count", client: protocol.name, body: new Uint8Array(body) }
  const counted = yield* readOnThread(task, account)
  if (counted?.fault !== undefined) return Either.left(counted.fault)
  // If the thread died, only the id in the outline is known.
  return right(body, hash, usage, counted?.tokens_counted, counted?.ids ?? protocol.handedOutIn?.(answer))
})

/** A long response. It is parsed whenever `completion` is read. */
export class LongCompletion implements Completed<unknown> {
  readonly bytes: Buffer
  readonly receipt: Receipt

  constructor(bytes: Buffer, receipt: Receipt) {
    this.bytes = bytes
    this.receipt = receipt
  }

  get completion(): unknown {
    return JSON.parse(this.bytes.toString())
  }
}
