/**
 * One request to a model that answers whole, from the first of its upstreams that does, metered by what it reports: what embeddings and
 * reranking share.
 */
import { Effect, Either } from "effect"
import { written } from "../prompts/Outgoing.ts"
import { Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { Busy, busyFor } from "../../kernel/Busy.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { answerBytesMax, ask, firstOf } from "../../upstream/models/Failover.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import type { ProtocolName } from "../../upstream/models/Protocol.ts"
import { speakerLookup } from "../../upstream/models/Upstreams.ts"

/** Room for an answer, where whoever calls has only so much. */
export interface Room {
  /** Takes so many bytes, or says that there is no room. */
  readonly take: (bytes: number) => boolean
  /** The answer has come, and has so many. */
  readonly become: (bytes: number) => void
}

export interface SingleCall<Request> {
  readonly caller: Caller
  readonly request: Request
  /** The request's JSON, where the caller has it: what is long in it is then copied from it, and not written again. */
  readonly json?: Buffer | undefined
  /** Statements that stand or fall with the admission of the call. */
  readonly beside?: Claim["beside"]
  /** Where it has no room for what the answer can be expected to have, nobody is asked, and the call fails as `Busy`. */
  readonly room?: Room | undefined
  /** Names the call in the log. */
  readonly request_id?: string | undefined
}

type Json = Readonly<Record<string, unknown>>

export interface SingleAnswer {
  /** The upstream's answer. */
  readonly answer: Json
  /** The same, byte for byte as it came, but where it was completed. */
  readonly bytes: Buffer
  readonly receipt: Receipt
}

export type SingleProblem = InvalidRequest | Busy | GateRefusal | UpstreamProblem

/** A model, and the names that its upstreams have for it, in the order in which they are tried. */
interface Routed {
  readonly id: string
  readonly routes: ReadonlyArray<{ readonly upstream: string; readonly model: string }>
}

/** A request that is valid, with its model. */
interface Valid<Model> {
  readonly model: Model
  readonly request: Json
}

/** A kind of such requests. */
export interface Kind<Model extends Routed, Asked extends Valid<Model>> {
  /** The route's name in usage records, and below an upstream's address. */
  readonly protocol: Extract<ProtocolName, "embeddings" | "rerank">
  /** What an error calls a model of it. */
  readonly noun: string
  readonly models: ReadonlyArray<Model>
  /** The member of a request that may be long. */
  readonly long: string
  /** The request with what it can cost, or the rule that it breaks. */
  readonly askedOf: (request: unknown) => Either.Either<Asked, InvalidRequest>
  readonly pricesOf: (model: Model) => ReadonlyArray<PriceLine>
  /** What no call of the model costs less than. */
  readonly leastOf: (model: Model) => Nano
  readonly mostOf: (asked: Asked) => Nano
  /** How many bytes its answer may be expected to have. */
  readonly answerBytesOf: (asked: Asked) => number
  /** What is wrong with an answer, for the log. */
  readonly faultIn: (asked: Asked) => (answer: Json) => string | undefined
  /** The answer with what was asked for and left out; `undefined` where it is as it was asked for. */
  readonly completed: (asked: Asked, answer: Json) => Json | undefined
  /** Whether an answer says how much it used. */
  readonly reports: (answer: Json) => boolean
  readonly measuredOf: (asked: Asked, provider: string, answer: Json) => Measured
}

export const singles = Effect.fnUntraced(function* <Model extends Routed, Asked extends Valid<Model>>(
  kind: Kind<Model, Asked>
) {
  const { long, models, protocol } = kind
  const gate = yield* Gate
  const upstreamOf = yield* speakerLookup(
    kind.noun,
    models.flatMap(({ id, routes }) => routes.map(({ upstream }) => ({ id, upstream }))),
    [protocol]
  )
  const versions = yield* PriceVersions

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
      request_id
    })
    const completed = kind.completed(asked, answer.body)
    const bytes = completed === undefined ? answer.bytes : Buffer.from(JSON.stringify(completed))
    room?.become(bytes.length)
    return yield* admission.answer(kind.measuredOf(asked, name, answer.body), (receipt): SingleAnswer => ({
      answer: completed ?? answer.body,
      bytes,
      receipt
    }))
  })

  const call = Effect.fnUntraced(function* (call: SingleCall<unknown>): Effect.fn.Return<SingleAnswer, SingleProblem> {
    const read = kind.askedOf(call.request)
    if (Either.isLeft(read)) return yield* read.left
    const asked = read.right
    const expected = Math.min(kind.answerBytesOf(asked), answerBytesMax)
    if (call.room?.take(expected) === false) return yield* new Busy({ retry_after: busyFor })
    const { model } = asked
    const most = kind.mostOf(asked)
    const claim = {
      caller: call.caller,
      usage_type: "inference",
      endpoint: protocol,
      model: model.id,
      provider: model.routes[0]!.upstream,
      price: yield* versions.of(kind.pricesOf(model)),
      most,
      least: most,
      beside: call.beside
    } as const
    return yield* gate.meter(claim, (admission) =>
      firstOf(model.routes, (route) => attempt(admission, asked, route, call))
    )
  })

  const costs = models.map(kind.leastOf)
  return { call, least: costs.reduce((least, cost) => (cost < least ? cost : least), costs[0] ?? 0n) }
})
