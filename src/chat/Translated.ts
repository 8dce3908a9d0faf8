/**
 * A call on its way to an upstream that does not speak its client's protocol: the request, the answer and its stream are translated by
 * `protocols/`. What the upstream reports is read in its own protocol, so the charge is by its own count.
 */
import { Either } from "effect"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import type { Conversation } from "../protocols/Conversation.ts"
import { translations } from "../protocols/Protocols.ts"
import type { AnswerOptions, StreamOptions, StreamReader, StreamWriter, Translation } from "../protocols/Translation.ts"
import type { Uncarriable } from "../protocols/Uncarriable.ts"
import type { ProtocolName } from "../upstream/Protocol.ts"
import type { Reader } from "./EventRelay.ts"
import type { ModelRoute } from "./Model.ts"
import type { ValidPrompt } from "./Prompt.ts"
import type { Protocol } from "./Protocol.ts"

const byName: Partial<Record<ProtocolName, Translation>> = {
  chat: translations.chat,
  messages: translations.messages,
  responses: translations.responses
}

/** From a client's protocol to an upstream's. */
export interface Pair {
  readonly client: Translation
  readonly vendor: Translation
}

/** `undefined` where one of them is not translated: text completions are not. */
export const pairOf = (client: ProtocolName, vendor: ProtocolName): Pair | undefined => {
  const [one, other] = [byName[client], byName[vendor]]
  return one === undefined || other === undefined ? undefined : { client: one, vendor: other }
}

type Body = Either.Either<string, InvalidRequest>

/** What is known of a prompt that is translated: it is read once, however many upstreams are asked. */
interface Known {
  readonly conversation: Either.Either<Conversation, Uncarriable>
  /** The body that was written last, and for whom. */
  written: { readonly route: ModelRoute; readonly limit: number | undefined; readonly body: Body } | undefined
}

const known = new WeakMap<ValidPrompt, Known>()

const knownOf = (client: Translation, prompt: ValidPrompt): Known => {
  let one = known.get(prompt)
  if (one === undefined)
    known.set(prompt, (one = { conversation: client.readRequest(prompt.body), written: undefined }))
  return one
}

/** The body for the upstream, or why it cannot carry what is asked. */
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
    vendor.writeRequest(conversation, { model, limit, limit_field: name, stream })
  )
  const body = Either.mapBoth(written, {
    onLeft: ({ field, why }) => InvalidRequest.of(field, why),
    onRight: (body) => JSON.stringify(body)
  })
  one.written = { route, limit, body }
  return body
}

/** The client's answer of the upstream's, or what is wrong with that. */
export const answerOf = (
  { client, vendor }: Pair,
  answer: unknown,
  options: AnswerOptions
): Either.Either<Record<string, unknown>, string> =>
  Either.mapBoth(vendor.readAnswer(answer), {
    onLeft: ({ message }) => message,
    onRight: (answer) => client.writeAnswer(answer, options)
  })

/** Reads the upstream's stream, and writes the client's. */
export const readerOf = ({ client, vendor }: Pair, from: Protocol, to: Protocol, options: StreamOptions): Reader =>
  new TranslatingReader(from.reader({ show_usage: true }), vendor.reader(), client.writer(options), to.broken)

class TranslatingReader implements Reader {
  private readonly native: Reader
  private readonly from: StreamReader
  private readonly to: StreamWriter
  private readonly broken: Protocol["broken"]
  private failed = false
  /** What completes the client's answer, and waits for the books. */
  private end = ""
  private latest = ""

  constructor(native: Reader, from: StreamReader, to: StreamWriter, broken: Protocol["broken"]) {
    this.native = native
    this.from = from
    this.to = to
    this.broken = broken
  }

  readonly take: Reader["take"] = (events, stream) => {
    let text = ""
    let ended = false
    this.native.take(events, {
      pass: (bytes) => {
        text += this.translated(bytes)
      },
      end: () => {
        ended = true
      },
      abort: () => {}
    })
    if (text !== "") {
      this.latest = text
      stream.pass(Buffer.from(text))
    }
    if (!ended && !this.failed) return
    stream.end("broken")
    stream.abort()
  }

  /** Half an event cannot be translated. */
  readonly skip: Reader["skip"] = (_bytes, stream) => {
    stream.end("broken")
    stream.abort()
  }

  readonly isWhole: Reader["isWhole"] = (text) => this.native.isWhole(text)
  readonly isFinished: Reader["isFinished"] = () => !this.failed && this.native.isFinished()
  readonly report: Reader["report"] = () => this.native.report()

  readonly last: Reader["last"] = (how) => {
    if (how === "broken") return this.broken(this.latest)
    const before = this.translated(Buffer.from(this.native.last(how))) + this.written(this.from.close())
    return this.failed || this.end === "" ? before + this.broken(this.latest) : before + this.end
  }

  private translated(bytes: Buffer): string {
    let text = ""
    for (const event of bytes.toString("utf8").split(/\r?\n\r?\n/)) {
      let name: string | undefined
      let data: string | undefined
      for (const line of event.split(/\r?\n/)) {
        if (line.startsWith("data:")) data = data === undefined ? line.slice(5) : `${data}\n${line.slice(5)}`
        else if (line.startsWith("event:")) name = line.slice(6).trim()
      }
      if (data !== undefined) text += this.written(this.from.read({ event: name, data: data.trimStart() }))
    }
    return text
  }

  private written(deltas: ReturnType<StreamReader["read"]>): string {
    let text = ""
    for (const delta of deltas) {
      if (delta.type === "failure") this.failed = true
      else if (delta.type === "end") this.end += this.to.write(delta)
      else text += this.to.write(delta)
    }
    return text
  }
}
