/** The worker thread for long answers. It parses them one at a time and translates each or counts its tokens. */
import { Either } from "effect"
import { parentPort } from "node:worker_threads"
import { messages } from "../dialects/messages/Protocol.ts"
import type { AnswerOptions } from "../../protocols/conversation/Translation.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { responses } from "../dialects/responses/Protocol.ts"
import { readJson } from "../../upstream/wire/Failures.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import { chat, text } from "../dialects/chat/Completions.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import * as Translated from "./Translated.ts"

/** A job for the thread. */
export type Task =
  | { readonly how: "count"; readonly client: ClientProtocol; readonly body: Uint8Array }
  | {
      readonly how: "translate"
      readonly client: ClientProtocol
      readonly vendor: ProtocolName
      readonly options: AnswerOptions
      readonly body: Uint8Array
    }

export interface Done {
  /** The defect that makes the answer unusable. If it is set, the other members are empty. */
  readonly fault: string | undefined
  /** The answer in the client's protocol, or empty if the answer was only counted. */
  readonly bytes: Uint8Array
  readonly usage: Usage | undefined
  readonly tokens_counted: number
  /** The ids in an answer that was not translated. */
  readonly ids: ReadonlyArray<string>
}

const protocols: { readonly [Name in ClientProtocol]: Protocol } = { chat, text, messages, responses }

const none = () => new Uint8Array()
const faulty = (fault: string): Done => ({ fault, bytes: none(), usage: undefined, tokens_counted: 0, ids: [] })

const done = (task: Task): Done => {
  const answer = readJson(Buffer.from(task.body.buffer, task.body.byteOffset, task.body.byteLength))?.value
  if (answer === undefined) return faulty("the response is not a JSON object")
  if (task.how === "count")
    return {
      fault: undefined,
      bytes: none(),
      usage: undefined,
      tokens_counted: protocols[task.client].countIn(answer),
      ids: protocols[task.client].handedOutIn?.(answer) ?? []
    }
  const read = Translated.answerOf(Translated.pairOf(task.client, task.vendor)!, answer, task.options)
  if (Either.isLeft(read)) return faulty(read.left)
  const { shown, tokens_counted, usage } = read.right
  return {
    fault: undefined,
    bytes: new TextEncoder().encode(JSON.stringify(shown)),
    usage,
    tokens_counted: tokens_counted(),
    ids: []
  }
}

parentPort!.on("message", (task: Task) => {
  const result = done(task)
  parentPort!.postMessage(result, [result.bytes.buffer as ArrayBuffer])
})
