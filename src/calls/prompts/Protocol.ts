/** What the engine knows of a protocol in which models are asked: of an upstream (`Spoken`), and by a client too (`Protocol`). */
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import type { Source } from "../../upstream/wire/ByteStream.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import type { Reader } from "./EventRelay.ts"
import type { Billed } from "./Extras.ts"
import type { ModelRoute } from "./Model.ts"
import type { Read, ValidPrompt } from "./Prompt.ts"

type Json = Readonly<Record<string, unknown>>

/** An upstream that is asked in a client's own protocol. */
export interface Passage {
  readonly route: ModelRoute
  readonly upstream: Upstream
}

/** A protocol in which upstreams are asked. Those that no client speaks are read by translation alone. */
export interface Spoken {
  readonly name: ProtocolName
  /** Where a model is asked, below the upstream's base address. */
  readonly pathFor: (model: string, streams: boolean) => string
  /** Beside those of the upstream. */
  readonly headers: Readonly<Record<string, string>>
  readonly stream: StreamForm
}

/** How the answer that streams comes. */
export interface StreamForm {
  readonly content_type: RegExp
  /** Makes server-sent events of it. */
  readonly eventsOf: (answer: Source) => Source
}

export const serverSentEvents: StreamForm = {
  content_type: /^text\/event-stream\b/i,
  eventsOf: (answer) => answer
}

/** A protocol that clients speak, and upstreams. */
export interface Protocol extends Spoken {
  readonly name: ClientProtocol
  /** The route's name in usage records. */
  readonly endpoint: string

  // ---- what a client asks ----
  readonly read: Read
  /** The fields that make a vendor bill otherwise. */
  readonly billed: Billed

  // ---- what an upstream is asked ----
  /** Why this upstream cannot be asked this, though it speaks the protocol. */
  readonly refusal?: (prompt: ValidPrompt, passage: Passage) => InvalidRequest | undefined
  /** The body of a request that passes as it came, with the limit of the answer, or none where the upstream takes none. */
  readonly bodyFor: (
    prompt: ValidPrompt,
    passage: Passage,
    streams: boolean,
    limit: number | undefined
  ) => string | Buffer

  // ---- what an upstream answers ----
  /** What is wrong with a whole answer of status 200, for the log; `undefined` where it is an answer. */
  readonly faultIn: (answer: Json) => string | undefined
  /** What a whole answer reports. */
  readonly usageIn: (answer: Json) => Usage
  /** How many tokens a whole answer has, counted by what it says. */
  readonly countIn: (answer: Json) => number
  /** The ids by which a vendor keeps a whole answer and its parts, where it keeps any. */
  readonly handedOutIn?: (answer: Json) => ReadonlyArray<string>
  /** How a stream ends that broke, behind these events. */
  readonly broken: (events: string) => string
  /** Reads the events of a stream. `notes`: whether it notes the ids that are handed out. */
  readonly reader: (prompt: Pick<ValidPrompt, "show_usage">, notes: boolean) => Reader
}
