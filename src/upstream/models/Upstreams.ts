/** The addresses of the outside world that serve models, by the names that the configuration gives them. */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { Redacted, Scope } from "effect"
import type { Admission } from "../../books/gate/Gate.ts"
import { traceparent, Tracing } from "../../kernel/Tracing.ts"
import * as AccessTokens from "./AccessTokens.ts"
import { headerOf, keyHeaders, signer, usualHeader } from "./Credential.ts"
import type { AwsCredential, KeyHeader } from "./Credential.ts"
import { usualProtocols } from "./Protocol.ts"
import type { ProtocolName } from "./Protocol.ts"
import { retryAfterIn } from "../wire/Failures.ts"
import { Health } from "../routing/Health.ts"
import * as Wire from "../wire/Wire.ts"

export interface UpstreamSettings {
  /** Up to and without the route: `https://api.example.com/v1`. */
  readonly base_url: string
  readonly api_key: Redacted.Redacted
  /** In which header it reads the key; the one that the vendor of the request's protocol reads, unless it says so. */
  readonly credential?: KeyHeader | undefined
  /** Signs every request, instead of a key. */
  readonly aws?: AwsCredential | undefined
  /** The source of a token for every request, instead of a key. */
  readonly token_for?: AccessTokens.TokenHolder | undefined
  /** Go with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Added to every address. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** The most milliseconds without a byte. After that it counts as unreachable. */
  readonly silence_ms_max: number
  /** The most milliseconds from a request to the last byte of its answer. */
  readonly total_ms_max?: number | undefined
  /** The protocols in which it can be asked; `chat`, `text`, `embeddings` and `rerank` unless it says so. */
  readonly speaks?: ReadonlyArray<ProtocolName> | undefined
  /** Whether callers may go on from responses that it has kept; else it is asked to keep none. */
  readonly keeps_responses?: boolean | undefined
  /** How many milliseconds it is asked last after failures; never unless it says so. */
  readonly cooldown_ms?: number | undefined
}

export interface Upstream {
  readonly name: string
  /** Its host and port, as written in a URL. */
  readonly host: string
  readonly speaks: ReadonlyArray<ProtocolName>
  readonly keeps_responses: boolean
  /** How its exchanges went. */
  readonly health: Health
  /** Only who has been admitted gets at the wire. */
  readonly wire: (admission: Admission) => Wire.Wire
  /** For requests that the vendor serves for nothing, and that are no metered call: counting tokens. */
  readonly unbilled: Wire.Wire
  /** For JSON, with the credential as the vendor of the protocol reads it. */
  readonly headersFor: (protocol: ProtocolName) => Readonly<Record<string, string>>
  /** The same for tools, which no protocol of models serves. */
  readonly headers: Readonly<Record<string, string>>
  /** The key, for those that want it otherwise. */
  readonly key: Redacted.Redacted
}

/**
 * Told of every exchange with an upstream: which, how it ended (`2xx`, `4xx`, `5xx`, `unreachable`), and how many milliseconds the head of
 * its answer took.
 */
export class UpstreamObserver extends Context.Reference<UpstreamObserver>()("tollgate/upstream/UpstreamObserver", {
  defaultValue: () => (_upstream: string, _outcome: string, _millis: number) => {}
}) {}

export class Upstreams extends Context.Tag("tollgate/upstream/Upstreams")<Upstreams, ReadonlyMap<string, Upstream>>() {
  static readonly layer = (settings: Readonly<Record<string, UpstreamSettings>>) =>
    Layer.scoped(
      Upstreams,
      Effect.map(
        Effect.forEach(Object.entries(settings), ([name, upstream]) =>
          Effect.flatMap(healthOf(upstream), (health) =>
            Effect.map(wireOf(name, upstream, health), (wire) => upstreamOf(name, upstream, wire, health))
          )
        ),
        (upstreams) => new Map(upstreams.map((upstream) => [upstream.name, upstream]))
      )
    )
}

const healthOf = ({ cooldown_ms }: UpstreamSettings): Effect.Effect<Health> =>
  Effect.map(Effect.clock, (clock) => new Health(() => clock.unsafeCurrentTimeMillis(), cooldown_ms))

const upstreamOf = (name: string, settings: UpstreamSettings, wire: Wire.Wire, health: Health): Upstream => {
  const { api_key, aws, credential, keeps_responses = false, speaks = usualProtocols, token_for } = settings
  const withKey = (header: KeyHeader) => ({
    "content-type": "application/json",
    ...settings.headers,
    ...(aws === undefined && token_for === undefined && headerOf(credential ?? header, api_key))
  })
  const byHeader = new Map(keyHeaders.map((header) => [header, withKey(header)]))
  return {
    name,
    host: new URL(settings.base_url).host,
    speaks,
    keeps_responses,
    health,
    wire: () => wire,
    unbilled: wire,
    headersFor: (protocol) => byHeader.get(usualHeader(protocol))!,
    headers: byHeader.get("bearer")!,
    key: api_key
  }
}

/** An entry of the settings names an upstream that speaks no protocol in which the entry can be served. */
export class UnspokenProtocol extends Schema.TaggedError<UnspokenProtocol>()("UnspokenProtocol", {
  upstream: Schema.String,
  /** The entry, by its kind and id: `embedding model small`. */
  named_by: Schema.String,
  /** The protocol of the upstream. */
  speaks: Schema.Array(Schema.String),
  /** It needs at least one of these protocols. */
  needs: Schema.Array(Schema.String)
}) {
  override get message() {
    const { named_by, needs, speaks, upstream } = this
    return `${named_by}: the upstream ${upstream} speaks ${speaks.join(", ")}, and would have to speak ${needs.join(" or ")}: add it to its speaks, or name another upstream`
  }
}

/** An entry of the settings names an upstream that `Upstreams` does not have. */
export class UnknownUpstream extends Schema.TaggedError<UnknownUpstream>()("UnknownUpstream", {
  upstream: Schema.String,
  /** The entry, by its kind and id: `search provider tavily`. */
  named_by: Schema.String,
  /** The names that there are. */
  upstreams: Schema.Array(Schema.String)
}) {
  override get message() {
    const known = this.upstreams.length === 0 ? "there are none" : `there are: ${this.upstreams.join(", ")}`
    return `${this.named_by}: there is no upstream ${this.upstream} (${known}); add it to Upstreams, or name another`
  }
}

/**
 * The upstreams that entries of the settings name, looked up by name. For a room to ask while it is built: fails with the first entry
 * whose upstream is not there. `kind` is what the error calls an entry.
 */
export const upstreamLookup = (
  kind: string,
  entries: ReadonlyArray<{ readonly id: string; readonly upstream: string }>
): Effect.Effect<(name: string) => Upstream, UnknownUpstream, Upstreams> =>
  Effect.flatMap(Upstreams, (upstreams) => {
    const wrong = entries.find(({ upstream }) => !upstreams.has(upstream))
    if (wrong === undefined) return Effect.succeed((name: string) => upstreams.get(name)!)
    const { id, upstream } = wrong
    return new UnknownUpstream({ upstream, named_by: `${kind} ${id}`, upstreams: [...upstreams.keys()] })
  })

/** The same for models: fails with the first entry whose upstream speaks none of these protocols, too. */
export const speakerLookup = (
  kind: string,
  entries: ReadonlyArray<{ readonly id: string; readonly upstream: string }>,
  needs: ReadonlyArray<ProtocolName>
): Effect.Effect<(name: string) => Upstream, UnknownUpstream | UnspokenProtocol, Upstreams> =>
  Effect.flatMap(upstreamLookup(kind, entries), (upstreamOf) => {
    const isSpoken = (name: string) => upstreamOf(name).speaks.some((one) => needs.includes(one))
    const wrong = entries.find(({ upstream }) => !isSpoken(upstream))
    if (wrong === undefined) return Effect.succeed(upstreamOf)
    const { id, upstream } = wrong
    return new UnspokenProtocol({ upstream, named_by: `${kind} ${id}`, speaks: upstreamOf(upstream).speaks, needs })
  })

/** The wire, observed, with the trace of who uses it where traces are collected, and with what every request needs. */
const wireOf = (
  name: string,
  settings: UpstreamSettings,
  health: Health
): Effect.Effect<Wire.Wire, never, Scope.Scope> => {
  const { aws, base_url, query = {}, silence_ms_max, token_for, total_ms_max } = settings
  const added = new URLSearchParams(query).toString()
  const sign = aws === undefined ? undefined : signer(base_url, aws)
  const wire = observed(name, health, { base_url, silence_ms_max, total_ms_max })
  if (added === "" && sign === undefined && token_for === undefined) return wire
  const addressed = (request: Wire.WireRequest): Wire.WireRequest =>
    added === "" ? request : { ...request, path: `${request.path}${request.path.includes("?") ? "&" : "?"}${added}` }
  if (token_for !== undefined)
    return Effect.zipWith(AccessTokens.make(token_for), wire, (tokens, wire) => withToken(tokens, wire, addressed))
  const prepared = <A>(
    request: Wire.WireRequest,
    send: (request: Wire.WireRequest) => Effect.Effect<A, Wire.Unreachable>
  ) =>
    sign === undefined
      ? send(addressed(request))
      : Effect.flatMap(Clock.currentTimeMillis, (now) => send(sign(addressed(request), now)))
  return Effect.map(wire, ({ exchange, open }) => ({
    exchange: (request, limits) => prepared(request, (sent) => exchange(sent, limits)),
    open: (request, read_on) => prepared(request, (sent) => open(sent, read_on))
  }))
}

/** The wire, with the token of this time in each request. */
const withToken = (
  { current, refused }: AccessTokens.AccessTokens,
  { exchange, open }: Wire.Wire,
  addressed: (request: Wire.WireRequest) => Wire.WireRequest
): Wire.Wire => {
  const prepared = <A extends { readonly status: number }>(
    request: Wire.WireRequest,
    send: (request: Wire.WireRequest) => Effect.Effect<A, Wire.Unreachable>
  ) =>
    Effect.flatMap(current, (token) => {
      const headers = { ...request.headers, authorization: `Bearer ${token}` }
      return Effect.tap(send(addressed({ ...request, headers })), ({ status }) =>
        status === 401 ? refused(token) : Effect.void
      )
    })
  return {
    exchange: (request, limits) => prepared(request, (sent) => exchange(sent, limits)),
    open: (request, read_on) => prepared(request, (sent) => open(sent, read_on))
  }
}

/** The wire, observed, and with the trace of who uses it where traces are collected. */
const observed = (
  name: string,
  health: Health,
  options: Wire.WireOptions
): Effect.Effect<Wire.Wire, never, Scope.Scope> =>
  Effect.gen(function* () {
    const observe = yield* UpstreamObserver
    const clock = yield* Effect.clock
    const wire = yield* Wire.make({
      ...options,
      observe: (status, millis, headers) => {
        const seconds = status < 400 ? undefined : retryAfterIn(headers, clock.unsafeCurrentTimeMillis())
        health.observe({ status, millis, retry_after_ms: seconds === undefined ? undefined : seconds * 1_000 })
        observe(name, status === 0 ? "unreachable" : `${Math.floor(status / 100)}xx`, millis)
      }
    })
    if (!(yield* Tracing)) return wire
    const withTrace = <A>(
      request: Wire.WireRequest,
      send: (request: Wire.WireRequest) => Effect.Effect<A, Wire.Unreachable>
    ) =>
      Effect.flatMap(traceparent, (header) => send({ ...request, headers: { ...request.headers, ...header } })).pipe(
        Effect.withSpan(`${request.method} ${name}`, { kind: "client", captureStackTrace: false })
      )
    return {
      exchange: (request, limits) => withTrace(request, (sent) => wire.exchange(sent, limits)),
      open: (request, read_on) => withTrace(request, (sent) => wire.open(sent, read_on))
    }
  })
