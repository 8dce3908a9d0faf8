/** Serves calls that get one complete response from the first upstream that succeeds: embeddings and reranking. */
import { Effect, Either } from "effect"
import { written } from "../prompts/Outgoing.ts"
import { Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { bodyHashInPieces } from "../../upstream/wire/BodyHash.ts"
import { Busy, busyFor, noRoomForAnswer } from "../../kernel/Busy.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMembers, Place } from "../../kernel/JsonOutline.ts"
import type { Nano } from "../../kernel/Money.ts"
import { turn } from "../../kernel/Pieces.ts"
import type { Room } from "../../kernel/Room.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { answerBytesMax, ask, firstOf } from "../../upstream/models/Failover.ts"
import type { Answered } from "../../upstream/models/Failover.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import type { ProtocolName } from "../../upstream/models/Protocol.ts"
import { speakerLookup } from "../../upstream/models/Upstreams.ts"

export interface SingleCall<Request> {
  readonly caller: Caller
  readonly request: Request
  /** The request's JSON, if available. The long member is then copied instead of being serialized again. */
  readonly json?: Buffer | undefined
  /** Statements committed together with the call's admission. */
  readonly beside?: Claim["beside"]
  /**
   * Memory for the response. If none is free for the expected response, the call fails with `Busy` before an upstream is called. If the response is
   * longer than expected and does not fit, the call is charged and fails with `Busy`.
   */
  readonly room?: Room | undefined
  readonly request_id?: string | undefined
}

type Json = Readonly<Record<string, unknown>>

export interface SingleAnswer {
  readonly answer: Json
  /** The response's bytes: the upstream's own, unless the service has added parts. */
  readonly bytes: Buffer
  readonly receipt: Receipt
}

export type SingleProblem = InvalidRequest | Busy | GateRefusal | UpstreamProblem

/** A model with its routes, in the order they are tried. */
interface Routed {
  readonly id: string
  readonly routes: ReadonlyArray<{ readonly upstream: string; readonly model: string }>
}

interface Valid<Model> {
  readonly model: Model
  readonly request: Json
}

/** The properties that differ between embedding calls and rerank calls. */
export interface Kind<Model extends Routed, Asked extends Valid<Model>> {
  /** The route's name in usage records and in upstream addresses. */
  readonly protocol: Extract<ProtocolName, "embeddings" | "rerank">
  /** The noun for a model in error messages. */
  readonly noun: string
  readonly models: ReadonlyArray<Model>
  /** The member of a request that can be long. */
  readonly long: string
  /** Validates a request and computes its bounds. `Left` contains the first broken rule. */
  readonly askedOf: (request: unknown) => Either.Either<Asked, InvalidRequest>
  readonly pricesOf: (model: Model) => ReadonlyArray<PriceLine>
  /** Returns the price of a model's cheapest possible call. */
  readonly leastOf: (model: Model) => Nano
  readonly mostOf: (asked: Asked) => Nano
  /** Returns the maximum number of prompt tokens. */
  readonly tokensOf: (asked: Asked) => number
  /** Estimates the response size in bytes. */
  readonly answerBytesOf: (asked: Asked) => number
  /** The array in a response, and the member of its items that can be long. */
  readonly items: { readonly list: string; readonly long: string }
  /** Returns a long member in the requested format. */
  readonly filled: (asked: Asked, value: unknown) => unknown
  /** Returns the defect of a response, for the log. Here and below, a long response is represented by its outline. */
  readonly faultIn: (asked: Asked) => (answer: Json) => string | undefined
  /** Adds the requested parts that the upstream omitted. Returns `undefined` if none are missing. */
  readonly completed: (asked: Asked, answer: Json) => Json | undefined
  readonly reports: (answer: Json) => boolean
  readonly measuredOf: (asked: Asked, provider: string, answer: Json) => Measured
}

export const singles = Effect.fnUntraced(function* <Model extends Routed, Asked extends Valid<Model>>(
  kind: Kind<Model, Asked>
) {
  const { items, long, models, protocol } = kind
  const longMembers: LongMembers = { names: new Set([items.long]), depth: 3 }
  const gate = yield* Gate
  const upstreamOf = yield* speakerLookup(
    kind.noun,
    models.flatMap(({ id, routes }) => routes.map(({ upstream }) => ({ id, upstream }))),
    [protocol]
  )
  const versions = yield* PriceVersions
  const ways = new Map(models.map((model) => [model.id, waysOf(model)]))

  const attempt = Effect.fnUntraced(function* (
    admission: Admission,
    asked: Asked,
    { model, upstream: name }: Routed["routes"][number],
    { json, request_id, room }: SingleCall<unknown>
  ) {
    const answer = yield* ask(upstreamOf(name), admission, {
      protocol,
      path: `/${protocol}`,
      body: written({ ...asked.request, model }, long, json),
      faultIn: kind.faultIn(asked),
      costOf: (answer, isTooLong) =>
        isTooLong || kind.reports(answer) ? kind.measuredOf(asked, name, answer) : undefined,
      request_id,
      room,
      long: longMembers
    })
    const request_hash = json && (yield* bodyHashInPieces(json))
    const measured = { ...kind.measuredOf(asked, name, answer.body), request_hash }
    return yield* delivered(kind, asked, admission, measured, answer, room)
  })

  const call = Effect.fnUntraced(function* (call: SingleCall<unknown>): Effect.fn.Return<SingleAnswer, SingleProblem> {
    const read = kind.askedOf(call.request)
    if (Either.isLeft(read)) return yield* read.left
    const asked = read.right
    const expected = Math.min(kind.answerBytesOf(asked), answerBytesMax)
    if (call.room?.reserve(expected) === false) return yield* new Busy({ retry_after: busyFor })
    const { model } = asked
    const most = kind.mostOf(asked)
    const tokens = kind.tokensOf(asked)
    const claim = {
      caller: call.caller,
      usage_type: "inference",
      capability: protocol,
      endpoint: protocol,
      model: model.id,
      provider: model.routes[0]!.upstream,
      price: yield* versions.of(kind.pricesOf(model)),
      most,
      least: most,
      tokens: { least: tokens, most: tokens },
      ways: ways.get(model.id),
      beside: call.beside,
      request_id: call.request_id
    } as const
    return yield* gate.meter(claim, (admission) =>
      firstOf(openRoutes(model, admission), (route) => attempt(admission, asked, route, call), {
        goesOn: (problem) => admission.goesOn(problem)
      })
    )
  })

  const costs = models.map(kind.leastOf)
  return { call, least: costs.reduce((least, cost) => (cost < least ? cost : least), costs[0] ?? 0n) }
})

/** Returns all routes that may serve a call, so that budgets can check them, or `undefined` if there is only one. */
const waysOf = ({ id, routes }: Routed): Claim["ways"] =>
  routes.length === 1 ? undefined : routes.map(({ upstream }) => ({ model: id, provider: upstream }))

/** Returns the model's routes that no budget excludes. */
const openRoutes = ({ routes }: Routed, admission: Admission): Routed["routes"] =>
  admission.barred === undefined ? routes : routes.filter((_, place) => admission.mayServe(place))

/** Settles the call and returns the response, completed with the requested parts that the upstream omitted. */
const delivered = Effect.fnUntraced(function* <Model extends Routed, Asked extends Valid<Model>>(
  kind: Kind<Model, Asked>,
  asked: Asked,
  admission: Admission,
  measured: Measured,
  answer: Answered,
  room: Room | undefined
) {
  if (answer.lost) {
    yield* admission.settle({ ...measured, error_type: "busy" })
    return yield* new Busy({ message: noRoomForAnswer, retry_after: busyFor })
  }
  let completed = kind.completed(asked, answer.body)
  if (completed !== undefined && answer.emptied !== undefined) {
    const whole = yield* filledIn(kind, asked, answer.body, answer.bytes, answer.emptied)
    completed = kind.completed(asked, whole) ?? whole
  }
  const bytes = completed === undefined ? answer.bytes : Buffer.from(JSON.stringify(completed))
  room?.become(bytes.length)
  const ended = { ...measured, answer_hash: yield* bodyHashInPieces(bytes) }
  if (answer.emptied !== undefined)
    return yield* admission.answer(ended, (receipt): SingleAnswer => new LongAnswer(bytes, receipt))
  return yield* admission.answer(ended, (receipt): SingleAnswer => ({
    answer: completed ?? answer.body,
    bytes,
    receipt
  }))
})

/** The number of bytes to parse before yielding to other work. */
const pieceOfAnswer = 256 * 1024

/** Builds the complete response: the outline with all long members filled in. */
const filledIn = Effect.fnUntraced(function* <Asked extends Valid<unknown>>(
  { filled, items }: Pick<Kind<never, never>, "items"> & { readonly filled: (asked: Asked, value: unknown) => unknown },
  asked: Asked,
  outline: Json,
  bytes: Buffer,
  emptied: ReadonlyArray<Place>
) {
  const list: Array<Json> = []
  let next = 0
  let since = 0
  for (const item of outline[items.list] as ReadonlyArray<Json>) {
    const value = item[items.long]
    const isEmpty = typeof value === "string" || (typeof value === "object" && value !== null)
    const place = isEmpty ? emptied[next++] : undefined
    if (place === undefined) {
      list.push(item)
      continue
    }
    since += place.to - place.from
    if (since > pieceOfAnswer) {
      yield* turn
      since = 0
    }
    // The surrounding quotes or brackets are included.
    const read: unknown = JSON.parse(bytes.toString("utf8", place.from - 1, place.to + 1))
    list.push({ ...item, [items.long]: filled(asked, read) })
  }
  return { ...outline, [items.list]: list } as Json
})

/** A long response. It is parsed whenever `answer` is read. */
class LongAnswer implements SingleAnswer {
  readonly bytes: Buffer
  readonly receipt: Receipt

  constructor(bytes: Buffer, receipt: Receipt) {
    this.bytes = bytes
    this.receipt = receipt
  }

  get answer(): Json {
    return JSON.parse(this.bytes.toString()) as Json
  }
}
