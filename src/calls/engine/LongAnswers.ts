/**
 * Handles complete answers that are too long to parse on the main thread. An answer that is passed on unchanged is checked by its outline. Answers
 * that must be translated or that report no usage are parsed on a separate thread, one at a time. The thread stops after ten idle seconds to free its
 * memory.
 */
import { Effect, Either } from "effect"
import type { Worker } from "node:worker_threads"
import type { Receipt } from "../../books/gate/Gate.ts"
import type { JsonOutline } from "../../kernel/JsonOutline.ts"
import type { AnswerOptions } from "../../protocols/conversation/Translation.ts"
import { noUsage } from "../../protocols/conversation/Usage.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { startAnswers } from "./AnswerThreadCode.ts"
import type { Done, Task } from "./AnswerThread.ts"
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
  /** Whether the caller needs the answer's ids. */
  readonly needsIds: boolean
}

export interface ReadLong {
  /** The bytes for the client, or `undefined` if the answer cannot be delivered. */
  readonly bytes: Buffer | undefined
  readonly usage: Usage
  readonly tokens_counted: number
  /** The answer's ids, if the caller needs them. */
  readonly ids: ReadonlyArray<string>
}

/** Estimates the tokens in an answer's long members from their bytes. */
export const countedIn = ({ emptied }: JsonOutline): number =>
  tokensOfString(emptied.reduce((sum, { from, to }) => sum + to - from, 0))

/** Reads the usage of a long answer and builds the bytes for the client. `Left` holds the answer's defect. */
export const read = Effect.fnUntraced(function* ({ body, needsIds, options, outline, pair, protocol }: LongAnswer) {
  const answer = outline.value
  const right = (
    bytes: Buffer | undefined,
    usage: Usage,
    tokens_counted = countedIn(outline),
    ids: ReadonlyArray<string> = []
  ) => Either.right<ReadLong>({ bytes, usage, tokens_counted, ids })
  if (answer === undefined) return Either.left("the response is not a JSON object")

  if (pair !== undefined) {
    const reported = () => pair.vendor.usageOf(answer.usage ?? answer.usageMetadata) ?? noUsage
    if (body === undefined) return right(undefined, reported())
    const task = {
      how: "translate",
      client: pair.client.protocol,
      vendor: pair.vendor.protocol,
      options: yield* options(),
      body
    } as const
    const done = yield* onThread(task as Task)
    if (done === undefined) return right(undefined, reported())
    if (done.fault !== undefined) return Either.left(done.fault)
    const { buffer, byteLength, byteOffset } = done.bytes
    return right(Buffer.from(buffer, byteOffset, byteLength), done.usage!, done.tokens_counted)
  }

  const fault = protocol.faultIn(answer)
  if (fault !== undefined) return Either.left(fault)
  const usage = protocol.usageIn(answer)
  const reports = usage.prompt_tokens !== undefined && usage.completion_tokens !== undefined
  if (body === undefined || (reports && !needsIds)) {
    return right(body, usage)
  }
  const counted = yield* onThread({ how: "count", client: protocol.name, body: Uint8Array.from(body) })
  if (counted?.fault !== undefined) return Either.left(counted.fault)
  // If the thread died, only the answer's own id is known.
  return right(body, usage, counted?.tokens_counted, counted?.ids ?? protocol.handedOutIn?.(answer))
})

/** A long answer. It is parsed only when it is first read. */
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

// ---- the thread -----------------------------------------------------------------------------------------------------------------

interface Job {
  readonly task: Task
  readonly done: (done: Done | undefined) => void
}

/** The thread's heap limit, in megabytes. An answer that needs more kills the thread. */
const heapMax = 512
/** How long the thread may be idle before it stops, in milliseconds. */
const idleMax = 10_000

const jobs: Array<Job> = []
let current: Job | undefined
let worker: Worker | undefined
let idle: NodeJS.Timeout | undefined

/** Runs a task on the thread. Returns `undefined` if the task killed the thread. */
const onThread = (task: Task): Effect.Effect<Done | undefined> =>
  Effect.async((resume) => {
    jobs.push({ task, done: (done) => resume(Effect.succeed(done)) })
    next()
  })

const next = (): void => {
  if (current !== undefined) return
  current = jobs.shift()
  if (current === undefined) return
  clearTimeout(idle)
  worker ??= begun()
  const { task } = current
  worker.postMessage(task, [task.body.buffer as ArrayBuffer])
}

const begun = (): Worker => {
  const thread = startAnswers({ resourceLimits: { maxOldGenerationSizeMb: heapMax } })
  thread.unref()
  const over = () => {
    if (worker !== thread) return
    worker = undefined
    ended(undefined)
  }
  return thread.on("message", ended).on("error", over).on("exit", over)
}

const ended = (done: Done | undefined): void => {
  const job = current
  current = undefined
  idle = setTimeout(() => {
    const thread = worker
    worker = undefined
    void thread?.terminate()
  }, idleMax).unref()
  job?.done(done)
  next()
}
