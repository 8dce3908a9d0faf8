/**
 * The worker thread for long bodies. It does one task at a time: it reads a prompt, translates a prompt or an answer, or counts an answer's tokens. A
 * result never contains the parsed body.
 */
import { Either } from "effect"
import { parentPort } from "node:worker_threads"
import { chat, text } from "../dialects/chat/Completions.ts"
import { messages } from "../dialects/messages/Protocol.ts"
import { responses } from "../dialects/responses/Protocol.ts"
import { exceeded, parse } from "../../http/transport/Json.ts"
import { bodyHash } from "../../upstream/wire/BodyHash.ts"
import type { Conversation } from "../../protocols/conversation/Conversation.ts"
import type { Uncarriable } from "../../protocols/conversation/Uncarriable.ts"
import { readJson } from "../../upstream/wire/Failures.ts"
import type { ClientProtocol } from "../../upstream/models/Protocol.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import type {
  AnswerDone,
  CountTask,
  Done,
  ReadDone,
  ReadTask,
  Task,
  TranslateTask,
  WriteDone,
  WriteTask
} from "./BodyTask.ts"
import { partsOf } from "./PromptParts.ts"
import * as Translated from "./Translated.ts"

const protocols: { readonly [Name in ClientProtocol]: Protocol } = { chat, text, messages, responses }

const none = () => new Uint8Array()
const faulty = (fault: string): AnswerDone => ({
  fault,
  bytes: none(),
  hash: "",
  usage: undefined,
  tokens_counted: 0,
  ids: []
})

const bufferOf = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

// ---- answers ----------------------------------------------------------------------------------------------------------------

/**
 * The maximum number of values and names in an answer. A few bytes of JSON can take a hundred bytes of the heap, and running out of memory inside
 * `JSON.parse` would end the whole process instead of this thread.
 */
const partsMax = 4_000_000

const answered = (task: CountTask | TranslateTask): AnswerDone => {
  const bytes = bufferOf(task.body)
  if (exceeded(bytes, partsMax, Infinity) !== undefined) return faulty(`the response has more than ${partsMax} parts`)
  const answer = readJson(bytes)?.value
  if (answer === undefined) return faulty("the response is not a JSON object")
  if (task.how === "count")
    return {
      fault: undefined,
      bytes: none(),
      hash: "",
      usage: undefined,
      tokens_counted: protocols[task.client].countIn(answer),
      ids: protocols[task.client].handedOutIn?.(answer) ?? []
    }
  const read = Translated.answerOf(Translated.pairOf(task.client, task.vendor)!, answer, task.options)
  if (Either.isLeft(read)) return faulty(read.left)
  const { shown, tokens_counted, usage } = read.right
  const written = new TextEncoder().encode(JSON.stringify(shown))
  return {
    fault: undefined,
    bytes: written,
    hash: bodyHash(written),
    usage,
    tokens_counted: tokens_counted(),
    ids: []
  }
}

// ---- prompts ----------------------------------------------------------------------------------------------------------------

/** The last prompt that was read. */
let last: { readonly prompt: number; readonly conversation: () => Either.Either<Conversation, Uncarriable> } | undefined

const remembered = (prompt: number, client: ClientProtocol, value: unknown) => {
  let conversation: Either.Either<Conversation, Uncarriable> | undefined
  last = { prompt, conversation: () => (conversation ??= Translated.conversationOf(client, value)) }
  return last
}

const read = ({ body, client, prompt }: ReadTask): ReadDone => {
  last = undefined
  const json = bufferOf(body)
  const found = Either.flatMap(parse(json), (value) => {
    remembered(prompt, client, value)
    return partsOf(protocols[client], value, json)
  })
  if (Either.isRight(found)) return { body, hash: bodyHash(json), parts: found.right, refusal: undefined }
  last = undefined
  const { field, message, rule } = found.left
  return { body, hash: "", parts: undefined, refusal: { field, message, rule } }
}

const written = ({ body, client, limit, prompt, route, stream, vendor }: WriteTask): WriteDone => {
  const { conversation } =
    last?.prompt === prompt ? last : remembered(prompt, client, Either.getOrThrow(parse(bufferOf(body))))
  const translated = Translated.writtenFor(vendor, conversation(), route, stream, limit)
  if (Either.isRight(translated)) return { body, bytes: new TextEncoder().encode(translated.right), refusal: undefined }
  const { field, message, rule } = translated.left
  return { body, bytes: undefined, refusal: { field, message, rule } }
}

// ---- tasks ------------------------------------------------------------------------------------------------------------------

/** Does a task. The buffers in the result move to the main thread. */
const done = (task: Task): readonly [Done, ReadonlyArray<Uint8Array>] => {
  switch (task.how) {
    case "read": {
      const result = read(task)
      return [result, [result.body, ...(result.parts?.members.flatMap(({ bytes }) => bytes ?? []) ?? [])]]
    }
    case "write": {
      const result = written(task)
      return [result, result.bytes === undefined ? [result.body] : [result.body, result.bytes]]
    }
    default: {
      const result = answered(task)
      return [result, [result.bytes]]
    }
  }
}

const attempted = (task: Task): ReturnType<typeof done> => {
  try {
    return done(task)
  } catch (error) {
    return [{ failed: error instanceof Error ? error.message : String(error) }, []]
  }
}

parentPort!.on("message", (task: Task) => {
  const [result, moved] = attempted(task)
  parentPort!.postMessage(
    result,
    moved.map(({ buffer }) => buffer as ArrayBuffer)
  )
})
