/**
 * A call to an upstream that does not speak the client's protocol or must not receive a part of the request. `protocols/` translates the request,
 * the answer and its stream. The charge uses the upstream's usage, read in the upstream's protocol.
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
import type { ValidPrompt } from "../prompts/Prompt.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import { tokensOfString } from "../prompts/Tokens.ts"

const byName: Partial<Record<ProtocolName, Translation>> = translations

/** The translations of the client's and the upstream's protocol. */
export interface Pair {
  readonly client: Translation
  readonly vendor: Translation
}

/** Returns `undefined` if either protocol has no translation. Text completions have none. */
export const pairOf = (client: ProtocolName, vendor: ProtocolName): Pair | undefined => {
  const [one, other] = [byName[client], byName[vendor]]
  return one === undefined || other === undefined ? undefined : { client: one, vendor: other }
}

/** The members with signed thoughts, for protocols in which clients send such thoughts back. */
const thoughts: Partial<Record<ProtocolName, ReadonlyArray<Buffer>>> = {
  messages: [Buffer.from('"signature"'), Buffer.from('"redacted_thinking"')],
  responses: [Buffer.from('"encrypted_content"')]
}

/** Whether a request contains a thought that its protocol's vendor did not sign. That vendor would reject it. */
export const isForeign = (client: ProtocolName, { body, json }: ValidPrompt): boolean => {
  const names = thoughts[client]
  if (names === undefined) return false
  const text = json ?? Buffer.from(JSON.stringify(body))
  return names.some((name) => text.includes(name)) && hasForeign(text.toString("latin1"))
}

type Body = Either.Either<string, InvalidRequest>

/** A prompt being translated. It is read once for all upstreams. */
interface Known {
  readonly conversation: Either.Either<Conversation, Uncarriable>
  /** The last body, and its route. */
  written: { readonly route: ModelRoute; readonly limit: number | undefined; readonly body: Body } | undefined
}

const known = new WeakMap<ValidPrompt, Known>()

const knownOf = (client: Translation, prompt: ValidPrompt): Known => {
  let one = known.get(prompt)
  if (one === undefined)
    known.set(prompt, (one = { conversation: client.readRequest(prompt.body), written: undefined }))
  return one
}

/** The upstream body. `Left` holds the reason why the upstream cannot carry the request. */
export const bodyFor = (
  { client, vendor }: Pair,
  prompt: ValidPrompt,
  route: ModelRoute,
  stream: boolean,
  limit: number | undefined
): Body => {
  const one = knownOf(client, prompt)
  if (one.written?.route === route && one.written.limit === limit) return one.written.body
  const { limit_field, model } = route
  const name = limit_field === "max_tokens" ? limit_field : "max_completion_tokens"
  const written = Either.flatMap(one.conversation, (conversation) =>
    vendor.writeRequest(limit_field === "none" ? withoutLimit(vendor, conversation) : conversation, {
      model,
      limit,
      limit_field: name,
      stream
    })
  )
  const body = Either.mapBoth(written, {
    onLeft: ({ field, why }) => InvalidRequest.of(field, why),
    onRight: (body) => JSON.stringify(body)
  })
  one.written = { route, limit, body }
  return body
}

/** The conversation for an upstream without a token limit. The messages protocol always requires a limit. */
const withoutLimit = ({ protocol }: Translation, conversation: Conversation): Conversation =>
  protocol === "messages" ? conversation : { ...conversation, limit: undefined }

/** A client's answer and its usage. */
export interface ReadAnswer {
  readonly shown: Record<string, unknown>
  /** The usage that the upstream reports. */
  readonly usage: Usage
  /** Estimates the tokens of the answer from its text. */
  readonly tokens_counted: () => number
}

/** The client's answer. `Left` holds the fault of the upstream's answer. */
export const answerOf = (
  { client, vendor }: Pair,
  answer: unknown,
  options: AnswerOptions
): Either.Either<ReadAnswer, string> =>
  Either.mapBoth(vendor.readAnswer(answer), {
    onLeft: ({ message }) => `its answer is invalid: ${withoutSecrets(message.slice(0, 2_000))}`,
    onRight: (answer) => ({
      shown: client.writeAnswer(answer, options),
      usage: answer.usage ?? noUsage,
      tokens_counted: () => answer.parts.reduce((sum, part) => sum + tokensOfPart(part), 0)
    })
  })

/** The client's stream for the upstream's complete answer; `undefined` if the answer cannot be translated. */
export const eventsOf = (pair: Pair | undefined, answer: unknown, options: StreamOptions): string | undefined => {
  const read = pair?.vendor.readAnswer(answer)
  if (pair === undefined || read === undefined || Either.isLeft(read)) return undefined
  const writer = pair.client.writer(options)
  return deltasOf(read.right)
    .map((delta) => writer.write(delta))
    .join("")
}

/** The usage that a JSON object from the upstream reports, even if it is not a valid answer. */
export const usageIn = ({ vendor }: Pair, { usage, usageMetadata }: Readonly<Record<string, unknown>>): Usage =>
  vendor.usageOf(usage ?? usageMetadata) ?? noUsage

const tokensOfText = (text: string): number => tokensOfString(Buffer.byteLength(text))

const tokensOfPart = (part: AnswerPart): number =>
  part.type === "tool_call" ? tokensOfText(part.name) + tokensOfText(part.arguments) : tokensOfText(part.text)

/** Reads the upstream's stream and writes the client's stream. If the upstream's stream breaks, `broken` ends the client's. */
export const readerOf = ({ client, vendor }: Pair, broken: Protocol["broken"], options: StreamOptions): Reader =>
  new TranslatingReader(vendor, client.writer(options), broken)

/** The longest event that is translated. */
const translatedEventMax = 4 * 1024 * 1024

/** The names of generated strings, for protocols that do not use the usual names. */
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
  /** Whether an event could not be translated. The client gets no further events. The rest of the stream is read for its usage. */
  private lost = false
  private ended = false
  private usage: Usage = noUsage
  private tokens = 0
  /** The end of the client's answer, sent after the charge is committed. */
  private end = ""
  /** The text before `end`, written when the upstream's bytes end. */
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

  /** An overlong event is not translated. `skipped` reads its gist. */
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

  /** Reads line by line. Splitting by a regular expression took a tenth of the translation time. */
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
        // Ignore an answer token count that was reported before the answer.
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

/** Responses events that repeat earlier events. */
const repeats = /"type":"response\.(?:[a-z_.]+\.done|completed|incomplete)"/

const isDone = /^data: ?\[DONE\]\s*$/
