/** The engine's protocol interfaces: `Spoken` for upstreams, `Protocol` for clients. */
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import type { Source } from "../../upstream/wire/ByteStream.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import type { Reader } from "./EventRelay.ts"
import type { Billed } from "./Extras.ts"
import type { ModelRoute } from "./Model.ts"
import type { Read, ValidPrompt } from "./Prompt.ts"

type Json = Readonly<Record<string, unknown>>

/** A route to an upstream that speaks the client's protocol. */
export interface Passage {
  readonly route: ModelRoute
  readonly upstream: Upstream
}

/** An upstream protocol. If it is not a client protocol, its answers are always translated. */
export interface Spoken {
  readonly name: ProtocolName
  /** A model's path below the upstream's base address. */
  readonly pathFor: (model: string, streams: boolean) => string
  /** Request headers, in addition to the upstream's own. */
  readonly headers: Readonly<Record<string, string>>
  readonly stream: StreamForm
  /** The members of a complete answer that can be long. The other members include the usage. */
  readonly long: LongMembers
}

/** The form of a stream. */
export interface StreamForm {
  readonly content_type: RegExp
  /** Converts the bytes to server-sent events. */
  readonly eventsOf: (answer: Source) => Source
}

export const serverSentEvents: StreamForm = {
  content_type: /^text\/event-stream\b/i,
  eventsOf: (answer) => answer
}

/** A client protocol. Upstreams may also speak it. */
export interface Protocol extends Spoken {
  readonly name: ClientProtocol
  /** The route's name in usage records. */
  readonly endpoint: string

  // ---- the client's request ----
  readonly read: Read
  /** The fields that change the vendor's bill. */
  readonly billed: Billed

  // ---- the request to an upstream ----
  /** The reason why this upstream cannot be called, although it speaks the protocol. */
  readonly refusal?: (prompt: ValidPrompt, passage: Passage) => InvalidRequest | undefined
  /** The body of an untranslated request. `limit` is absent if the upstream accepts no limit. */
  readonly bodyFor: (
    prompt: ValidPrompt,
    passage: Passage,
    streams: boolean,
    limit: number | undefined
  ) => string | Buffer

  // ---- the upstream's answer ----
  /** A fault in a complete answer of status 200, for the log, if any. */
  readonly faultIn: (answer: Json) => string | undefined
  /** The usage that a complete answer reports. */
  readonly usageIn: (answer: Json) => Usage
  /** Estimates the tokens of a complete answer from its text. */
  readonly countIn: (answer: Json) => number
  /** The vendor's ids for a complete answer and its parts, if the vendor keeps them. */
  readonly handedOutIn?: (answer: Json) => ReadonlyArray<string>
  /** Converts a complete answer to a stream. Without this function the answer is translated, which would lose parts of it. */
  readonly asEvents?: (answer: Json, show_usage: boolean) => string
  /** The end of a broken stream, after these events. */
  readonly broken: (events: string) => string
  /** Creates a reader of stream events. `notes`: whether it records the vendor's ids. */
  readonly reader: (prompt: Pick<ValidPrompt, "show_usage">, notes: boolean) => Reader
}
