/**
 * Reads and writes the chunks of streamed chat completions.
 *
 * Where the specification is silent:
 * - A tool call begins with the first chunk of its `index`. A chunk with a new id and a name for the same `index` begins another call, because some
 *   servers give every call the index 0. Calls end with the response, because the deltas of several calls can alternate.
 * - The response is complete when a chunk contains a finish reason, with or without `[DONE]`. Later chunks are ignored, except for usage and errors.
 * - A broken stream ends with a chunk `{ "error": … }` and `[DONE]`, like an untranslated stream.
 */
import type { JsonObject, Signer } from "../conversation/Conversation.ts"
import type { Delta, Failure } from "../conversation/Delta.ts"
import { isObject, listOf, objectOf, text, textOr } from "../conversation/Json.ts"
import { cutOff, noDeltas, stopWith, streamReader } from "../conversation/Stream.ts"
import { callId } from "../conversation/ToolCalls.ts"
import type { StreamOptions, StreamReader, StreamWriter } from "../conversation/Translation.ts"
import { noUsage } from "../conversation/Usage.ts"
import type { Usage } from "../conversation/Usage.ts"
import { failureOf, isFailure, readStop, textsIn, writeStop } from "./Answer.ts"
import { detail, detailsOf, plainReasoning } from "./Thoughts.ts"
import type { ReasoningPart } from "./Thoughts.ts"
import { usageOf, writeUsage } from "./Usage.ts"

interface Call {
  readonly part: number
  readonly id: string
}

/** The response's open part, other than a tool call. */
interface Open {
  readonly type: "text" | "refusal" | "thinking"
  readonly part: number
  /** The `index` of an entry in `reasoning_details`. */
  readonly detail: unknown
}

class EventReader {
  #begun = false
  #finished = false
  #parts = 0
  #open: Open | undefined
  readonly #calls = new Map<unknown, Call>()
  readonly #callParts: Array<number> = []
  #deltas: Array<Delta> = []

  #close(): void {
    if (this.#open !== undefined) this.#deltas.push({ type: "part_end", index: this.#open.part })
    this.#open = undefined
  }

  #say(type: "text" | "refusal", piece: string): void {
    if (this.#open?.type !== type) {
      this.#close()
      this.#open = { type, part: this.#parts++, detail: undefined }
      this.#deltas.push({ type: type === "text" ? "text_start" : "refusal_start", index: this.#open.part })
    }
    this.#deltas.push({ type: "piece", index: this.#open.part, text: piece })
  }

  #think({ redacted, signature, signer, text }: ReasoningPart, detail: unknown): void {
    if (this.#open?.type !== "thinking" || this.#open.detail !== detail) {
      this.#close()
      this.#open = { type: "thinking", part: this.#parts++, detail }
      this.#deltas.push({ type: "thinking_start", index: this.#open.part, signer, redacted })
    }
    const index = this.#open.part
    if (text !== "") this.#deltas.push({ type: "piece", index, text })
    if (signature !== undefined) this.#deltas.push({ type: "signature", index, text: signature })
  }

  #thoughts(delta: JsonObject): void {
    const details = delta.reasoning_details
    if (Array.isArray(details) && details.length > 0) {
      const thoughts = detailsOf(delta, "vendor")
      const numbered = details.filter(isObject)
      for (const [at, thought] of thoughts.entries()) this.#think(thought, numbered[at]!.index)
      return
    }
    const plain = plainReasoning(delta)
    if (plain !== "")
      this.#think(
        { type: "thinking", text: plain, signature: undefined, signer: "unknown", redacted: false },
        undefined
      )
  }

  #call(call: JsonObject): void {
    const custom = call.type === "custom" || isObject(call.custom)
    const what = objectOf(custom ? call.custom : call.function)
    const id = textOr(call.id, "")
    const name = textOr(what.name, "")
    let known = this.#calls.get(call.index)
    if (known === undefined || (id !== "" && known.id !== id && name !== "")) {
      this.#close()
      known = { part: this.#parts++, id }
      this.#calls.set(call.index, known)
      this.#callParts.push(known.part)
      this.#deltas.push({ type: "tool_start", index: known.part, id, name, custom })
    }
    const piece = textOr(custom ? what.input : what.arguments, "")
    if (piece !== "") this.#deltas.push({ type: "piece", index: known.part, text: piece })
  }

  #finish(reason: unknown): void {
    this.#close()
    for (const index of this.#callParts) this.#deltas.push({ type: "part_end", index })
    this.#finished = true
    const stop = stopWith(readStop(reason), this.#callParts.length > 0)
    this.#deltas.push({ type: "stop", reason: stop, sequence: undefined })
  }

  #choice(choice: JsonObject): void {
    const delta = objectOf(choice.delta)
    this.#thoughts(delta)
    const content = textsIn(delta.content)
    if (content !== "") this.#say("text", content)
    if (typeof delta.refusal === "string" && delta.refusal !== "") this.#say("refusal", delta.refusal)
    for (const call of listOf(delta.tool_calls)) if (isObject(call)) this.#call(call)
    const reason = choice.finish_reason
    if (typeof reason === "string" && reason !== "") this.#finish(reason)
  }

  read(json: JsonObject): ReadonlyArray<Delta> {
    this.#deltas = []
    const usage = isObject(json.usage) ? usageOf(json.usage, json.id) : undefined
    if (isFailure(json.error)) return [...reported(usage), { type: "failure", failure: failureOf(json.error) }]
    if (!this.#begun) {
      this.#begun = true
      this.#deltas.push({ type: "start", id: text(json.id), model: text(json.model), usage: undefined })
    }
    const choice = listOf(json.choices)[0]
    if (!this.#finished && isObject(choice) && (choice.index ?? 0) === 0) {
      if (choice.finish_reason === "error")
        return [...reported(usage), { type: "failure", failure: failureOf(choice.error) }]
      this.#choice(choice)
    }
    if (usage !== undefined) this.#deltas.push({ type: "usage", usage })
    return this.#deltas
  }

  end(): ReadonlyArray<Delta> {
    return this.#finished ? ended : cut
  }
}

const reported = (usage: Usage | undefined): ReadonlyArray<Delta> =>
  usage === undefined ? noDeltas : [{ type: "usage", usage }]

const ended: ReadonlyArray<Delta> = [{ type: "end" }]
const cut: ReadonlyArray<Delta> = [cutOff]

export const reader = (): StreamReader => {
  const reading = new EventReader()
  return streamReader(
    (json) => reading.read(json),
    () => reading.end()
  )
}

const done = "data: [DONE]\n\n"

const broken = ({ message }: Failure): string =>
  `data: ${JSON.stringify({ error: { message, type: "upstream_error", code: "upstream_error" } })}\n\n${done}`

/** A part of the client's response that receives deltas. */
interface Target {
  readonly type: "text" | "refusal" | "thinking" | "function" | "custom"
  /** The position among the response's tool calls or reasoning parts. */
  readonly number: number
  readonly signer: Signer
  written: boolean
  signature: string | undefined
}

class EventWriter {
  readonly #options: StreamOptions
  readonly #before: string
  readonly #after: string
  readonly #targets: Array<Target> = []
  #calls = 0
  #thoughts = 0
  #usage: Usage | undefined

  constructor(options: StreamOptions) {
    this.#options = options
    const { created, id, include_usage, model } = options
    const head = JSON.stringify({ id: `chatcmpl-${id}`, object: "chat.completion.chunk", created, model })
    this.#before = `data: ${head.slice(0, -1)},"choices":[{"index":0,"delta":`
    this.#after = `,"logprobs":null,"finish_reason":null}]${include_usage ? ',"usage":null' : ""}}\n\n`
  }

  #chunk(delta: string): string {
    return this.#before + delta + this.#after
  }

  #target(index: number, type: Target["type"], signer: Signer = "unknown"): Target {
    const number = type === "thinking" ? this.#thoughts++ : type === "function" || type === "custom" ? this.#calls++ : 0
    const target: Target = { type, number, signer, written: false, signature: undefined }
    this.#targets[index] = target
    return target
  }

  #piece(target: Target, text: string): string {
    target.written = true
    const json = JSON.stringify(text)
    switch (target.type) {
      case "text":
        return this.#chunk(`{"content":${json}}`)
      case "refusal":
        return this.#chunk(`{"refusal":${json}}`)
      case "function":
        return this.#chunk(`{"tool_calls":[{"index":${target.number},"function":{"arguments":${json}}}]}`)
      case "custom":
        return this.#chunk(`{"tool_calls":[{"index":${target.number},"custom":{"input":${json}}}]}`)
      case "thinking":
        return this.#chunk(
          target.signer === "unknown"
            ? `{"reasoning_content":${json}}`
            : `{"reasoning_content":${json},"reasoning_details":[${this.#detail(target, text, undefined)}]}`
        )
    }
  }

  #detail(target: Target, text: string, signature: string | undefined): string {
    return JSON.stringify(detail({ text, signature, signer: target.signer }, target.number, !target.written))
  }

  #callStart(index: number, delta: Extract<Delta, { type: "tool_start" }>): string {
    const target = this.#target(index, delta.custom ? "custom" : "function")
    const id = callId(delta.id, this.#options.id, index)
    const what = delta.custom
      ? { type: "custom", custom: { name: delta.name, input: "" } }
      : { type: "function", function: { name: delta.name, arguments: "" } }
    return this.#chunk(JSON.stringify({ tool_calls: [{ index: target.number, id, ...what }] }))
  }

  #partEnd(target: Target): string {
    if (target.type === "function" && !target.written) return this.#piece(target, "{}")
    if (target.type !== "thinking" || target.signature === undefined) return ""
    return this.#chunk(`{"reasoning_details":[${this.#detail(target, "", target.signature)}]}`)
  }

  #end(): string {
    if (!this.#options.include_usage) return done
    const { created, id, model } = this.#options
    const usage = writeUsage(this.#usage ?? noUsage)
    const chunk = { id: `chatcmpl-${id}`, object: "chat.completion.chunk", created, model, choices: [], usage }
    return `data: ${JSON.stringify(chunk)}\n\n${done}`
  }

  write(delta: Delta): string {
    switch (delta.type) {
      case "piece": {
        const target = this.#targets[delta.index]
        return target === undefined ? "" : this.#piece(target, delta.text)
      }
      case "start":
        this.#usage = delta.usage
        return this.#chunk('{"role":"assistant","content":"","refusal":null}')
      case "text_start":
        this.#target(delta.index, "text")
        return ""
      case "refusal_start":
        this.#target(delta.index, "refusal")
        return ""
      case "thinking_start":
        this.#target(delta.index, "thinking", delta.signer)
        return ""
      case "tool_start":
        return this.#callStart(delta.index, delta)
      case "signature": {
        const target = this.#targets[delta.index]
        if (target !== undefined) target.signature = (target.signature ?? "") + delta.text
        return ""
      }
      case "part_end": {
        const target = this.#targets[delta.index]
        return target === undefined ? "" : this.#partEnd(target)
      }
      case "usage":
        this.#usage = delta.usage
        return ""
      case "stop":
        return (
          this.#before +
          `{},"logprobs":null,"finish_reason":"${writeStop(delta.reason)}"}]${this.#options.include_usage ? ',"usage":null' : ""}}\n\n`
        )
      case "failure":
        return broken(delta.failure)
      case "end":
        return this.#end()
    }
  }
}

export const writer = (options: StreamOptions): StreamWriter => {
  const writing = new EventWriter(options)
  return { write: (delta) => writing.write(delta) }
}
