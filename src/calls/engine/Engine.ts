/**
 * Answers of models: a relay over upstreams of several protocols, admitted and charged by the gate. Chat, text completions, messages and
 * responses are faces of it: each says its protocol.
 *
 * A request passes untouched to an upstream that speaks its client's protocol; for any other it is translated, and the answer back. Each
 * attempt is passed or translated by itself, so a call may fail over from one protocol to another. A request with thoughts that another
 * vendor signed is translated in any case.
 *
 * Where the specification is silent:
 * - The next upstream is tried after anything but a refusal of the request itself, unless the client has left. An upstream that has not
 *   begun to stream ten seconds after that is let go; such a call costs nothing, its record says `client_disconnected`. An answer that does
 *   not stream is read on to its end, and costs what it would have cost.
 * - An answer of 200 is believed only if it is one: choices, or an event stream that finishes. Else the next upstream is tried, or the
 *   stream is broken. A whole answer that reports its usage is charged by it all the same (one too long to be handed on, one that cannot be
 *   translated, one without choices), and no other upstream is asked. What an upstream says of its failure is passed on without addresses and keys.
 * - A stream that breaks before its client has anything of it, and of which no usage was reported, is a failure like any other where another
 *   upstream is left: until its first event has come, the client is not answered.
 * - An upstream that speaks several protocols but not the client's is asked in the first of its list that can be translated. One that cannot
 *   carry a request is passed over; a request that none can carry is refused with what hinders the first.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Either, Exit, Layer } from "effect"
import type { Stream } from "effect"
import type { Readable } from "node:stream"
import { failure, Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Metered, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { usageOf } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import { messages } from "../dialects/messages/Protocol.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { generated } from "../../protocols/conversation/Gist.ts"
import type { Gist } from "../../protocols/conversation/Gist.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import type { StreamOptions } from "../../protocols/conversation/Translation.ts"
import { responses } from "../dialects/responses/Protocol.ts"
import { handedOver } from "../../upstream/wire/ByteStream.ts"
import type { How } from "../../upstream/wire/ByteStream.ts"
import { failed, parse, refused } from "../../upstream/wire/Failures.ts"
import { firstOf, spent, tooLong } from "../../upstream/models/Failover.ts"
import type { Spent } from "../../upstream/models/Failover.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import { protocolNames } from "../../upstream/models/Protocol.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import type { UpstreamFailed } from "../../upstream/wire/Problems.ts"
import { speakerLookup } from "../../upstream/models/Upstreams.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import * as Wire from "../../upstream/wire/Wire.ts"
import { chat, text } from "../dialects/chat/Completions.ts"
import { unpricedHour } from "../prompts/CacheHour.ts"
import * as Kept from "../prompts/Kept.ts"
import * as EventRelay from "../prompts/EventRelay.ts"
import { extrasOf, withExtras } from "../prompts/Extras.ts"
import { findModel, leastOf, linesOf, Models } from "../prompts/Model.ts"
import type { Model, ModelRoute } from "../prompts/Model.ts"
import { UnknownChatModel } from "../prompts/Problems.ts"
import {
  answerTokensAsked,
  answerTokensWithin,
  boundOf,
  filesById,
  mostOf,
  promptTokensEstimate
} from "../prompts/Prompt.ts"
import type { ValidPrompt } from "../prompts/Prompt.ts"
import type { Protocol, Spoken } from "../prompts/Protocol.ts"
import * as Translated from "./Translated.ts"
import { pairOf } from "./Translated.ts"
import type { Pair } from "./Translated.ts"
import { beyondIn, bytesAToken, costOf, tokensOf } from "../prompts/Tokens.ts"
import type { Figures, Most, Tokens } from "../prompts/Tokens.ts"
import { bedrock, google } from "../dialects/Vendors.ts"

/** One answer that is asked for. */
export interface Call<Prompt> {
  readonly caller: Caller
  readonly prompt: Prompt
  /** The prompt's JSON, where the caller has it: it is then not written again to bound the prompt's tokens, and to pass the prompt on. */
  readonly json?: Buffer | undefined
  /** Headers of the protocol, for upstreams that speak it. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Statements that stand or fall with the admission of the call. */
  readonly beside?: Claim["beside"]
  /** Names the call in the log. */
  readonly request_id?: string | undefined
}

/** A whole answer. */
export interface Completed<A> {
  /** The answer as the upstream sent it; it was looked at only to see that it is one, and what it used. */
  readonly completion: A
  /** The same, byte for byte. */
  readonly bytes: Buffer
  readonly receipt: Receipt
}

/** An answer that is still coming. */
export interface Streamed<A> {
  /** The id of the usage record that it leaves when it has ended. */
  readonly usage_id: string
  /**
   * Server-sent events. The last, `data: [DONE]`, waits until the charge is in the books; where it cannot be in time, the stream is cut
   * off with an error. One that the upstream breaks off ends with an event `{ "error": … }` before it. It must be read to its end or
   * destroyed. To destroy it is to leave: the upstream is read on for up to ten seconds, and what came is charged.
   */
  readonly bytes: Readable
  /** The same as parsed chunks, made as they are read. Only one of the two can be read. */
  readonly events: Stream.Stream<A, UpstreamFailed>
  /** Waits for the end of the call; of a broken stream too, which costs what the upstream had reported. */
  readonly receipt: Effect.Effect<Receipt, BooksUnavailable>
}

export type ChatProblem = InvalidRequest | GateRefusal | UpstreamProblem

/**
 * Each face picks its answer's form by itself: `stream` of the prompt is not looked at. A prompt that is not valid is an
 * `InvalidRequest`, one for a model that there is not an `UnknownChatModel`.
 *
 * A caller that is interrupted has left: no further upstream is asked. The upstream that works is read on, a stream for up to ten seconds and
 * any other answer to its end, and what came is charged; else the call is a `client_disconnected` that costs nothing. The interrupting fiber
 * waits for that; `Effect.disconnect` spares it the wait.
 */
export interface EngineContract {
  readonly complete: <Prompt, A>(protocol: Protocol) => (call: Call<Prompt>) => Effect.Effect<Completed<A>, ChatProblem>
  /** Answers once an upstream has begun to. `eventsOf` makes the values of the bytes. */
  readonly stream: <Prompt, A>(
    protocol: Protocol,
    eventsOf: EventsOf<A>
  ) => (call: Call<Prompt>) => Effect.Effect<Streamed<A>, ChatProblem>
  /** How clients reach a model; nothing of one that there is not. */
  readonly reach: (model: string) => Reach
  /** The models with an upstream that keeps responses: the ids in their answers are written (`Kept`). */
  readonly keeps_responses: ReadonlySet<string>
  /** No call costs less: 0 where a model is free. */
  readonly least: Nano
}

/** The protocols of clients by which a model is reached. */
export interface Reach {
  readonly protocols: ReadonlyArray<ClientProtocol>
  /** Those of them in which a request passes untouched to the first upstream that is tried. */
  readonly native_protocols: ReadonlyArray<ClientProtocol>
}

export type EventsOf<A> = (bytes: Readable) => Stream.Stream<A, UpstreamFailed>

/** The longest whole answer. */
const answerBytesMax = 64 * 1024 * 1024
/** The longest refusal of an upstream. */
const refusalBytesMax = 1024 * 1024

export class Engine extends Context.Tag("tollgate/chat/Engine")<Engine, EngineContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Engine, make))
}

/** How an answer comes. */
interface Form<A> {
  readonly streams: boolean
  readonly ask: (attempt: Attempt) => Effect.Effect<Metered<A>, UpstreamProblem | BooksUnavailable | Spent>
}

/** A route of a model, in the protocol of a client. */
interface Way {
  readonly route: ModelRoute
  readonly upstream: Upstream
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The protocol in which the upstream is asked. */
  readonly speaks: Spoken
  /** How that is translated; `undefined` where the request passes untouched. */
  readonly pair: Pair | undefined
}

/** The protocols in which upstreams are asked. */
const protocols: { readonly [Name in ProtocolName]?: Spoken } = { chat, text, messages, responses, google, bedrock }

/** Those that clients speak. */
const clients: ReadonlyArray<Protocol> = [chat, text, messages, responses]

/** Those in which an upstream of a model can be asked. */
const needed = protocolNames.filter((name) => protocols[name] !== undefined)

/** How a route is gone by for clients of a protocol; `undefined` where its upstream speaks nothing that it is translated into. */
const wayOf = (protocol: Protocol, route: ModelRoute, upstream: Upstream, streams: boolean): Way | undefined => {
  const own = upstream.speaks.includes(protocol.name)
  const name = own ? protocol.name : upstream.speaks.find((one) => pairOf(protocol.name, one) !== undefined)
  const speaks = name && protocols[name]
  if (name === undefined || speaks === undefined) return undefined
  return {
    route,
    upstream,
    path: speaks.pathFor(route.model, streams),
    headers: { ...upstream.headersFor(name), ...speaks.headers },
    speaks,
    pair: own ? undefined : pairOf(protocol.name, name)
  }
}

/** Whether the vendor is told what the client wants to have cached. */
const marksCaches = ({ pair, route }: Way): boolean => pair === undefined || pair.vendor.marksCaches(route.model)

/** The same way for a request that must not pass untouched. */
const translated = ({ name }: Protocol, way: Way): Way =>
  way.pair === undefined ? { ...way, pair: pairOf(name, name) } : way

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const catalogue = yield* Models
  const upstreamOf = yield* speakerLookup(
    "chat model",
    catalogue.models.flatMap(({ id, routes }) => routes.map(({ upstream }) => ({ id, upstream }))),
    needed
  )
  const versions = yield* PriceVersions
  const kept = Kept.make(yield* SqlClient)
  const clock = yield* Effect.clock
  const keeps_responses = new Set(
    catalogue.models
      .filter(({ routes }) => routes.some(({ upstream }) => upstreamOf(upstream).keeps_responses))
      .map(({ id }) => id)
  )

  /** A model at the prices of a call, and their version. */
  interface Offer {
    readonly model: Model
    readonly price: string
  }
  const offer = (model: Model): Effect.Effect<Offer, BooksUnavailable> =>
    Effect.map(versions.of(linesOf(model)), (price) => ({ model, price }))
  const plain = new Map(
    yield* Effect.forEach(catalogue.models, (model) =>
      Effect.map(offer(model), (offered) => [model.id, offered] as const)
    )
  )

  /** The ways to each model for clients of this protocol, in the order in which they are tried. */
  const waysFor = (protocol: Protocol, streams: boolean): ReadonlyMap<string, ReadonlyArray<Way>> =>
    new Map(
      catalogue.models.map(({ id, routes }) => {
        const ways = routes.map((route) => wayOf(protocol, route, upstreamOf(route.upstream), streams))
        return [id, ways.filter((way) => way !== undefined)]
      })
    )

  const metered = <Prompt, A>(protocol: Protocol, form: Form<A>) => {
    const waysOf = waysFor(protocol, form.streams)
    return Effect.fnUntraced(function* (call: Call<Prompt>) {
      // An `Either` is not yielded where it is right: it would cost a step of the fiber.
      const read = protocol.read(call.prompt, call.json)
      if (Either.isLeft(read)) return yield* read.left
      const prompt = read.right
      const found = findModel(catalogue, prompt.model)
      if (found === undefined) return yield* new UnknownChatModel(prompt.model)
      if (prompt.names_files && found.vendor_files !== true) return yield* filesById
      const extras = extrasOf(found, protocol.billed, prompt.body, call.headers)
      if (Either.isLeft(extras)) return yield* extras.left
      const usual = waysOf.get(found.id)!
      const possible = Translated.isForeign(protocol.name, prompt)
        ? usual.map((way) => translated(protocol, way))
        : usual
      const unpriced = unpricedHour(found, prompt)
      const priced = unpriced === undefined ? possible : possible.filter((way) => !marksCaches(way))
      if (unpriced !== undefined && priced.length === 0) return yield* unpriced
      const ways = carrying(protocol, priced, found, prompt, form.streams)
      if (Either.isLeft(ways)) return yield* ways.left
      const keeps = protocol.handedOutIn !== undefined && keeps_responses.has(found.id)
      const { model, price } =
        extras.right.length === 0 ? plain.get(found.id)! : yield* offer(withExtras(found, extras.right))

      const { enough, least, most } = boundOf(model, prompt)
      const claim = {
        caller: call.caller,
        usage_type: "inference",
        endpoint: protocol.endpoint,
        model: model.id,
        provider: ways.right[0]!.route.upstream,
        price,
        beside: call.beside,
        least,
        enough,
        most
      } as const
      return yield* gate.meter(claim, (admission) =>
        relay(protocol, form, admission, model, prompt, ways.right, keeps, call)
      )
    })
  }

  const relay = <A>(
    protocol: Protocol,
    form: Form<A>,
    admission: Admission,
    model: Model,
    prompt: ValidPrompt,
    ways: ReadonlyArray<Way>,
    keeps: boolean,
    { caller, headers, request_id }: Pick<Call<unknown>, "caller" | "headers" | "request_id">
  ): Effect.Effect<Metered<A>, UpstreamProblem | BooksUnavailable | InvalidRequest> => {
    const limit = answerTokensWithin(model, prompt, admission.reserved)
    return firstOf(
      ways,
      (way, is_last): Effect.Effect<Metered<A>, UpstreamProblem | BooksUnavailable | InvalidRequest | Spent> => {
        const takes = way.route.limit_field !== "none"
        const body = bodyFor(protocol, way, prompt, form.streams, takes ? limit : undefined)
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
            body: body.right
          },
          admission,
          model,
          prompt,
          most: mostOf(model, prompt, takes ? limit : model.output_tokens_max),
          is_last,
          handedOut:
            keeps && way.pair === undefined
              ? (ids) => kept.handedOut(caller, ids, clock.unsafeCurrentTimeMillis())
              : undefined,
          request_id
        })
      }
    )
  }

  const reached = clients.map((protocol) => ({ name: protocol.name, waysOf: waysFor(protocol, false) }))
  const reach = (model: string): Reach => {
    const first = reached.flatMap(({ name, waysOf }) =>
      (waysOf.get(model) ?? []).slice(0, 1).map((way) => ({ name, way }))
    )
    return {
      protocols: first.map(({ name }) => name),
      native_protocols: first.filter(({ way }) => way.pair === undefined).map(({ name }) => name)
    }
  }

  // Every answer has a token at least.
  const costs = catalogue.models.map((model) => charge([{ units: 1, price: leastOf(model) }]))

  const complete = <Prompt, A>(protocol: Protocol) =>
    metered<Prompt, Completed<A>>(protocol, whole as Form<Completed<unknown>> as Form<Completed<A>>)
  /** Who is interrupted before they have the stream has left it. */
  const stream = <Prompt, A>(protocol: Protocol, eventsOf: EventsOf<A>) => {
    const call = metered<Prompt, Streamed<A>>(protocol, streaming(eventsOf))
    return (asked: Call<Prompt>) => handedOver(call(asked), ({ bytes }) => bytes)
  }
  return {
    complete,
    stream,
    reach,
    keeps_responses,
    least: costs.reduce((least, cost) => (cost < least ? cost : least), costs[0] ?? 0n)
  } satisfies EngineContract
})

/** The body that an upstream is sent, or why it cannot be. */
const bodyFor = (
  { bodyFor, refusal }: Protocol,
  way: Way,
  prompt: ValidPrompt,
  streams: boolean,
  limit: number | undefined
): Either.Either<string | Buffer, InvalidRequest> => {
  if (way.pair !== undefined) return Translated.bodyFor(way.pair, prompt, way.route, streams, limit)
  const refused = refusal?.(prompt, way)
  return refused === undefined ? Either.right(bodyFor(prompt, way, streams, limit)) : Either.left(refused)
}

/** Why a request cannot go this way, as far as that is known before its limit is. Most can go any. */
const hindrance = (
  { refusal }: Protocol,
  way: Way,
  model: Model,
  prompt: ValidPrompt,
  streams: boolean
): InvalidRequest | undefined => {
  if (way.pair === undefined) return refusal?.(prompt, way)
  const takes = way.route.limit_field !== "none"
  const limit = takes ? (answerTokensAsked(model, prompt) ?? model.output_tokens_max) : undefined
  const body = Translated.bodyFor(way.pair, prompt, way.route, streams, limit)
  return Either.isLeft(body) ? body.left : undefined
}

/** The ways to try, beginning with the first that can carry the request; where there is none, why not. */
const carrying = (
  protocol: Protocol,
  ways: ReadonlyArray<Way>,
  model: Model,
  prompt: ValidPrompt,
  streams: boolean
): Either.Either<ReadonlyArray<Way>, InvalidRequest> => {
  let why: InvalidRequest | undefined
  for (let i = 0; i < ways.length; i++) {
    const hindered = hindrance(protocol, ways[i]!, model, prompt, streams)
    if (hindered === undefined) return Either.right(i === 0 ? ways : ways.slice(i))
    why ??= hindered
  }
  return Either.left(why ?? unreachable(protocol, prompt.model))
}

const unreachable = ({ endpoint }: Protocol, model: string): InvalidRequest =>
  InvalidRequest.of(
    "model",
    `${JSON.stringify(model.slice(0, 100))} is not served by ${endpoint}: its upstreams do not speak that`
  )

/** A call on its way to one upstream. */
interface Attempt {
  /** The client's. */
  readonly protocol: Protocol
  /** The upstream's. */
  readonly speaks: Spoken
  readonly pair: Pair | undefined
  readonly upstream: Upstream
  readonly request: Wire.WireRequest
  readonly admission: Admission
  readonly model: Model
  readonly prompt: ValidPrompt
  /** The most tokens that the request, as it is sent, can cause. */
  readonly most: Most
  /** No other upstream is left. */
  readonly is_last: boolean
  /** What is written with the settlement of an answer with these ids; `undefined` where the model keeps nothing. */
  readonly handedOut: ((ids: ReadonlyArray<string>) => ReadonlyArray<Statement>) | undefined
  readonly request_id: string | undefined
}

const complete: Form<Completed<unknown>>["ask"] = Effect.fnUntraced(function* (attempt) {
  const { admission, request, request_id, upstream } = attempt
  const answer = yield* Effect.catchAll(
    upstream
      .wire(admission)
      .exchange(request, { limit: answerBytesMax, gist: generated, read_on: admission.to_its_end }),
    ({ reason }) => failed(upstream.name, reason, request_id)
  )
  if (answer.status < 200 || answer.status > 299) return yield* refused(upstream.name, answer, request_id)
  if (answer.gist !== undefined) return yield* unusable(attempt, answer.gist.object, tooLong, answer.gist)
  const parsed = parse(answer.body.toString("utf8"))
  if (parsed === undefined) return yield* failed(upstream.name, "its answer is not a JSON object", request_id)
  const { pair } = attempt
  const read =
    pair === undefined
      ? readAsItIs(attempt.protocol, parsed)
      : Translated.answerOf(pair, parsed, yield* answerOptions(attempt))
  if (Either.isLeft(read)) return yield* unusable(attempt, parsed, read.left)

  const { shown, tokens_counted, usage } = read.right
  const isBeyond = beyondIn(usage, attempt.most)
  if (isBeyond !== undefined) yield* beyond(attempt, usage, isBeyond)
  const tokens = tokensOf(usage, () => countedOf(attempt, tokens_counted()), attempt.most)
  const ended = measured(attempt, tokens)
  // Write the ids first: the client may continue from the answer as soon as it arrives.
  if (attempt.handedOut !== undefined)
    yield* settledWith(attempt, ended, attempt.protocol.handedOutIn?.(parsed) ?? noIds)
  return yield* admission.answer(ended, (receipt) => ({
    completion: shown,
    bytes: shown === parsed ? answer.body : Buffer.from(JSON.stringify(shown)),
    receipt
  }))
})

type Body = Readonly<Record<string, unknown>>

/**
 * Ends a call whose whole answer is of no use to the client: it costs what it reports. Where it reports nothing, what was generated is counted
 * of an answer that is too long; any other has failed, and the next upstream may be asked.
 */
const unusable = (
  attempt: Attempt,
  answer: Body,
  reason: string,
  long?: Gist
): Effect.Effect<never, UpstreamFailed | Spent | BooksUnavailable> => {
  const { admission, most, pair, protocol, request_id, upstream } = attempt
  const usage = pair === undefined ? protocol.usageIn(answer) : Translated.usageIn(pair, answer)
  const counted = () => (long === undefined ? nothing() : countedOf(attempt, Math.round(long.generated / bytesAToken)))
  const tokens = tokensOf(usage, counted, most)
  if (tokens.prompt_tokens + tokens.completion_tokens === 0) return failed(upstream.name, reason, request_id)
  return spent(upstream, admission, measured(attempt, tokens), reason, request_id)
}

const noIds: ReadonlyArray<string> = []

/** Settles a call together with the ids of its answer. */
const settledWith = (
  { admission, handedOut }: Attempt,
  ended: Measured,
  ids: ReadonlyArray<string>
): Effect.Effect<Receipt, BooksUnavailable> =>
  handedOut === undefined
    ? admission.settle(ended)
    : // None of its statements demands a row.
      Effect.catchTag(admission.settleBeside(ended, handedOut(ids)), "Conflict", Effect.die)

/** An answer in the client's own protocol, or what is wrong with it. */
const readAsItIs = (protocol: Protocol, answer: Body): Either.Either<Translated.ReadAnswer, string> => {
  const fault = protocol.faultIn(answer)
  return fault === undefined
    ? Either.right({
        shown: answer,
        usage: protocol.usageIn(answer),
        tokens_counted: () => protocol.countIn(answer)
      })
    : Either.left(fault)
}

/** What a translated answer is called: by its call, and the model as the client named it. */
const answerOptions = ({ admission, prompt }: Attempt): Effect.Effect<StreamOptions> =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    id: admission.call,
    model: prompt.model,
    created: Math.floor(now / 1000),
    request: prompt.body,
    include_usage: prompt.show_usage
  }))

/** An answer that comes whole. */
const whole: Form<Completed<unknown>> = { streams: false, ask: complete }

const open = Effect.fnUntraced(function* <A>(eventsOf: EventsOf<A>, attempt: Attempt) {
  const { admission, pair, prompt, protocol, request, request_id, speaks, upstream } = attempt
  const unreachable = ({ reason }: Wire.Unreachable) => failed(upstream.name, reason, request_id)
  const answer = yield* Effect.catchAll(upstream.wire(admission).open(request), unreachable)
  if (answer.status < 200 || answer.status > 299) {
    const whole = yield* Effect.catchAll(Wire.collect(answer, refusalBytesMax), unreachable)
    return yield* refused(upstream.name, whole, request_id)
  }
  const type = Wire.header(answer.headers, "content-type") ?? "nothing"
  if (!speaks.stream.content_type.test(type)) {
    answer.abort()
    return yield* failed(upstream.name, `asked for a stream, it answered ${type}`, request_id)
  }
  const reader =
    pair === undefined
      ? protocol.reader(prompt, attempt.handedOut !== undefined)
      : Translated.readerOf(pair, protocol.broken, yield* answerOptions(attempt))
  const relay = EventRelay.make(speaks.stream.eventsOf(answer), reader)
  if (!attempt.is_last && !(yield* hasBegun(attempt, relay)))
    return yield* failed(upstream.name, "its stream broke before anything of an answer came", request_id)
  const arriving = new Arriving(usageOf(admission.call), relay.body, eventsOf)
  return yield* admission.goOn<Streamed<A>>(
    arriving,
    Effect.flatMap(relay.ended, (how) => settleStream(attempt, relay, arriving, how))
  )
})

/** Whether there is something to answer with, or to charge. Else the stream broke, and another upstream may be asked. */
const hasBegun = (attempt: Attempt, relay: EventRelay.Relay): Effect.Effect<boolean> =>
  Effect.flatMap(relay.begun, (any) =>
    any
      ? Effect.succeed(true)
      : Effect.map(relay.ended, (how) => how !== "broken" || measuredOf(how, relay.report(), attempt).cost > 0n)
  )

/** Charges a stream that has ended, and then lets its reader have the end. */
const settleStream = (
  attempt: Attempt,
  relay: EventRelay.Relay,
  arriving: Arriving<unknown>,
  how: How
): Effect.Effect<void> => {
  const report = relay.report()
  const settled = Effect.matchCauseEffect(
    settledWith(attempt, measuredOf(how, report, attempt), report.handed_out ?? noIds),
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
  const isBeyond = beyondIn(report.usage, attempt.most)
  return isBeyond === undefined ? settled : Effect.zipRight(beyond(attempt, report.usage, isBeyond), settled)
}

/** An answer that comes as events. */
const streaming = <A>(eventsOf: EventsOf<A>): Form<Streamed<A>> => ({
  streams: true,
  ask: (attempt) => open(eventsOf, attempt)
})

const noWaiters: ReadonlyArray<never> = []

/**
 * Its events are made of its bytes, and its receipt is waited for, only where somebody asks for them. (A `Deferred` for each stream costs
 * more than the fiber that settles it.)
 */
class Arriving<A> implements Streamed<A> {
  readonly usage_id: string
  readonly bytes: Readable
  private readonly eventsOf: EventsOf<A>
  private exit: Exit.Exit<Receipt, BooksUnavailable> | undefined
  private waiting: ReadonlyArray<(exit: Exit.Exit<Receipt, BooksUnavailable>) => void> = noWaiters

  constructor(usage_id: string, bytes: Readable, eventsOf: EventsOf<A>) {
    this.usage_id = usage_id
    this.bytes = bytes
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

// ---- what is charged ------------------------------------------------------------------------------------------------------

/** A call that ran to its end. Written out rather than spread, being made for every call. */
const measured = ({ model, upstream }: Attempt, tokens: Tokens, error_type: string | null = null): Measured => ({
  cost: costOf(model, tokens),
  prompt_tokens: tokens.prompt_tokens,
  completion_tokens: tokens.completion_tokens,
  units: tokens.prompt_tokens + tokens.completion_tokens,
  provider: upstream.name,
  success: error_type !== "upstream_error",
  error_type,
  usage_source: tokens.usage_source,
  token_details: tokens.token_details
})

/** What was counted of a call whose answer came to so many tokens. A prompt that lies elsewhere cannot be counted: its bound counts. */
const countedOf = ({ model, most, prompt }: Attempt, completion_tokens: number): Figures => ({
  prompt_tokens: prompt.attached_elsewhere ? most.prompt_tokens : promptTokensEstimate(model, prompt),
  completion_tokens
})

const measuredOf = (how: How, { tokens_counted, usage }: EventRelay.Report, attempt: Attempt): Measured => {
  if (how === "broken") {
    // What the upstream reported before it broke is charged, and nothing else.
    const reported = tokensOf(usage, nothing, attempt.most)
    return reported.prompt_tokens + reported.completion_tokens === 0
      ? { ...failure("upstream_error"), provider: attempt.upstream.name }
      : measured(attempt, reported, "upstream_error")
  }
  const tokens = tokensOf(usage, () => countedOf(attempt, tokens_counted), attempt.most)
  return measured(attempt, tokens, how === "left" ? "client_disconnected" : null)
}

const nothing = (): Figures => ({ prompt_tokens: 0, completion_tokens: 0 })

const beyondWords = {
  total: {
    message: "an upstream reports more tokens than the request can have caused",
    hint: "if its answers are longer than the limit that was sent, it may know the limit by the other limit_field"
  },
  hour: {
    message: "an upstream reports a cache of an hour that the request did not ask for",
    hint: "it is charged as one of five minutes: if the vendor bills the hour, find out who asks it for that"
  }
} as const

/** The operator reads that an upstream did more than it was asked, or says so. */
const beyond = (
  { model, most, request_id, upstream }: Attempt,
  usage: Usage,
  what: keyof typeof beyondWords
): Effect.Effect<void> =>
  Effect.logWarning(beyondWords[what].message).pipe(
    Effect.annotateLogs({
      upstream: upstream.name,
      model: model.id,
      reported: JSON.stringify(usage),
      most: JSON.stringify(most),
      hint: beyondWords[what].hint,
      ...(request_id !== undefined && { request_id })
    })
  )
