/** What the engine knows of a protocol in which models are asked: by a client, and of an upstream. */
import type { InvalidRequest } from "../kernel/InvalidRequest.ts"
import type { Usage } from "../protocols/Usage.ts"
import type { ProtocolName } from "../upstream/Protocol.ts"
import type { Upstream } from "../upstream/Upstreams.ts"
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

export interface Protocol {
  readonly name: ProtocolName
  /** The route's name in usage records. */
  readonly endpoint: string

  // ---- what a client asks ----
  readonly read: Read
  /** The fields that make a vendor bill otherwise. */
  readonly billed: Billed

  // ---- what an upstream is asked ----
  /** Below the upstream's base address. */
  readonly path: string
  readonly headersFor: (upstream: Upstream) => Readonly<Record<string, string>>
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
  /** How a stream ends that broke, behind these events. */
  readonly broken: (events: string) => string
  /** Reads the events of a stream. */
  readonly reader: (prompt: Pick<ValidPrompt, "show_usage">) => Reader
}
