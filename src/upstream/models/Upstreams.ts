/** The upstreams of models and tools, by their configured names. */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { Redacted, Scope } from "effect"
import type { Admission } from "../../books/gate/Gate.ts"
import { traceparent, Tracing } from "../../kernel/Tracing.ts"
import * as AccessTokens from "./AccessTokens.ts"
import { hashed, headerOf, keyHeaders, signer, usualHeader } from "./Credential.ts"
import type { AwsCredential, KeyHeader } from "./Credential.ts"
import { usualProtocols } from "./Protocol.ts"
import type { ProtocolName } from "./Protocol.ts"
import { retryAfterIn } from "../wire/Failures.ts"
import { Health } from "../routing/Health.ts"
import * as Wire from "../wire/Wire.ts"

export interface UpstreamSettings {
  /** The base address without a route, such as `https://api.example.com/v1`. */
  readonly base_url: string
  readonly api_key: Redacted.Redacted
  /** The header for the key; by default, that of the protocol's vendor. */
  readonly credential?: KeyHeader | undefined
  /** Signs every request instead of sending a key. */
  readonly aws?: AwsCredential | undefined
  /** Supplies a token for every request instead of a key. */
  readonly token_for?: AccessTokens.TokenHolder | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, string>> | undefined
  /** How long the upstream may be silent before it counts as unreachable, in milliseconds. */
  readonly silence_ms_max: number
  /** The maximum time from a request to the last byte of its response, in milliseconds. */
  readonly total_ms_max?: number | undefined
  /** The protocols that the upstream accepts; by default `chat`, `text`, `embeddings` and `rerank`. */
  readonly speaks?: ReadonlyArray<ProtocolName> | undefined
  /** Whether callers may continue from responses that the upstream stores. Otherwise, requests forbid storage. */
  readonly keeps_responses?: boolean | undefined
  /** The cooldown after failures, in milliseconds. Without it, failures do not change the order. */
  readonly cooldown_ms?: number | undefined
}

export interface Upstream {
  readonly name: string
  /** The host and port, as written in a URL. */
  readonly host: string
  readonly speaks: ReadonlyArray<ProtocolName>
  readonly keeps_responses: boolean
  /** Whether each request is signed, which requires the hash of its body. */
  readonly signs: boolean
  /** Statistics of the upstream's exchanges. */
  readonly health: Health
  /** Returns the wire that sends metered requests. It requires an admission. */
  readonly wire: (admission: Admission) => Wire.Wire
  /** Sends free, unmetered requests, such as token counts. */
  readonly unbilled: Wire.Wire
  /** Returns the headers for JSON requests, with the credential in the format of the protocol's vendor. */
  readonly headersFor: (protocol: ProtocolName) => Readonly<Record<string, string>>
  /** The headers for tools. Their requests follow no model protocol. */
  readonly headers: Readonly<Record<string, string>>
  /** The key, for vendors that read it from an unusual place. */
  readonly key: Redacted.Redacted
}

/**
 * Called for every exchange with the upstream's name, the outcome and the milliseconds until the response head. The outcome is `unreachable` or the
 * class of the status, such as `2xx`.
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
    signs: aws !== undefined,
    health,
    wire: () => wire,
    unbilled: wire,
    headersFor: (protocol) => byHeader.get(usualHeader(protocol))!,
    headers: byHeader.get("bearer")!,
    key: api_key
  }
}

/** A settings entry refers to an upstream that accepts none of the required protocols. */
export class UnspokenProtocol extends Schema.TaggedError<UnspokenProtocol>()("UnspokenProtocol", {
  upstream: Schema.String,
  /** The kind and id of the entry, such as `embedding model small`. */
  named_by: Schema.String,
  speaks: Schema.Array(Schema.String),
  /** The protocols that the entry accepts. */
  needs: Schema.Array(Schema.String)
}) {
  override get message() {
    const { named_by, needs, speaks, upstream } = this
    return `${named_by}: the upstream ${upstream} accepts ${speaks.join(", ")} but must accept ${needs.join(" or ")}: extend its speaks, or choose another upstream`
  }
}

/** A settings entry refers to an unknown upstream. */
export class UnknownUpstream extends Schema.TaggedError<UnknownUpstream>()("UnknownUpstream", {
  upstream: Schema.String,
  /** The kind and id of the entry, such as `search provider tavily`. */
  named_by: Schema.String,
  upstreams: Schema.Array(Schema.String)
}) {
  override get message() {
    const known = this.upstreams.length === 0 ? "there are none" : `the upstreams are: ${this.upstreams.join(", ")}`
    return `${this.named_by}: no upstream named ${this.upstream} is configured (${known}); add it to Upstreams, or choose another`
  }
}

/**
 * Creates a lookup for the upstreams that settings entries refer to. Fails with the first entry that refers to an unknown upstream. `kind` describes
 * the entry in the error.
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

/** Like `upstreamLookup`, but also fails with the first entry that refers to an upstream without any of the protocols in `needs`. */
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

/** Creates the wire for all requests to an upstream, with observation, tracing, and the configured query and credentials. */
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
      : Effect.flatMap(hashed(addressed(request)), (hashed) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => send(sign(hashed, now)))
        )
  return Effect.map(wire, ({ exchange, open }) => ({
    exchange: (request, limits) => prepared(request, (sent) => exchange(sent, limits)),
    open: (request, read_on) => prepared(request, (sent) => open(sent, read_on))
  }))
}

/** Adds the current token to each request, and reports a token that the vendor rejects. */
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

/** Creates a wire that reports to the observer and to `health`. If tracing is on, requests send the caller's trace. */
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
