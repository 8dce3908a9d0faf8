/**
 * The engine's functions on the long-body thread. They read a prompt, translate a prompt or a response, or count a response's tokens. A result never
 * contains the complete parsed body.
 */
import { Either } from "effect"
import { createHash } from "node:crypto"
import { chat, text } from "../dialects/chat/Completions.ts"
import { readCount } from "../dialects/messages/Prompt.ts"
import { messages } from "../dialects/messages/Protocol.ts"
import { responses } from "../dialects/responses/Protocol.ts"
import { parse } from "../../http/transport/Json.ts"
import { bodyHash } from "../../upstream/wire/BodyHash.ts"
import type { Conversation } from "../../protocols/conversation/Conversation.ts"
import type { Uncarriable } from "../../protocols/conversation/Uncarriable.ts"
import type { ClientProtocol } from "../../upstream/models/Protocol.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import { answerIn } from "../threads/Answer.ts"
import { bufferOf, refusalOf } from "../threads/Task.ts"
import type { Work } from "../threads/Task.ts"
import type {
  AnswerDone,
  CountTask,
  PromptRoute,
  ReadDone,
  ReadTask,
  TranslateTask,
  WriteDone,
  WriteTask
} from "./BodyTask.ts"
import { partsOf } from "./PromptParts.ts"
import * as Translated from "./Translated.ts"

const protocols: { readonly [Name in ClientProtocol]: Protocol } = { chat, text, messages, responses }
const routes: { readonly [Name in PromptRoute]: Protocol } = {
  ...protocols,
  count_tokens: { ...messages, read: readCount }
}
const clientOf = (route: PromptRoute): ClientProtocol => (route === "count_tokens" ? "messages" : route)

const none = () => new Uint8Array()
const faulty = (fault: string): AnswerDone => ({
  fault,
  bytes: none(),
  hash: "",
  usage: undefined,
  tokens_counted: 0,
  ids: []
})

// ---- responses --------------------------------------------------------------------------------------------------------------

const readResponse = (task: CountTask | TranslateTask): AnswerDone => {
  const parsed = answerIn(bufferOf(task.body))
  if (Either.isLeft(parsed)) return faulty(parsed.left)
  const answer = parsed.right.value
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

const rememberPrompt = (prompt: number, client: ClientProtocol, value: unknown) => {
  let conversation: Either.Either<Conversation, Uncarriable> | undefined
  last = { prompt, conversation: () => (conversation ??= Translated.conversationOf(client, value)) }
  return last
}

const read = ({ body, prompt, route }: ReadTask): ReadDone => {
  last = undefined
  const json = bufferOf(body)
  const found = Either.flatMap(parse(json), (value) => {
    rememberPrompt(prompt, clientOf(route), value)
    return partsOf(routes[route], value, json)
  })
  if (Either.isRight(found)) return { body, hash: bodyHash(json), parts: found.right, refusal: undefined }
  last = undefined
  return { body, hash: "", parts: undefined, refusal: refusalOf(found.left) }
}

const written = ({ body, client, hashes, limit, prompt, route, stream, vendor }: WriteTask): WriteDone => {
  const { conversation } =
    last?.prompt === prompt ? last : rememberPrompt(prompt, client, Either.getOrThrow(parse(bufferOf(body))))
  const translated = Translated.writtenFor(vendor, conversation(), route, stream, limit)
  if (Either.isLeft(translated))
    return { body, bytes: undefined, sha256: undefined, refusal: refusalOf(translated.left) }
  const bytes = new TextEncoder().encode(translated.right)
  const sha256 = hashes ? createHash("sha256").update(bytes).digest("hex") : undefined
  return { body, bytes, sha256, refusal: undefined }
}

// ---- the functions ----------------------------------------------------------------------------------------------------------

const answer: Work<CountTask | TranslateTask> = (task) => {
  const done = readResponse(task)
  return [done, [done.bytes]]
}

const prompt: Work<ReadTask> = (task) => {
  const done = read(task)
  return [done, [done.body, ...(done.parts?.members.flatMap(({ bytes }) => bytes ?? []) ?? [])]]
}

const translation: Work<WriteTask> = (task) => {
  const done = written(task)
  return [done, done.bytes === undefined ? [done.body] : [done.body, done.bytes]]
}

/** The functions by task name. */
export const engineWork = { read: prompt, write: translation, count: answer, translate: answer }
