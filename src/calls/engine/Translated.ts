/**
 * Calls an upstream that does not speak the client's protocol or must not see part of the request. `protocols/` translates the request, the response
 * and the stream. The charge is based on the usage that the upstream reports in its protocol.
 */
import { Either } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { deltasOf } from "../../protocols/conversation/Answer.ts"
import type { AnswerPart } from "../../protocols/conversation/Answer.ts"
import type { Conversation } from "../../protocols/conversation/Conversation.ts"
import type { Delta } from "../../protocols/conversation/Delta.ts"
import { generated, generatedInMessages, generatedInResponses } from "../../protocols/conversation/Gist.ts"
import type { Generated } from "../../protocols/conversation/Gist.ts"
import { translations } from "../../protocols/Protocols.ts"
import type {
  AnswerOptions,
  StreamOptions,
  StreamReader,
  StreamWriter,
  Translation
} from "../../protocols/conversation/Translation.ts"
import type { Uncarriable } from "../../protocols/conversation/Uncarriable.ts"
import { isForeign as hasForeign } from "../../protocols/conversation/Thoughts.ts"
import { noUsage } from "../../protocols/conversation/Usage.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { withoutSecrets } from "../../upstream/wire/Failures.ts"
import type { ProtocolName } from "../../upstream/models/Protocol.ts"
import { parse } from "../prompts/EventRelay.ts"
import type { Reader } from "../prompts/EventRelay.ts"
import type { ModelRoute } from "../prompts/Model.ts"
import type { LongText, ValidPrompt } from "../prompts/Prompt.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import { tokensOfString } from "../prompts/Tokens.ts"

const byName: Partial<Record<ProtocolName, Translation>> = translations

/** The client protocol's and the upstream protocol's translations. */
export interface Pair {
  readonly client: Translation
  readonly vendor: Translation
}

/** Returns the translations of both protocols, or `undefined` if either has none, as for text completions. */
export const pairOf = (client: ProtocolName, vendor: ProtocolName): Pair | undefined => {
  const [one, other] = [byName[client], byName[vendor]]
  return one === undefined || other === undefined ? undefined : { client: one, vendor: other }
}

/** Members that contain signed reasoning, by protocol. Clients of these protocols send it back. */
const thoughts: Partial<Record<ProtocolName, ReadonlyArray<Buffer>>> = {
  messages: [Buffer.from('"signature"'), Buffer.from('"redacted_thinking"')],
  responses: [Buffer.from('"encrypted_content"')]
}

/** Returns whether a request contains reasoning that its protocol's vendor did not sign and would therefore reject. */
export const isForeign = (
  client: ProtocolName,
  { body, json, long }: Pick<ValidPrompt, "body" | "json" | "long">
): boolean => {
  if (long !== undefined) return long.foreign
  const names = thoughts[client]
  if (names === undefined) return false
  const text = json ?? Buffer.from(JSON.stringify(body))
  return names.some((name) => text.includes(name)) && hasForeign(text.toString("latin1"))
}

type Body = Either.Either<string | ReadonlyArray<Buffer>, InvalidRequest>

/** A prompt that is being translated. It is read only once for all upstreams. */
interface Known {
  readonly conversation: Either.Either<Conversation, Uncarriable>
  /** The last translated body and its route. */
  written: { readonly route: ModelRoute; readonly limit: number | undefined; readonly body: Body } | undefined
}

const known = new WeakMap<ValidPrompt, Known>()

const knownOf = (client: Translation, prompt: ValidPrompt): Known => {
  let one = known.get(prompt)
  if (one === undefined)
    known.set(prompt, (one = { conversation: client.readRequest(prompt.body), written: undefined }))
  return one
}

/**
 * Builds the upstream request body. `Left` holds the reason why the upstream cannot serve the request. A long prompt must already be translated for
 * the route and the limit (`LongPrompts`).
 */
export const bodyFor = (
  { client, vendor }: Pair,
  prompt: ValidPrompt,
  route: ModelRoute,
  stream: boolean,
  limit: number | undefined
): Body => {
  if (prompt.long !== undefined) return knownLong(prompt.long, route, limit)
  const one = knownOf(client, prompt)
  if (one.written?.route === route && one.written.limit === limit) return one.written.body
  const body = writtenBy(vendor, one.conversation, route, stream, limit)
  one.written = { route, limit, body }
  return body
}

const knownLong = ({ translations }: LongText, route: ModelRoute, limit: number | undefined): Body => {
  const found = translations.get(route)
  if (found === undefined || found.limit !== limit) throw new Error("the long prompt is not translated for this route")
  return found.body
}

/** Writes a conversation for a vendor. */
const writtenBy = (
  vendor: Translation,
  conversation: Known["conversation"],
  { limit_field, model }: Pick<ModelRoute, "limit_field" | "model">,
  stream: boolean,
  limit: number | undefined
): Either.Either<string, InvalidRequest> => {
  const name = limit_field === "max_tokens" ? limit_field : "max_completion_tokens"
  const written = Either.flatMap(conversation, (conversation) =>
    vendor.writeRequest(limit_field === "none" ? withoutLimit(vendor, conversation) : conversation, {
      model,
      limit,
      limit_field: name,
      stream
    })
  )
  return Either.mapBoth(written, {
    onLeft: ({ field, why }) => InvalidRequest.of(field, why),
    onRight: (body) => JSON.stringify(body)
  })
}

/** Reads a client's prompt. */
export const conversationOf = (client: ProtocolName, body: unknown): Known["conversation"] =>
  byName[client]!.readRequest(body)

export const writtenFor = (
  vendor: ProtocolName,
  conversation: Known["conversation"],
  route: Pick<ModelRoute, "limit_field" | "model">,
  stream: boolean,
  limit: number | undefined
): Either.Either<string, InvalidRequest> => writtenBy(byName[vendor]!, conversation, route, stream, limit)

/** Removes the completion limit, except for the Messages protocol, which requires one. */
const withoutLimit = ({ protocol }: Translation, conversation: Conversation): Conversation =>
  protocol === "messages" ? conversation : { ...conversation, limit: undefined }

/** A response in the client's protocol, with its usage. */
export interface ReadAnswer {
  readonly shown: Record<string, unknown>
  /** The usage that the upstream reports. */
  readonly usage: Usage
  /** Estimates the completion tokens from their text. */
  readonly tokens_counted: () => number
}

/** Translates a response for the client. `Left` holds the upstream response's defect. */
export const answerOf = (
  { client, vendor }: Pair,
  answer: unknown,
  options: AnswerOptions
): Either.Either<ReadAnswer, string> =>
  Either.mapBoth(vendor.readAnswer(answer), {
    onLeft: ({ message }) => `the response is invalid: ${withoutSecrets(message.slice(0, 2_000))}`,
    onRight: (answer) => ({
      shown: client.writeAnswer(answer, options),
      usage: answer.usage ?? noUsage,
      tokens_counted: () => answer.parts.reduce((sum, part) => sum + tokensOfPart(part), 0)
    })
  })

/** Converts the upstream's complete response to a stream for the client. Returns `undefined` if the response cannot be translated. */
export const eventsOf = (pair: Pair | undefined, answer: unknown, options: StreamOptions): string | undefined => {
  const read = pair?.vendor.readAnswer(answer)
  if (pair === undefined || read === undefined || Either.isLeft(read)) return undefined
  const writer = pair.client.writer(options)
  return deltasOf(read.right)
    .map((delta) => writer.write(delta))
    .join("")
}

/** Reads the usage from an upstream's JSON object, even if the object is not a valid response. */
export const usageIn = ({ vendor }: Pair, { usage, usageMetadata }: Readonly<Record<string, unknown>>): Usage =>
  vendor.usageOf(usage ?? usageMetadata) ?? noUsage

const tokensOfText = (text: string): number => tokensOfString(Buffer.byteLength(text))

const tokensOfPart = (part: AnswerPart): number =>
  part.type === "tool_call" ? tokensOfText(part.name) + tokensOfText(part.arguments) : tokensOfText(part.text)

/** Creates a reader that translates the upstream's stream for the client. If the upstream's stream breaks, `broken` ends the client's stream. */
export const readerOf = ({ client, vendor }: Pair, broken: Protocol["broken"], options: StreamOptions): Reader =>
  new TranslatingReader(vendor, client.writer(options), broken)

/** The maximum size of an event to translate, in bytes. */
const translatedEventMax = 4 * 1024 * 1024

/** The names of generated strings, for protocols that use unusual ones. */
const generatedBy: Partial<Record<ProtocolName, Generated>> = {
  messages: generatedInMessages,
  responses: generatedInResponses
}

class TranslatingReader implements Reader {
  readonly generated: Generated
  readonly event_bytes_max = translatedEventMax
  private readonly from: StreamReader
  private readonly to: StreamWriter
  private readonly broken: Protocol["broken"]
  private failed = false
  /** Whether an event could not be translated. If so, the client gets no more events, and the remaining stream is read only for its usage. */
  private lost = false
  private ended = false
  private usage: Usage = noUsage
  private tokens = 0
  /** The end of the client's response, sent once the charge is committed. */
  private end = ""
  /** The text to send before `end`, produced when the upstream's bytes end. */
  private closing = ""
  private latest = ""

  constructor(vendor: Translation, to: StreamWriter, broken: Protocol["broken"]) {
    this.from = vendor.reader()
    this.generated = generatedBy[vendor.protocol] ?? generated
    this.to = to
    this.broken = broken
  }

  readonly take: Reader["take"] = (events, stream) => {
    const text = this.translated(events.toString("utf8"))
    if (text !== "" && !this.lost) {
      this.latest = text
      stream.pass(Buffer.from(text))
    }
    if (!this.failed) return
    stream.end("broken")
    stream.abort()
  }

  /** Does nothing, because an event that is too long is not translated. `skipped` reads its gist. */
  readonly skip: Reader["skip"] = () => {}

  readonly skipped: Reader["skipped"] = ({ text, tokens }, stream) => {
    this.tokens += tokens
    this.lost ||= !repeats.test(text)
    this.take(Buffer.from(text, "latin1"), stream)
    return !this.failed
  }

  readonly isWhole: Reader["isWhole"] = (text) => isDone.test(text) || parse(text) !== undefined

  readonly isFinished: Reader["isFinished"] = () => {
    this.closing += this.written(this.from.close())
    return this.ended && !this.failed
  }

  readonly report: Reader["report"] = () => ({ usage: this.usage, tokens_counted: this.tokens })

  readonly last: Reader["last"] = (how) =>
    how === "complete" && !this.lost ? this.closing + this.end : this.broken(this.latest)

  /** Translates events line by line, because splitting with a regular expression took a tenth of the translation time. */
  private translated(events: string): string {
    let text = ""
    let name: string | undefined
    let data: string | undefined
    for (let from = 0; from < events.length;) {
      const found = events.indexOf("\n", from)
      const end = found === -1 ? events.length : found
      const line = events.slice(from, end > from && events.charCodeAt(end - 1) === 0x0d ? end - 1 : end)
      from = end + 1
      if (line.startsWith("data:")) data = data === undefined ? line.slice(5) : `${data}\n${line.slice(5)}`
      else if (line.startsWith("event:")) name = line.slice(6).trim()
      if (line !== "" && from < events.length) continue
      if (data !== undefined) text += this.written(this.from.read({ event: name, data: data.trimStart() }))
      name = undefined
      data = undefined
    }
    return text
  }

  private written(deltas: ReadonlyArray<Delta>): string {
    let text = ""
    for (const delta of deltas) {
      this.note(delta)
      if (delta.type === "end") this.end = this.to.write(delta)
      else if (delta.type !== "failure") text += this.to.write(delta)
    }
    return text
  }

  private note(delta: Delta): void {
    switch (delta.type) {
      case "piece":
        this.tokens += tokensOfText(delta.text)
        return
      case "tool_start":
        this.tokens += tokensOfText(delta.name)
        return
      case "start":
        // A completion count that precedes the completion is ignored.
        if (delta.usage !== undefined) this.usage = { ...delta.usage, completion_tokens: undefined }
        return
      case "usage":
        this.usage = delta.usage
        return
      case "failure":
        this.failed = true
        return
      case "end":
        this.ended = true
        return
      default:
    }
  }
}

/** Matches Responses events that only repeat earlier ones. */
const repeats = /"type":"response\.(?:[a-z_.]+\.done|completed|incomplete)"/

const isDone = /^data: ?\[DONE\]\s*$/
