/** The engine's interfaces to upstream and client protocols. */
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import type { Source } from "../../upstream/wire/ByteStream.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import type { Reader } from "./EventRelay.ts"
import type { Billed } from "./Extras.ts"
import type { Named } from "./Kept.ts"
import type { ModelRoute } from "./Model.ts"
import type { Read, ValidPrompt } from "./Prompt.ts"

type Json = Readonly<Record<string, unknown>>

/** The JSON of an upstream request. A long request's body is an array of chunks. */
export type UpstreamBody = string | Buffer | ReadonlyArray<Buffer>

/** A route to an upstream that speaks the client's protocol. */
export interface Passage {
  readonly route: ModelRoute
  readonly upstream: Upstream
}

/** A protocol that upstreams speak. If clients cannot speak it, its responses are always translated. */
export interface UpstreamProtocol {
  readonly name: ProtocolName
  /** Returns a model's path below the upstream's base address. */
  readonly pathFor: (model: string, streams: boolean) => string
  /** Request headers to send in addition to the upstream's configured ones. */
  readonly headers: Readonly<Record<string, string>>
  readonly stream: StreamForm
  /** The complete response's members that can be long. They never contain its usage. */
  readonly long: LongMembers
}

/** The format of the protocol's streams. */
export interface StreamForm {
  readonly content_type: RegExp
  /** Converts the bytes to server-sent events. */
  readonly eventsOf: (answer: Source) => Source
}

export const serverSentEvents: StreamForm = {
  content_type: /^text\/event-stream\b/i,
  eventsOf: (answer) => answer
}

/** A protocol that clients speak. Upstreams can also speak it. */
export interface Protocol extends UpstreamProtocol {
  readonly name: ClientProtocol
  /** The route's name in usage records. */
  readonly endpoint: string

  // ---- the client's request ----
  readonly read: Read
  /** The fields that change the vendor's bill. */
  readonly billed: Billed
  /** The request member that can be long. */
  readonly long_member: string
  /**
   * Returns the short value that replaces a long member in the body; by default, `true`. `refusal` and translated responses treat it like the
   * member's value.
   */
  readonly shortened?: (name: string, value: unknown) => unknown

  // ---- the request to an upstream ----
  /** Returns the reason why this upstream cannot be called, although it speaks the protocol. */
  readonly refusal?: (prompt: ValidPrompt, passage: Passage) => InvalidRequest | undefined
  /** Builds an untranslated request's body. `limit` is `undefined` if the upstream accepts no limit. */
  readonly bodyFor: (prompt: ValidPrompt, passage: Passage, streams: boolean, limit: number | undefined) => UpstreamBody

  // ---- the upstream's response ----
  /** Returns a complete response's defect, for the log. The response has status 200. */
  readonly faultIn: (answer: Json) => string | undefined
  readonly usageIn: (answer: Json) => Usage
  /** Estimates a complete response's completion tokens from its text. */
  readonly countIn: (answer: Json) => number
  /** Returns the ids of stored objects that a request's body contains. */
  readonly namedIn?: (body: Json) => ReadonlyArray<Named>
  /** Returns the vendor's ids for a complete response and its parts, if the vendor stores them. */
  readonly handedOutIn?: (answer: Json) => ReadonlyArray<string>
  /** Converts a complete response to a stream. Without this function, the response is translated and loses parts. */
  readonly asEvents?: (answer: Json, show_usage: boolean) => string
  /** Returns the events that end a broken stream. `events` are the last events that the upstream sent. */
  readonly broken: (events: string) => string
  /** Creates a reader of stream events. If `notes` is true, the reader records the vendor's ids. */
  readonly reader: (prompt: Pick<ValidPrompt, "show_usage">, notes: boolean) => Reader
}
