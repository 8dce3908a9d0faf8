/** Serves embedding and rerank calls: the first upstream that succeeds returns one complete response. */
import { Effect, Either } from "effect"
import { spliced, requestJson } from "../prompts/Outgoing.ts"
import { Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { bodyHashInChunks } from "../../upstream/wire/BodyHash.ts"
import { Busy, busyFor, noRoomForAnswer } from "../../kernel/Busy.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Room } from "../../kernel/Room.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { answerBytesMax, ask, firstOf } from "../../upstream/models/Failover.ts"
import type { Answered } from "../../upstream/models/Failover.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import { speakerLookup } from "../../upstream/models/Upstreams.ts"
import type { SingleProtocol } from "./BodyTask.ts"
import * as LongRequests from "./LongRequests.ts"
import { LongRequest } from "./LongRequests.ts"

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
  /** The response's bytes: the upstream's, unless the service added parts. */
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
export interface Kind<Model extends Routed, Asked extends Valid<Model>, Facts> {
  readonly protocol: SingleProtocol
  /** The noun for a model in error messages. */
  readonly noun: string
  readonly models: ReadonlyArray<Model>
  /** The request member that can be long. */
  readonly long: string
  /** Validates a request and computes its bounds. `Left` holds the first violation. `facts` are those of a long request. */
  readonly askedOf: (request: unknown, facts?: Facts) => Either.Either<Asked, InvalidRequest>
  readonly pricesOf: (model: Model) => ReadonlyArray<PriceLine>
  /** Returns the price of a model's cheapest possible call. */
  readonly leastOf: (model: Model) => Nano
  readonly mostOf: (asked: Asked) => Nano
  /** Returns the maximum number of prompt tokens. */
  readonly tokensOf: (asked: Asked) => number
  /** Estimates the response size in bytes. */
  readonly answerBytesOf: (asked: Asked) => number
  /** The response members that may be long. */
  readonly longMembers: LongMembers
  /** Returns a response's defect, for the log. Here and below, a long response is represented by its outline. */
  readonly faultIn: (asked: Asked) => (answer: Json) => string | undefined
  /** Returns whether the upstream omitted requested parts. */
  readonly isIncomplete: (asked: Asked, answer: Json) => boolean
  /** Adds these parts to a response that is not long. */
  readonly completed: (asked: Asked, answer: Json) => Json
  /** Whether these parts are taken from the request. */
  readonly completesFromRequest: boolean
  /** Returns whether a response reports its usage. */
  readonly reports: (answer: Json) => boolean
  readonly measuredOf: (asked: Asked, provider: string, answer: Json) => Measured
}

/** Returns the received body's hash, or `undefined` if the caller passed no JSON. */
const requestHashOf = ({ json, request }: SingleCall<unknown>): Effect.Effect<string | undefined> => {
  const received = request instanceof LongRequest ? request.json : json
  return received === undefined ? Effect.succeed(undefined) : bodyHashInChunks(received)
}

export const singles = Effect.fnUntraced(function* <Model extends Routed, Asked extends Valid<Model>, Facts>(
  kind: Kind<Model, Asked, Facts>
) {
  const { long, longMembers, models, protocol } = kind
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
    call: SingleCall<unknown>
  ) {
    const { request_id, room } = call
    const request_hash = yield* requestHashOf(call)
    const measuredBy = (answer: Json): Measured => ({ ...kind.measuredOf(asked, name, answer), request_hash })
    const answer = yield* ask(upstreamOf(name), admission, {
      protocol,
      path: `/${protocol}`,
      body: bodyOf({ ...asked.request, model }, long, call),
      faultIn: kind.faultIn(asked),
      costOf: (answer, isTooLong) => (isTooLong || kind.reports(answer) ? measuredBy(answer) : undefined),
      request_id,
      room,
      long: longMembers
    })
    return yield* delivered(kind, asked, admission, measuredBy(answer.body), answer, call)
  })

  const call = Effect.fnUntraced(function* (call: SingleCall<unknown>): Effect.fn.Return<SingleAnswer, SingleProblem> {
    const read = validated(kind, call.request)
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

const bodyOf = (sent: Record<string, unknown>, long: string, { json, request }: SingleCall<unknown>) =>
  request instanceof LongRequest ? spliced(sent, request) : requestJson(sent, long, json)

const validated = <Model extends Routed, Asked extends Valid<Model>, Facts>(
  { askedOf }: Kind<Model, Asked, Facts>,
  request: unknown
): ReturnType<typeof askedOf> =>
  request instanceof LongRequest ? askedOf(request.value, request.facts as Facts) : askedOf(request)

/** Returns all routes that may serve a call, so that budgets can check them, or `undefined` if there is only one. */
const waysOf = ({ id, routes }: Routed): Claim["ways"] =>
  routes.length === 1 ? undefined : routes.map(({ upstream }) => ({ model: id, provider: upstream }))

/** Returns the model's routes that no budget excludes. */
const openRoutes = ({ routes }: Routed, admission: Admission): Routed["routes"] =>
  admission.barred === undefined ? routes : routes.filter((_, place) => admission.mayServe(place))

/** Settles the call and returns the response, with requested parts that the upstream omitted. */
const delivered = Effect.fnUntraced(function* <Model extends Routed, Asked extends Valid<Model>, Facts>(
  kind: Kind<Model, Asked, Facts>,
  asked: Asked,
  admission: Admission,
  measured: Measured,
  answer: Answered,
  call: SingleCall<unknown>
) {
  const shown = answer.lost ? undefined : yield* clientResponseOf(kind, asked, answer, call)
  if (shown === undefined) {
    yield* admission.settle({ ...measured, error_type: "busy" })
    return yield* new Busy({ message: noRoomForAnswer, retry_after: busyFor })
  }
  const { bytes, value } = shown
  call.room?.become(bytes.length)
  const ended = { ...measured, answer_hash: yield* bodyHashInChunks(bytes) }
  return yield* admission.answer(ended, (receipt): SingleAnswer =>
    value === undefined ? new LongAnswer(bytes, receipt) : { answer: value, bytes, receipt }
  )
})

/** The client's response. A long one has no value. */
interface ClientResponse {
  readonly bytes: Buffer
  readonly value: Json | undefined
}

/**
 * Builds the client's response. If the response is long or needs parts of a long request, a separate thread completes it. Returns `undefined` if that
 * failed.
 */
const clientResponseOf = <Model extends Routed, Asked extends Valid<Model>, Facts>(
  { completed, completesFromRequest, isIncomplete, protocol }: Kind<Model, Asked, Facts>,
  asked: Asked,
  { body, bytes, emptied }: Answered,
  { caller, json, request }: SingleCall<unknown>
): Effect.Effect<ClientResponse | undefined> => {
  const isLong = emptied !== undefined
  if (!isIncomplete(asked, body)) return Effect.succeed({ bytes, value: isLong ? undefined : body })
  const needed = completesFromRequest && (isLong || request instanceof LongRequest)
  if (!isLong && !needed) {
    const value = completed(asked, body)
    return Effect.succeed({ bytes: Buffer.from(JSON.stringify(value)), value })
  }
  // A copy, because the memory is moved and the caller may still use it.
  const received =
    request instanceof LongRequest ? request.json : Buffer.from(json === undefined ? JSON.stringify(request) : json)
  return Effect.map(
    LongRequests.completed(protocol, bytes, needed ? received : undefined, caller.account_id),
    (bytes) => bytes && { bytes, value: undefined }
  )
}

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
