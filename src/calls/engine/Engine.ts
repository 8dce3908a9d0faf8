/**
 * Relays model calls to upstreams that speak different protocols. The gate admits and charges each call. Chat, text completions, Messages and
 * Responses all run on this engine.
 *
 * A request is sent unchanged to an upstream that speaks the client's protocol. For any other upstream, the engine translates the request and the
 * response, so a call can fail over from one protocol to another. A request that contains reasoning signed by another vendor is always translated,
 * unless its protocol has no translation.
 *
 * Where the specification is silent:
 * - After any failure except a rejection of the request itself, the next upstream is tried, unless the call was charged or the client has
 *   disconnected.
 * - If a client disconnects before its stream begins, the service still waits for the upstream, up to the upstream's timeout, because the upstream
 *   already has the complete prompt. Once the response headers have arrived, it reads the stream for ten more seconds. The charge covers the output
 *   up to then, and at least the prompt.
 * - A response with status 200 must contain choices or be an event stream; otherwise the next upstream is tried. The exception is a complete response
 *   that reports its usage but cannot be delivered (it is too long, has no choices, is not JSON, or cannot be translated): it costs that usage, and
 *   no other upstream is tried. The service removes addresses and keys from an upstream's error message before passing it on.
 * - If an upstream sends a complete response to a streaming request, the client gets it as a stream and pays for the complete response.
 * - A stream that ends unfinished costs the output so far, and its client gets an error event. A stream that breaks costs the usage that it reported.
 *   (`calls/prompts/EventRelay` distinguishes the two.) If the client has received nothing and the stream costs nothing, the next upstream is tried.
 *   The client's response begins with the first event.
 * - A client that disconnects during a stream pays for the reported completion tokens or those counted so far, whichever is more.
 * - An upstream that does not speak the client's protocol is called in the first of its protocols that has a translation. An upstream that cannot
 *   serve the request is skipped. If none can, the request is rejected with the first upstream's reason.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Either, Exit, Layer } from "effect"
import type { Stream } from "effect"
import { Readable } from "node:stream"
import { failure, Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Metered, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { RatesAt } from "../../books/gate/RateHeaders.ts"
import { bodyHash } from "../../upstream/wire/BodyHash.ts"
import { Busy, busyFor, noRoomForAnswer } from "../../kernel/Busy.ts"
import { mayCall } from "../../kernel/Caller.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { usageOf } from "../../kernel/Ids.ts"
import type { JsonOutline } from "../../kernel/JsonOutline.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as Labels from "../../kernel/Labels.ts"
import { hashOf } from "../metered/TextHash.ts"
import { usualResponseBytes } from "../../kernel/Room.ts"
import type { Room } from "../../kernel/Room.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { messages } from "../dialects/messages/Protocol.ts"
import { PriceFactors } from "../../books/prices/PriceFactors.ts"
import type { PriceFactor } from "../../books/prices/PriceFactors.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import type { StreamOptions } from "../../protocols/conversation/Translation.ts"
import { responses } from "../dialects/responses/Protocol.ts"
import { closeIfUnclaimed } from "../../upstream/wire/ByteStream.ts"
import type { StreamEnd } from "../../upstream/wire/ByteStream.ts"
import { failed, isRefusal, readJson, refused, unanswered } from "../../upstream/wire/Failures.ts"
import { firstOf, spent, tooLong } from "../../upstream/models/Failover.ts"
import type { Spent } from "../../upstream/models/Failover.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import { protocolNames } from "../../upstream/models/Protocol.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import { reportsIn } from "../../upstream/wire/Intake.ts"
import type { UpstreamFailed } from "../../upstream/wire/Problems.ts"
import { speakerLookup } from "../../upstream/models/Upstreams.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import { RoutingObserver } from "../../upstream/routing/Decision.ts"
import * as Wire from "../../upstream/wire/Wire.ts"
import { chat, text } from "../dialects/chat/Completions.ts"
import { unpricedHour } from "../prompts/CacheHour.ts"
import * as Kept from "../prompts/Kept.ts"
import * as EventRelay from "../prompts/EventRelay.ts"
import { extrasOf, withExtras } from "../prompts/Extras.ts"
import type { Extra } from "../prompts/Extras.ts"
import { withFactor } from "../prompts/Factor.ts"
import { findModel, minCompletionPriceOf, linesOf, Models } from "../prompts/Model.ts"
import type { Model, ModelRoute } from "../prompts/Model.ts"
import { UnknownChatModel } from "../prompts/Problems.ts"
import {
  affordableCompletionLimit,
  requestedCompletionTokens,
  completionLimitWithin,
  boundOf,
  vendorObjectError,
  maxTokensOf,
  promptTokensEstimate
} from "../prompts/Prompt.ts"
import type { LongText, ValidPrompt } from "../prompts/Prompt.ts"
import type { Protocol, UpstreamProtocol, UpstreamBody } from "../prompts/Protocol.ts"
import * as Attempts from "./Attempts.ts"
import type { AttemptProblem, CallProblem, Plan } from "./Attempts.ts"
import { choosersOf } from "./Choice.ts"
import type { Choice, Chooser } from "./Choice.ts"
import * as LongAnswers from "./LongAnswers.ts"
import * as LongPrompts from "./LongPrompts.ts"
import * as Translated from "./Translated.ts"
import { bodyLost } from "../threads/BodyThreads.ts"
import { pairOf } from "./Translated.ts"
import type { Pair } from "./Translated.ts"
import { excessIn, costOf, tokensOf } from "../prompts/Tokens.ts"
import type { Figures, MaxTokens, Tokens } from "../prompts/Tokens.ts"
import { bedrock, google } from "../dialects/Vendors.ts"

/** One call to a model. */
export interface Call<Prompt> {
  readonly caller: Caller
  readonly prompt: Prompt
  /** The prompt's JSON, if available. Otherwise, the service serializes the prompt to compute its bound and to send it. */
  readonly json?: Buffer | undefined
  /** Headers of the client's protocol, sent to upstreams that speak the same protocol. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Statements to run in the transaction that admits the call. */
  readonly beside?: Claim["beside"]
  /**
   * Memory for the response. If none is free, the call fails with `Busy` before an upstream is called. If the response does not fit, the call is
   * charged and fails with `Busy`.
   */
  readonly room?: Room | undefined
  /** The request id to log. */
  readonly request_id?: string | undefined
}

/** A complete response, as opposed to a stream. */
export interface Completed<A> {
  /** The upstream's response, translated if necessary. */
  readonly completion: A
  /** The same response, serialized. */
  readonly bytes: Buffer
  readonly receipt: Receipt
  /** The fallback that served the call, or absent if the requested model did. */
  readonly fallback_model?: string | undefined
}

/** A streamed response. */
export interface Streamed<A> {
  /** The id of the usage record, which is written when the stream ends. */
  readonly usage_id: string
  /**
   * Server-sent events. The last one (`data: [DONE]` in Chat) is sent once the charge is committed. If the commit fails, the stream is aborted with
   * an error. A stream that breaks or ends unfinished contains an error event. The caller must read the stream to its end or destroy it. After it is
   * destroyed, the service continues reading from the upstream for up to ten seconds and charges the received tokens.
   */
  readonly bytes: Readable
  /** The same stream, parsed into chunks. Read either `events` or `bytes`, not both. */
  readonly events: Stream.Stream<A, UpstreamFailed>
  /** Waits for the call to end, even if the stream breaks. */
  readonly receipt: Effect.Effect<Receipt, BooksUnavailable>
  /** The call's rate limits; absent if no budget applies to it. */
  readonly rates?: RatesAt | undefined
  /** The fallback that is serving the call, or absent if the requested model is. */
  readonly fallback_model?: string | undefined
}

export type ChatProblem = InvalidRequest | Busy | GateRefusal | UpstreamProblem

/**
 * The methods ignore the prompt's `stream`: `complete` returns a complete response, and `stream` returns a stream. A call fails with `InvalidRequest`
 * if the prompt is invalid and with `UnknownChatModel` if the model is unknown.
 *
 * Interrupting a call means that the caller has disconnected. No further upstream is called. If a stream has begun, the service reads it for up to
 * ten more seconds; otherwise, it waits for the upstream's complete response. The response is charged. If none arrives, the call is free and recorded
 * as `client_disconnected`. The interrupting fiber waits for the end of the call unless it uses `Effect.disconnect`.
 */
export interface EngineContract {
  readonly complete: <Prompt, A>(protocol: Protocol) => (call: Call<Prompt>) => Effect.Effect<Completed<A>, ChatProblem>
  /** Returns once an upstream has begun to respond. `eventsOf` parses the bytes. */
  readonly stream: <Prompt, A>(
    protocol: Protocol,
    eventsOf: EventsOf<A>
  ) => (call: Call<Prompt>) => Effect.Effect<Streamed<A>, ChatProblem>
  /** Returns a model's client protocols. An unknown model has none. */
  readonly reach: (model: string) => Reach
  /** The models with an upstream that stores responses. The service records the response ids (`Kept`). */
  readonly keeps_responses: ReadonlySet<string>
  /** The price of the cheapest possible call, in nano-USD; 0 if a model is free or none is configured. */
  readonly least: Nano
}

/** The client protocols that can be used to call a model. */
export interface Reach {
  readonly protocols: ReadonlyArray<ClientProtocol>
  /** The protocols of the model's first upstream. It receives requests in these protocols unchanged. */
  readonly native_protocols: ReadonlyArray<ClientProtocol>
}

export type EventsOf<A> = (bytes: Readable) => Stream.Stream<A, UpstreamFailed>

/** The maximum size of a complete response, in bytes. */
const answerBytesMax = 64 * 1024 * 1024
/** The maximum size of an upstream's error response, in bytes. */
const refusalBytesMax = 1024 * 1024

export class Engine extends Context.Tag("tollgate/chat/Engine")<Engine, EngineContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Engine, make))
}

/** How a response is delivered: complete or as a stream. */
interface Form<A> {
  readonly streams: boolean
  readonly ask: (attempt: Attempt) => Effect.Effect<Metered<A>, UpstreamProblem | BooksUnavailable | Busy | Spent>
}

/** A route that can serve a client protocol with a model, with a translation if needed. */
interface CandidateRoute {
  readonly route: ModelRoute
  readonly upstream: Upstream
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The upstream request's protocol. */
  readonly speaks: UpstreamProtocol
  /** The translation, or `undefined` if the request is sent unchanged. */
  readonly pair: Pair | undefined
}

/** The upstream protocols that the engine speaks. */
const protocols: { readonly [Name in ProtocolName]?: UpstreamProtocol } = {
  chat,
  text,
  messages,
  responses,
  google,
  bedrock
}

/** The client protocols. */
const clients: ReadonlyArray<Protocol> = [chat, text, messages, responses]

const protocolsSpoken = protocolNames.filter((name) => protocols[name] !== undefined)

/** Determines how to serve a client protocol over a route. Returns `undefined` if the upstream speaks no protocol to translate to. */
const candidateFor = (
  protocol: Protocol,
  route: ModelRoute,
  upstream: Upstream,
  streams: boolean
): CandidateRoute | undefined => {
  const isNative = upstream.speaks.includes(protocol.name)
  const name = isNative ? protocol.name : upstream.speaks.find((one) => pairOf(protocol.name, one) !== undefined)
  const speaks = name && protocols[name]
  if (name === undefined || speaks === undefined) return undefined
  return {
    route,
    upstream,
    path: speaks.pathFor(route.model, streams),
    headers: { ...upstream.headersFor(name), ...speaks.headers },
    speaks,
    pair: isNative ? undefined : pairOf(protocol.name, name)
  }
}

/** Returns whether the upstream request includes the client's cache breakpoints, if there are any. */
const marksCaches = ({ pair, route }: CandidateRoute): boolean =>
  pair === undefined || pair.vendor.marksCaches(route.model)

/** Adds a translation to a route without one: from the client's protocol to itself, if it has a translation. */
const translated = ({ name }: Protocol, way: CandidateRoute): CandidateRoute =>
  way.pair === undefined ? { ...way, pair: pairOf(name, name) } : way

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const catalogue = yield* Models
  const upstreamOf = yield* speakerLookup(
    "chat model",
    catalogue.models.flatMap(({ id, routes }) => routes.map(({ upstream }) => ({ id, upstream }))),
    protocolsSpoken
  )
  const versions = yield* PriceVersions
  const kept = Kept.make(yield* SqlClient)
  const clock = yield* Effect.clock
  const keeps_responses = new Set(
    catalogue.models
      .filter(({ routes }) => routes.some(({ upstream }) => upstreamOf(upstream).keeps_responses))
      .map(({ id }) => id)
  )
  const factors = yield* PriceFactors
  const plain = yield* offers(versions, catalogue.models)
  const factored = new Map(
    yield* Effect.forEach(factors.all, (factor) =>
      Effect.map(
        offers(
          versions,
          catalogue.models.map((model) => withFactor(model, factor))
        ),
        (offered) => [factor.text, offered] as const
      )
    )
  )
  const setup: Setup = {
    gate,
    catalogue,
    upstreamOf,
    versions,
    kept,
    clock,
    keeps_responses,
    plain,
    factors,
    factored,
    choosers: choosersOf(catalogue.models, upstreamOf, clock),
    observe: yield* RoutingObserver
  }

  // A completion has at least one token.
  const costs = [plain, ...factored.values()].flatMap((offers) =>
    [...offers.values()].map(({ model }) => charge([{ units: 1, price: minCompletionPriceOf(model) }]))
  )

  const complete = <Prompt, A>(protocol: Protocol) =>
    metered<Prompt, Completed<A>>(setup, protocol, whole as Form<Completed<unknown>> as Form<Completed<A>>)
  /** Streams a call. If the caller is interrupted before it receives the stream, the stream is destroyed. */
  const stream = <Prompt, A>(protocol: Protocol, eventsOf: EventsOf<A>) => {
    const call = metered<Prompt, Streamed<A>>(setup, protocol, streaming(eventsOf))
    return (asked: Call<Prompt>) => closeIfUnclaimed(call(asked), ({ bytes }) => bytes)
  }
  return {
    complete,
    stream,
    reach: reachIn(setup),
    keeps_responses,
    least: costs.reduce((least, cost) => (cost < least ? cost : least), costs[0] ?? 0n)
  } satisfies EngineContract
})

/** A model at the prices of one call, with the version of those prices. */
interface Offer {
  readonly model: Model
  readonly price: string
}

/** The models and services that an engine needs. */
interface Setup {
  readonly gate: Gate["Type"]
  readonly catalogue: Models["Type"]
  readonly upstreamOf: (name: string) => Upstream
  readonly versions: PriceVersions["Type"]
  readonly kept: Kept.Kept
  readonly clock: Clock.Clock
  readonly keeps_responses: ReadonlySet<string>
  /** Each model's offer without extras. */
  readonly plain: Offers
  readonly factors: PriceFactors["Type"]
  /** `plain` at each price factor. The keys are the factors as strings. */
  readonly factored: ReadonlyMap<string, Offers>
  /** Choosers by model id. Most models have none. */
  readonly choosers: ReadonlyMap<string, Chooser>
  readonly observe: RoutingObserver["Type"]
}

/** Offers by model id. */
type Offers = ReadonlyMap<string, Offer>

const offer = (versions: PriceVersions["Type"], model: Model): Effect.Effect<Offer, BooksUnavailable> =>
  Effect.map(versions.of(linesOf(model)), (price) => ({ model, price }))

const offers = (
  versions: PriceVersions["Type"],
  models: ReadonlyArray<Model>
): Effect.Effect<Offers, BooksUnavailable> =>
  Effect.map(
    Effect.forEach(models, (model) => Effect.map(offer(versions, model), (offered) => [model.id, offered] as const)),
    (all) => new Map(all)
  )

/** Returns a model's offer at a tenant's price factor, including the extras that the request uses. */
const offerAt = (
  { factored, plain, versions }: Setup,
  found: Model,
  extras: ReadonlyArray<Extra>,
  factor: PriceFactor | undefined
): Effect.Effect<Offer, BooksUnavailable> | Offer => {
  if (extras.length === 0) return (factor === undefined ? plain : factored.get(factor.text)!).get(found.id)!
  const model = withExtras(found, extras)
  return offer(versions, factor === undefined ? model : withFactor(model, factor))
}

/** Returns the routes that can serve clients of this protocol with a model, in the order they are tried. */
const candidatesByModel = (
  { catalogue, upstreamOf }: Setup,
  protocol: Protocol,
  streams: boolean
): ReadonlyMap<string, ReadonlyArray<CandidateRoute>> =>
  new Map(
    catalogue.models.map(({ id, routes }) => {
      const ways = routes.map((route) => candidateFor(protocol, route, upstreamOf(route.upstream), streams))
      return [id, ways.filter((way) => way !== undefined)]
    })
  )

/** The routes that can serve a request with a model, and the request's extras. */
interface Reachable {
  readonly ways: ReadonlyArray<CandidateRoute>
  readonly extras: ReadonlyArray<Extra>
}

/** Finds the routes that can serve a request with a model, starting at the first that can. `Left` holds the reason why none can. */
const reachable = (
  protocol: Protocol,
  usual: ReadonlyArray<CandidateRoute>,
  model: Model,
  prompt: ValidPrompt,
  headers: Call<unknown>["headers"],
  streams: boolean
): Either.Either<Reachable, InvalidRequest> => {
  const permitted = permittedCandidates(protocol, usual, model, prompt, headers)
  if (Either.isLeft(permitted)) return permitted
  const { extras, ways: possible } = permitted.right
  const ways = capableCandidates(protocol, possible, model, prompt, streams)
  return Either.isLeft(ways) ? Either.left(ways.left) : Either.right({ ways: ways.right, extras })
}

/** Like `reachable`, for a long prompt. A separate thread translates it for each route, up to the first that can serve it. */
const reachableLong = Effect.fnUntraced(function* (
  long: LongText,
  ...[protocol, usual, model, prompt, headers, streams]: Parameters<typeof reachable>
) {
  const permitted = permittedCandidates(protocol, usual, model, prompt, headers)
  const possible = Either.isRight(permitted) ? permitted.right.ways : none
  for (const way of possible) {
    const { pair, route } = way
    const hindered =
      pair === undefined
        ? protocol.refusal?.(prompt, way)
        : Either.isLeft(
            yield* LongPrompts.translate(
              long,
              translatedRoute(way, pair),
              streams,
              unconstrainedLimit(model, prompt, route)
            )
          )
    if (hindered === undefined || hindered === false) break
  }
  return reachable(protocol, usual, model, prompt, headers, streams)
})

const translatedRoute = ({ route, upstream }: CandidateRoute, pair: Pair): LongPrompts.TranslatedRoute => ({
  pair,
  route,
  hashes: upstream.signs
})

/** Returns the routes whose price is known, and the request's extras. `Left` holds the reason to reject the request. */
const permittedCandidates = (
  protocol: Protocol,
  usual: ReadonlyArray<CandidateRoute>,
  model: Model,
  prompt: ValidPrompt,
  headers: Call<unknown>["headers"]
): Either.Either<Reachable, InvalidRequest> => {
  if (prompt.names_kept !== undefined && model.vendor_files !== true)
    return Either.left(vendorObjectError(prompt.names_kept))
  const extras = extrasOf(model, protocol.billed, prompt.body, headers, prompt.long?.asked)
  if (Either.isLeft(extras)) return Either.left(extras.left)
  const possible = Translated.isForeign(protocol.name, prompt) ? usual.map((way) => translated(protocol, way)) : usual
  const unpriced = unpricedHour(model, prompt)
  const ways = unpriced === undefined ? possible : possible.filter((way) => !marksCaches(way))
  return unpriced !== undefined && ways.length === 0
    ? Either.left(unpriced)
    : Either.right({ ways, extras: extras.right })
}

const metered = <Prompt, A>(setup: Setup, protocol: Protocol, form: Form<A>) => {
  const { catalogue, factors, gate } = setup
  const waysOf = candidatesByModel(setup, protocol, form.streams)
  const claimedOf = routeClaims(setup, waysOf)
  const isAnthropic = protocol.name === "messages"
  return Effect.fnUntraced(function* (request: Call<Prompt>) {
    // Yielding a `Right` would cost a fiber step.
    const read =
      request.prompt instanceof LongPrompts.LongPrompt
        ? Either.right(request.prompt.valid)
        : protocol.read(request.prompt, request.json)
    if (Either.isLeft(read)) return yield* read.left
    const prompt = read.right
    const caller = Labels.ofBody(request.caller, prompt.body, isAnthropic, hashOf)
    if (caller instanceof InvalidRequest) return yield* caller
    const call = caller === request.caller ? request : { ...request, caller }
    const found = findModel(catalogue, prompt.model)
    if (found === undefined) return yield* new UnknownChatModel(prompt.model)
    const asked = [protocol, waysOf.get(found.id)!, found, prompt, call.headers, form.streams] as const
    const reached = prompt.long === undefined ? reachable(...asked) : yield* reachableLong(prompt.long, ...asked)
    if (Either.isLeft(reached)) return yield* reached.left
    const { extras, ways } = reached.right
    const offered = offerAt(setup, found, extras, factors.of(call.caller.tenant_id))
    const { model, price } = Effect.isEffect(offered) ? yield* offered : offered

    if (call.room?.reserve(usualResponseBytes) === false) return yield* new Busy({ retry_after: busyFor })
    const fallbacks = fallbacksOf(setup, protocol, model, prompt, call.caller)
    const claimed = claimedOf(model, ways, fallbacks)
    const { enough, least, most, tokens } = boundOf(model, prompt)
    const claim = {
      caller: call.caller,
      usage_type: "inference",
      capability: "chat",
      endpoint: protocol.endpoint,
      model: model.id,
      provider: ways[0]!.route.upstream,
      price,
      beside: call.beside,
      request_id: call.request_id,
      least,
      enough,
      most,
      tokens,
      ways: claimed
    } as const
    return yield* gate.meter(claim, (admission) =>
      relay({ setup, protocol, form, waysOf, claimed, admission, prompt, call }, model, ways, fallbacks)
    )
  })
}

/**
 * Creates a function that returns all models and providers that may serve a call, so that budgets can check them, or `undefined` if only one may.
 * Equal calls share one array.
 */
const routeClaims = ({ catalogue }: Setup, waysOf: Relayed<unknown>["waysOf"]) => {
  const known = new Map<string, NonNullable<Claim["ways"]>>()
  return (model: Model, ways: ReadonlyArray<CandidateRoute>, fallbacks: ReadonlyArray<string>): Claim["ways"] => {
    if (ways.length === 1 && fallbacks.length === 0) return undefined
    let name = model.id
    for (const { route } of ways) name += `\n${route.upstream}`
    for (const fallback of fallbacks) name += `\n\n${fallback}`
    let claimed = known.get(name)
    if (claimed === undefined) {
      const placed = (id: string, ways: ReadonlyArray<CandidateRoute>) =>
        ways.map(({ route }) => ({ model: id, provider: route.upstream }))
      const others = fallbacks.map((fallback) => findModel(catalogue, fallback)?.id ?? fallback)
      claimed = [...placed(model.id, ways), ...others.flatMap((id) => placed(id, waysOf.get(id) ?? none))]
      known.set(name, claimed)
    }
    return claimed
  }
}

/** Returns the fallbacks that may serve a call. */
const fallbacksOf = (
  setup: Setup,
  protocol: Protocol,
  model: Model,
  prompt: ValidPrompt,
  caller: Caller
): ReadonlyArray<string> => {
  const { fallbacks = none } = model
  if (fallbacks.length === 0 || mayReferToStored(setup, protocol, model, prompt)) return none
  if (caller.allowed_models === undefined) return fallbacks
  return fallbacks.filter((id) => mayCall(caller, findModel(setup.catalogue, id)?.id ?? id))
}

/** An admitted call. */
interface Relayed<A> {
  readonly setup: Setup
  readonly protocol: Protocol
  readonly form: Form<A>
  readonly waysOf: ReadonlyMap<string, ReadonlyArray<CandidateRoute>>
  /** The models and providers in the claim. */
  readonly claimed: Claim["ways"]
  readonly admission: Admission
  readonly prompt: ValidPrompt
  readonly call: Call<unknown>
}

const relay = <A>(
  relayed: Relayed<A>,
  model: Model,
  ways: ReadonlyArray<CandidateRoute>,
  fallbacks: ReadonlyArray<string>
): Effect.Effect<Metered<A>, CallProblem> => {
  const { admission, call, prompt, protocol, setup } = relayed
  const { retries } = model
  const limit = completionLimitWithin(model, prompt, admission)
  if (ways.length === 1 && retries === undefined && fallbacks.length === 0) {
    const plan: Plan<CandidateRoute> = { model, ways, limit, reason: "only", served: undefined }
    return firstOf(ways, (way, isLast) => attempt(relayed, plan, way, isLast), {
      goesOn: (problem) => admission.goesOn(problem),
      failed: (way, problem) => recordSingleFailure(relayed, model, way, problem)
    })
  }
  const open = unbarredCandidates(relayed, model, ways)
  const isKept = mayReferToStored(setup, protocol, model, prompt)
  const choice = isKept ? inOrder(open) : chosen(relayed, model, open)
  return Attempts.run<CandidateRoute, Metered<A>>({
    first: { ...choice, model, limit, served: undefined },
    ask: (plan, way, isLast) => attempt(relayed, plan, way, isLast),
    retries,
    fallbacks,
    planOf: (fallback) => planOf(relayed, fallback),
    barred: admission.barred,
    request_id: call.request_id,
    observe: setup.observe,
    goesOn: (problem) => admission.goesOn(problem)
  })
}

const none: ReadonlyArray<never> = []

const inOrder = (ways: ReadonlyArray<CandidateRoute>): Choice<CandidateRoute> => ({
  ways,
  reason: ways.length === 1 ? "only" : "order"
})

const chosen = <A>(
  { call, prompt, setup }: Relayed<A>,
  { id }: Model,
  ways: ReadonlyArray<CandidateRoute>
): Choice<CandidateRoute> =>
  ways.length === 0 ? inOrder(ways) : (setup.choosers.get(id)?.(ways, prompt, call.caller) ?? inOrder(ways))

/** Returns the model's routes that no budget excludes. */
const unbarredCandidates = <A>(
  { admission, claimed = none }: Relayed<A>,
  { id }: Model,
  ways: ReadonlyArray<CandidateRoute>
): ReadonlyArray<CandidateRoute> => {
  if (admission.barred === undefined) return ways
  const isOpen = (provider: string) =>
    claimed.some((way, place) => way.model === id && way.provider === provider && admission.mayServe(place))
  return ways.filter(({ route }) => isOpen(route.upstream))
}

/** Records that a call with a single attempt failed. */
const recordSingleFailure = <A>(
  { call: { request_id }, setup: { clock, observe } }: Relayed<A>,
  { id }: Model,
  { upstream }: CandidateRoute,
  problem: AttemptProblem | Spent
): void =>
  observe({
    at: clock.unsafeCurrentTimeMillis(),
    model: id,
    request_id,
    reason: "only",
    attempts: [{ model: id, upstream: upstream.name, outcome: Attempts.outcomeOf(problem) }]
  })

/** Returns whether an upstream of the model stores responses in this protocol. */
const storesResponses = (setup: Setup, protocol: Protocol, { id }: Model): boolean =>
  protocol.handedOutIn !== undefined && setup.keeps_responses.has(id)

/** Returns whether the request may refer to objects that the model's vendor stores. */
const mayReferToStored = (setup: Setup, protocol: Protocol, model: Model, prompt: ValidPrompt): boolean =>
  prompt.names_kept !== undefined || storesResponses(setup, protocol, model)

/** Plans a fallback within the call's reservation. */
const planOf = Effect.fnUntraced(function* <A>(relayed: Relayed<A>, id: string) {
  const { admission, call, form, prompt, protocol, setup, waysOf } = relayed
  const found = findModel(setup.catalogue, id)
  if (found === undefined || !mayCall(call.caller, found.id)) return undefined
  const asked = [protocol, waysOf.get(found.id)!, found, prompt, call.headers, form.streams] as const
  const reached =
    prompt.long === undefined
      ? reachable(...asked)
      : // A fallback that cannot be translated now is skipped.
        yield* Effect.orElseSucceed(reachableLong(prompt.long, ...asked), () => Either.left(undefined))
  if (Either.isLeft(reached)) return undefined
  const { extras } = reached.right
  const ways = unbarredCandidates(relayed, found, reached.right.ways)
  if (ways.length === 0) return undefined
  const offered = offerAt(setup, found, extras, setup.factors.of(call.caller.tenant_id))
  const { model, price } = Effect.isEffect(offered) ? yield* offered : offered
  const limit = affordableCompletionLimit(model, prompt, admission)
  if (limit === undefined) return undefined
  return {
    ...chosen(relayed, model, ways),
    model,
    limit,
    served: { model: model.id, price }
  } satisfies Plan<CandidateRoute>
})

/** Calls one upstream, after translating a long prompt for it if necessary. */
const attempt = <A>(
  relayed: Relayed<A>,
  plan: Plan<CandidateRoute>,
  way: CandidateRoute,
  is_last: boolean
): Effect.Effect<Metered<A>, AttemptProblem | Spent> => {
  const { long } = relayed.prompt
  const { pair, route } = way
  if (long !== undefined && long.json.length === 0) return bodyLost
  if (long === undefined || pair === undefined) return callUpstream(relayed, plan, way, is_last)
  const limit = route.limit_field === "none" ? undefined : plan.limit
  return Effect.flatMap(LongPrompts.translate(long, translatedRoute(way, pair), relayed.form.streams, limit), () =>
    callUpstream(relayed, plan, way, is_last)
  )
}

const callUpstream = <A>(
  relayed: Relayed<A>,
  { limit, model, served }: Plan<CandidateRoute>,
  way: CandidateRoute,
  is_last: boolean
): Effect.Effect<Metered<A>, AttemptProblem | Spent> => {
  const { admission, call, form, prompt, protocol, setup } = relayed
  const { caller, headers, request_id, room } = call
  const acceptsLimit = way.route.limit_field !== "none"
  const body = bodyFor(protocol, way, prompt, form.streams, acceptsLimit ? limit : undefined)
  if (Either.isLeft(body)) return body.left
  return form.ask({
    protocol,
    speaks: way.speaks,
    pair: way.pair,
    upstream: way.upstream,
    request: {
      method: "POST",
      path: way.path,
      headers: headers === undefined || way.speaks !== protocol ? way.headers : { ...way.headers, ...headers },
      body: body.right,
      sha256: way.pair === undefined ? undefined : prompt.long?.translations.get(way.route)?.sha256
    },
    admission,
    model,
    served,
    prompt,
    most: maxTokensOf(model, prompt, acceptsLimit ? limit : model.output_tokens_max),
    is_last,
    handedOut:
      way.pair === undefined && storesResponses(setup, protocol, model)
        ? (ids) => setup.kept.handedOut(caller, ids, setup.clock.unsafeCurrentTimeMillis())
        : undefined,
    room,
    request_id,
    account: caller.account_id
  })
}

const reachIn = (setup: Setup): EngineContract["reach"] => {
  const reached = clients.map((protocol) => ({
    name: protocol.name,
    waysOf: candidatesByModel(setup, protocol, false)
  }))
  return (model) => {
    const first = reached.flatMap(({ name, waysOf }) =>
      (waysOf.get(model) ?? []).slice(0, 1).map((way) => ({ name, way }))
    )
    return {
      protocols: first.map(({ name }) => name),
      native_protocols: first.filter(({ way }) => way.pair === undefined).map(({ name }) => name)
    }
  }
}

/** Builds the upstream request body. `Left` holds the reason why the upstream cannot be called. */
const bodyFor = (
  { bodyFor, refusal }: Protocol,
  way: CandidateRoute,
  prompt: ValidPrompt,
  streams: boolean,
  limit: number | undefined
): Either.Either<UpstreamBody, InvalidRequest> => {
  if (way.pair !== undefined) return Translated.bodyFor(way.pair, prompt, way.route, streams, limit)
  const refused = refusal?.(prompt, way)
  return refused === undefined ? Either.right(bodyFor(prompt, way, streams, limit)) : Either.left(refused)
}

/** Returns the reason why this upstream cannot serve the request, if there is one. The completion limit is not known yet. */
const incompatibility = (
  { refusal }: Protocol,
  way: CandidateRoute,
  model: Model,
  prompt: ValidPrompt,
  streams: boolean
): InvalidRequest | undefined => {
  if (way.pair === undefined) return refusal?.(prompt, way)
  const body = Translated.bodyFor(way.pair, prompt, way.route, streams, unconstrainedLimit(model, prompt, way.route))
  return Either.isLeft(body) ? body.left : undefined
}

/** Returns the completion limit if the payer can afford it, or `undefined` if the upstream accepts no limit. */
const unconstrainedLimit = (model: Model, prompt: ValidPrompt, { limit_field }: ModelRoute): number | undefined =>
  limit_field === "none" ? undefined : (requestedCompletionTokens(model, prompt) ?? model.output_tokens_max)

/** Returns the routes to try, starting at the first that can serve the request. `Left` holds the reason why none can. */
const capableCandidates = (
  protocol: Protocol,
  ways: ReadonlyArray<CandidateRoute>,
  model: Model,
  prompt: ValidPrompt,
  streams: boolean
): Either.Either<ReadonlyArray<CandidateRoute>, InvalidRequest> => {
  let why: InvalidRequest | undefined
  for (let i = 0; i < ways.length; i++) {
    const hindered = incompatibility(protocol, ways[i]!, model, prompt, streams)
    if (hindered === undefined) return Either.right(i === 0 ? ways : ways.slice(i))
    why ??= hindered
  }
  return Either.left(why ?? unreachable(protocol, prompt.model))
}

const unreachable = ({ endpoint }: Protocol, model: string): InvalidRequest =>
  InvalidRequest.of(
    "model",
    `${JSON.stringify(model.slice(0, 100))} is not served by ${endpoint}: its upstreams do not speak this protocol`
  )

/** One attempt to serve a call with one upstream. */
interface Attempt {
  /** The client's protocol. */
  readonly protocol: Protocol
  /** The upstream's protocol. */
  readonly speaks: UpstreamProtocol
  readonly pair: Pair | undefined
  readonly upstream: Upstream
  readonly request: Wire.WireRequest
  readonly admission: Admission
  readonly model: Model
  /** The fallback's model and price, if a fallback serves the call. */
  readonly served: Plan<CandidateRoute>["served"]
  readonly prompt: ValidPrompt
  /** The maximum token counts that the upstream request can cause. */
  readonly most: MaxTokens
  /** Whether this is the last possible attempt. */
  readonly is_last: boolean
  /**
   * Returns statements that record a response's ids, committed with the settlement. `undefined` if the response is translated or the vendor stores
   * none.
   */
  readonly handedOut: ((ids: ReadonlyArray<string>) => ReadonlyArray<Statement>) | undefined
  readonly room: Room | undefined
  readonly request_id: string | undefined
  readonly account: string
}

const complete: Form<Completed<unknown>>["ask"] = Effect.fnUntraced(function* (attempt) {
  const { admission, request, request_id, room, speaks, upstream } = attempt
  const answer = yield* Effect.catchAll(
    upstream
      .wire(admission)
      .exchange(request, { limit: answerBytesMax, room, long: speaks.long, read_on: admission.to_its_end }),
    (none) => unanswered(upstream.name, none, request_id)
  )
  admission.servedAs(Wire.vendorRequestOf(answer.headers))
  if (isRefusal(answer)) return yield* refused(upstream.name, answer, request_id)
  if (answer.outline !== undefined) return yield* completeLong(attempt, answer, answer.outline)
  const options = attempt.pair === undefined ? undefined : yield* answerOptions(attempt)
  const whole = wholeOf(attempt, answer, options, "the response is not a JSON object")
  if (Either.isLeft(whole)) return yield* whole.left
  const { bytes, parsed, read, tokens } = whole.right
  const ended = measured(attempt, tokens, null, bodyHash(bytes))
  const isBeyond = excessIn(read.usage, attempt.most)
  if (isBeyond !== undefined) yield* warnExcess(attempt, read.usage, isBeyond)
  // The ids are written first, because the client may refer to the response as soon as it arrives.
  if (attempt.handedOut !== undefined)
    yield* settledWith(attempt, ended, attempt.protocol.handedOutIn?.(parsed) ?? noIds)
  return yield* admission.answer(ended, (receipt) =>
    withFallbackModel<Completed<unknown>>(attempt, { completion: read.shown, bytes, receipt })
  )
})

/** Completes a call with a long response. If the outline does not suffice, a separate thread parses the response. */
const completeLong = Effect.fnUntraced(function* (attempt: Attempt, answer: Wire.Whole, outline: JsonOutline) {
  const { admission, room } = attempt
  const { body, lost } = answer
  if (lost === "too_long") return yield* tooLongOf(attempt, answer, outline)
  const read = yield* LongAnswers.read({
    protocol: attempt.protocol,
    pair: attempt.pair,
    body: lost === undefined ? body : undefined,
    outline,
    options: () => answerOptions(attempt),
    needsIds: attempt.handedOut !== undefined,
    account: attempt.account
  })
  if (Either.isLeft(read)) return yield* unusable(attempt, reportsIn(answer), read.left)
  const { bytes, hash, ids, tokens_counted, usage } = read.right
  const isBeyond = excessIn(usage, attempt.most)
  if (isBeyond !== undefined) yield* warnExcess(attempt, usage, isBeyond)
  const tokens = tokensOf(usage, () => countedOf(attempt, tokens_counted), attempt.most)
  const ended = measured(attempt, tokens, bytes === undefined ? "busy" : null, hash)
  if (bytes === undefined) {
    yield* admission.settle(ended)
    return yield* new Busy({ message: noRoomForAnswer, retry_after: busyFor })
  }
  room?.become(bytes.length)
  // The ids are written first, because the client may refer to the response as soon as it arrives.
  if (attempt.handedOut !== undefined) yield* settledWith(attempt, ended, ids)
  return yield* admission.answer(ended, (receipt) =>
    withFallbackModel<Completed<unknown>>(attempt, new LongAnswers.LongCompletion(bytes, receipt))
  )
})

/** Adds the fallback's model id to its response. If no fallback served the call, the response is unchanged. */
const withFallbackModel = <A extends object>({ served }: Attempt, answer: A): A =>
  served === undefined ? answer : Object.assign(answer, { fallback_model: served.model })

/** Ends a call whose response is too long. */
const tooLongOf = (attempt: Attempt, answer: Wire.Whole, outline: JsonOutline) =>
  unusable(attempt, reportsIn(answer), tooLong, LongAnswers.countedIn(outline))

type Body = Readonly<Record<string, unknown>>

/** The maximum size, in bytes, of a complete response to relay as a stream. The main thread parses it. */
const unstreamedBytesMax = 4 * 1024 * 1024

/** A complete response for the client, with the tokens to charge. */
interface WholeAnswer {
  /** The upstream's response. */
  readonly parsed: Body
  readonly read: Translated.ReadAnswer
  readonly bytes: Buffer
  readonly tokens: Tokens
}

/** Reads a complete response with status 200. `Left` holds an effect that ends the call. `reason` describes a response that is not a JSON object. */
const wholeOf = (
  attempt: Attempt,
  answer: Wire.Whole,
  options: StreamOptions | undefined,
  reason: string
): Either.Either<WholeAnswer, ReturnType<typeof unusable>> => {
  const json = readJson(answer.body)
  if (json === undefined) return Either.left(unusable(attempt, reportsIn(answer), reason))
  const parsed = json.value
  const read =
    attempt.pair === undefined || options === undefined
      ? readUntranslated(attempt.protocol, parsed)
      : Translated.answerOf(attempt.pair, parsed, options)
  if (Either.isLeft(read)) return Either.left(unusable(attempt, parsed, read.left))
  const { shown, tokens_counted, usage } = read.right
  return Either.right({
    parsed,
    read: read.right,
    bytes: shown === parsed ? json.bytes : Buffer.from(JSON.stringify(shown)),
    tokens: tokensOf(usage, () => countedOf(attempt, tokens_counted()), attempt.most)
  })
}

/**
 * Ends a call whose complete response cannot be delivered to the client. The call costs the reported usage. If no usage is reported, a response that
 * is too long costs the counted tokens; any other response is a failure, and the next upstream may be tried.
 */
const unusable = (
  attempt: Attempt,
  answer: Body,
  reason: string,
  tokens_counted?: number
): Effect.Effect<never, UpstreamFailed | Spent | BooksUnavailable> => {
  const { admission, most, pair, protocol, request_id, upstream } = attempt
  const usage = pair === undefined ? protocol.usageIn(answer) : Translated.usageIn(pair, answer)
  const counted = () => (tokens_counted === undefined ? noTokens() : countedOf(attempt, tokens_counted))
  const tokens = tokensOf(usage, counted, most)
  if (tokens.prompt_tokens + tokens.completion_tokens === 0) return failed(upstream.name, reason, request_id)
  return spent(upstream, admission, measured(attempt, tokens), reason, request_id)
}

const noIds: ReadonlyArray<string> = []

/** Settles a call. If the vendor stores responses, records the response's ids in the same transaction. */
const settledWith = (
  { admission, handedOut }: Attempt,
  ended: Measured,
  ids: ReadonlyArray<string>
): Effect.Effect<Receipt, BooksUnavailable> =>
  handedOut === undefined
    ? admission.settle(ended)
    : // The statements require no row, so they cannot conflict.
      Effect.catchTag(admission.settleBeside(ended, handedOut(ids)), "Conflict", Effect.die)

/** Reads an untranslated response. `Left` holds its defect. */
const readUntranslated = (protocol: Protocol, answer: Body): Either.Either<Translated.ReadAnswer, string> => {
  const fault = protocol.faultIn(answer)
  return fault === undefined
    ? Either.right({
        shown: answer,
        usage: protocol.usageIn(answer),
        tokens_counted: () => protocol.countIn(answer)
      })
    : Either.left(fault)
}

/** Returns the options for translating a response. */
const answerOptions = ({ admission, prompt }: Attempt): Effect.Effect<StreamOptions> =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    id: admission.call,
    model: prompt.model,
    created: Math.floor(now / 1000),
    request: prompt.body,
    include_usage: prompt.show_usage
  }))

/** Delivers a complete response. */
const whole: Form<Completed<unknown>> = { streams: false, ask: complete }

const open = Effect.fnUntraced(function* <A>(eventsOf: EventsOf<A>, attempt: Attempt) {
  const { admission, pair, prompt, protocol, request, request_id, speaks, upstream } = attempt
  const unreachable = (none: Wire.Unreachable) => unanswered(upstream.name, none, request_id)
  const answer = yield* Effect.catchAll(upstream.wire(admission).open(request, admission.to_its_end), unreachable)
  admission.servedAs(Wire.vendorRequestOf(answer.headers))
  if (isRefusal(answer)) {
    const whole = yield* Effect.catchAll(Wire.collect(answer, { limit: refusalBytesMax }), unreachable)
    return yield* refused(upstream.name, whole, request_id)
  }
  const type = Wire.header(answer.headers, "content-type") ?? "nothing"
  if (!speaks.stream.content_type.test(type)) {
    const limits = { limit: unstreamedBytesMax, long: speaks.long, read_on: admission.to_its_end }
    const whole = yield* Effect.catchAll(Wire.collect(answer, limits), unreachable)
    return yield* unstreamed(eventsOf, attempt, whole, `it responded to a streaming request with ${type}`)
  }
  const reader =
    pair === undefined
      ? protocol.reader(prompt, attempt.handedOut !== undefined)
      : Translated.readerOf(pair, protocol.broken, yield* answerOptions(attempt))
  const relay = EventRelay.make(speaks.stream.eventsOf(answer), reader)
  if (!attempt.is_last && !(yield* hasBegun(attempt, relay)))
    return yield* failed(upstream.name, "the stream broke before any part of the answer arrived", request_id)
  const arriving = new PendingStream(usageOf(admission.call), relay.body, eventsOf, admission.rates)
  return yield* admission.goOn<Streamed<A>>(
    withFallbackModel(attempt, arriving),
    Effect.flatMap(relay.ended, (how) => settleStream(attempt, relay, arriving, how))
  )
})

/** Relays a complete response as a stream, once its charge is committed. */
const unstreamed = Effect.fnUntraced(function* <A>(
  eventsOf: EventsOf<A>,
  attempt: Attempt,
  answer: Wire.Whole,
  reason: string
) {
  const { admission, pair, prompt, protocol } = attempt
  if (answer.lost !== undefined && answer.outline !== undefined)
    return yield* tooLongOf(attempt, answer, answer.outline)
  const options = yield* answerOptions(attempt)
  const whole = wholeOf(attempt, answer, options, reason)
  if (Either.isLeft(whole)) return yield* whole.left
  const { parsed, read, tokens } = whole.right
  const isBeyond = excessIn(read.usage, attempt.most)
  if (isBeyond !== undefined) yield* warnExcess(attempt, read.usage, isBeyond)
  const events =
    pair === undefined && protocol.asEvents !== undefined
      ? protocol.asEvents(parsed, prompt.show_usage)
      : Translated.eventsOf(pair ?? pairOf(protocol.name, protocol.name), parsed, options)
  if (events === undefined) return yield* unusable(attempt, parsed, reason)
  const body = Buffer.from(events)
  const ended = measured(attempt, tokens, null, bodyHash(body))
  return yield* admission.answer<Streamed<A>>(ended, (receipt) => {
    const bytes = Readable.from([body], { objectMode: false })
    const arriving = new PendingStream(usageOf(admission.call), bytes, eventsOf, receipt.rates)
    arriving.settled(Exit.succeed(receipt))
    return withFallbackModel(attempt, arriving)
  })
})

/**
 * Returns whether to relay the stream: it has produced bytes for the client, has ended normally or costs something. Otherwise, the next upstream may
 * be tried.
 */
const hasBegun = (attempt: Attempt, relay: EventRelay.Relay): Effect.Effect<boolean> =>
  // If the client has disconnected, the wait is interrupted and the stream ends.
  Effect.flatMap(Effect.exit(relay.begun), (begun) =>
    Exit.isSuccess(begun) && begun.value
      ? Effect.succeed(true)
      : Effect.map(
          relay.ended,
          (how) => how === "complete" || how === "left" || measuredOf(how, relay.report(), attempt).cost > 0n
        )
  )

/** Charges a stream that has ended, then sends its last event to the client. If the charge cannot be committed, aborts the client's stream. */
const settleStream = (
  attempt: Attempt,
  relay: EventRelay.Relay,
  arriving: PendingStream<unknown>,
  how: StreamEnd
): Effect.Effect<void> => {
  const report = relay.report()
  const settled = Effect.matchCauseEffect(
    settledWith(attempt, measuredOf(how, report, attempt, relay.hash(how)), report.handed_out ?? noIds),
    {
      onSuccess: (receipt) => {
        relay.finish(how)
        arriving.settled(Exit.succeed(receipt))
        return Effect.void
      },
      onFailure: (cause) => {
        relay.cut()
        arriving.settled(Exit.failCause(cause))
        return Effect.void
      }
    }
  )
  const isBeyond = excessIn(report.usage, attempt.most)
  return isBeyond === undefined ? settled : Effect.zipRight(warnExcess(attempt, report.usage, isBeyond), settled)
}

/** Delivers a stream. */
const streaming = <A>(eventsOf: EventsOf<A>): Form<Streamed<A>> => ({
  streams: true,
  ask: (attempt) => open(eventsOf, attempt)
})

const noWaiters: ReadonlyArray<never> = []

/**
 * A stream in progress. Events and receipt are computed only when they are read, because a `Deferred` per stream would cost more than the fiber that
 * settles the stream.
 */
class PendingStream<A> implements Streamed<A> {
  readonly fallback_model?: string
  readonly usage_id: string
  readonly bytes: Readable
  readonly rates: RatesAt | undefined
  private readonly eventsOf: EventsOf<A>
  private exit: Exit.Exit<Receipt, BooksUnavailable> | undefined
  private waiting: ReadonlyArray<(exit: Exit.Exit<Receipt, BooksUnavailable>) => void> = noWaiters

  constructor(usage_id: string, bytes: Readable, eventsOf: EventsOf<A>, rates: RatesAt | undefined) {
    this.usage_id = usage_id
    this.bytes = bytes
    this.rates = rates
    this.eventsOf = eventsOf
  }

  settled(exit: Exit.Exit<Receipt, BooksUnavailable>): void {
    this.exit = exit
    for (const resume of this.waiting) resume(exit)
    this.waiting = noWaiters
  }

  get receipt(): Effect.Effect<Receipt, BooksUnavailable> {
    return Effect.async((resume) => {
      if (this.exit !== undefined) return resume(this.exit)
      this.waiting = [...this.waiting, resume]
      return Effect.sync(() => {
        this.waiting = this.waiting.filter((one) => one !== resume)
      })
    })
  }

  get events(): Stream.Stream<A, UpstreamFailed> {
    return this.eventsOf(this.bytes)
  }
}

// ---- charges --------------------------------------------------------------------------------------------------------------

/** Builds a call's measurement. This runs on every call, so it avoids spreads. */
const measured = (
  { model, prompt, served, upstream }: Attempt,
  tokens: Tokens,
  error_type: string | null = null,
  answer_hash?: string
): Measured => ({
  cost: costOf(model, tokens),
  prompt_tokens: tokens.prompt_tokens,
  completion_tokens: tokens.completion_tokens,
  units: tokens.prompt_tokens + tokens.completion_tokens,
  provider: upstream.name,
  served,
  success: error_type !== "upstream_error",
  error_type,
  usage_source: tokens.usage_source,
  token_details: tokens.token_details,
  vendor_request: tokens.vendor_id,
  vendor_cost: tokens.vendor_cost,
  request_hash: requestHashOf(prompt),
  answer_hash
})

/** Returns the hash of the request's body, or `undefined` if the caller passed no JSON. */
const requestHashOf = ({ json, long }: ValidPrompt): string | undefined =>
  long === undefined ? json && bodyHash(json) : long.hash

/** Estimates the call's prompt tokens. A prompt that refers to content stored elsewhere cannot be estimated, so its bound is used. */
const countedOf = ({ model, most, prompt }: Attempt, completion_tokens: number): Figures => ({
  prompt_tokens: prompt.attached_elsewhere ? most.prompt_tokens : promptTokensEstimate(model, prompt),
  completion_tokens
})

const measuredOf = (
  how: StreamEnd,
  { tokens_counted, usage }: EventRelay.Report,
  attempt: Attempt,
  answer_hash?: string
): Measured => {
  // A stream that broke, or ended without any output, costs the usage that the upstream had reported by then.
  if (how === "broken" || (how === "unfinished" && tokens_counted === 0)) {
    const reported = tokensOf(usage, noTokens, attempt.most)
    return reported.prompt_tokens + reported.completion_tokens === 0
      ? { ...failure("upstream_error"), provider: attempt.upstream.name, served: attempt.served }
      : measured(attempt, reported, "upstream_error", answer_hash)
  }
  const known = how === "complete" ? usage : withoutStaleCount(usage, tokens_counted)
  const tokens = tokensOf(known, () => countedOf(attempt, tokens_counted), attempt.most)
  return measured(attempt, tokens, errorTypes[how], answer_hash)
}

const errorTypes = { complete: null, left: "client_disconnected", unfinished: "upstream_error" } as const

/** Returns the usage of an unfinished stream, without a completion count that is lower than the tokens counted in the stream. */
const withoutStaleCount = (usage: Usage, tokens_counted: number): Usage =>
  usage.completion_tokens !== undefined && usage.completion_tokens < tokens_counted
    ? { ...usage, completion_tokens: undefined }
    : usage

const noTokens = (): Figures => ({ prompt_tokens: 0, completion_tokens: 0 })

const excessWarnings = {
  total: {
    message: "an upstream reports more tokens than the request can cause",
    hint: "if answers exceed the limit sent to the upstream, the upstream may expect the other limit_field"
  },
  hour: {
    message: "an upstream reports one-hour caching that was not requested",
    hint: "five-minute caching was charged; if the vendor bills one-hour caching, find the cause"
  }
} as const

/** Warns the operator that an upstream did more or reported more than was requested. */
const warnExcess = (
  { model, most, request_id, upstream }: Attempt,
  usage: Usage,
  what: keyof typeof excessWarnings
): Effect.Effect<void> =>
  Effect.logWarning(excessWarnings[what].message).pipe(
    Effect.annotateLogs({
      upstream: upstream.name,
      model: model.id,
      reported: JSON.stringify(usage),
      most: JSON.stringify(most),
      hint: excessWarnings[what].hint,
      ...(request_id !== undefined && { request_id })
    })
  )
