/** The engine's view of protocols: upstreams speak a `Spoken`; clients speak a `Protocol`. */
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

/** An upstream that speaks the client's protocol. */
export interface Passage {
  readonly route: ModelRoute
  readonly upstream: Upstream
}

/** An upstream protocol. If no client speaks it, its answers are always translated. */
export interface Spoken {
  readonly name: ProtocolName
  /** The path of a model below the upstream's base address. */
  readonly pathFor: (model: string, streams: boolean) => string
  /** Headers in addition to the upstream's own. */
  readonly headers: Readonly<Record<string, string>>
  readonly stream: StreamForm
  /** The members of a whole answer that can be long. The others report its usage. */
  readonly long: LongMembers
}

/** The form of a stream. */
export interface StreamForm {
  readonly content_type: RegExp
  /** Turns the bytes into server-sent events. */
  readonly eventsOf: (answer: Source) => Source
}

export const serverSentEvents: StreamForm = {
  content_type: /^text\/event-stream\b/i,
  eventsOf: (answer) => answer
}

/** A protocol that clients and upstreams speak. */
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
  /** The body of an untranslated request. `limit` is absent if the upstream accepts none. */
  readonly bodyFor: (
    prompt: ValidPrompt,
    passage: Passage,
    streams: boolean,
    limit: number | undefined
  ) => string | Buffer

  // ---- the upstream's answer ----
  /** The fault of a whole answer of status 200, for the log; `undefined` if it has none. */
  readonly faultIn: (answer: Json) => string | undefined
  /** The usage that a whole answer reports. */
  readonly usageIn: (answer: Json) => Usage
  /** Estimates the tokens of a whole answer from its text. */
  readonly countIn: (answer: Json) => number
  /** The ids under which a vendor keeps a whole answer and its parts, if it keeps any. */
  readonly handedOutIn?: (answer: Json) => ReadonlyArray<string>
  /** A whole answer as a stream. Without this, the answer is translated into a stream, which would lose a part of it. */
  readonly asEvents?: (answer: Json, show_usage: boolean) => string
  /** The end of a broken stream, after these events. */
  readonly broken: (events: string) => string
  /** Makes a reader of a stream's events. `notes`: whether it records the ids that are handed out. */
  readonly reader: (prompt: Pick<ValidPrompt, "show_usage">, notes: boolean) => Reader
}
