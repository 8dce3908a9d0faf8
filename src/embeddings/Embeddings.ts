/** Embeddings over OpenAI's route, from the first upstream of a model that answers, at the model's price of an input token. */
import { Context, Effect, Either, Layer } from "effect"
import { written } from "../chat/Outgoing.ts"
import { Gate } from "../gate/Gate.ts"
import type { Admission, Claim, Measured, Receipt } from "../gate/Gate.ts"
import type { GateRefusal } from "../gate/Problems.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { InvalidRequest } from "../kernel/InvalidRequest.ts"
import type { Nano } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { ask, firstOf } from "../upstream/Failover.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import { believed } from "../upstream/Reported.ts"
import { upstreamLookup } from "../upstream/Upstreams.ts"
import { askedOf, encoded, faultIn, tokensReported } from "./Embedding.ts"
import type { Asked, EmbeddingRequest } from "./Embedding.ts"
import { EmbeddingModels } from "./Settings.ts"
import type { EmbeddingModel } from "./Settings.ts"

/** Inputs that are to be embedded. */
export interface EmbeddingCall {
  readonly caller: Caller
  readonly request: EmbeddingRequest
  /** The request's JSON, where the caller has it: a long input is then copied from it, and not written again. */
  readonly json?: Buffer | undefined
  /** Statements that stand or fall with the admission of the call. */
  readonly beside?: Claim["beside"]
  /** Names the call in the log. */
  readonly request_id?: string | undefined
}

/** The upstream's answer: `{ data: [{ index, embedding }], model, usage }`. */
export interface Embedded {
  readonly answer: Readonly<Record<string, unknown>>
  /** The same, byte for byte as it came, but where base64 was asked for and numbers came. */
  readonly bytes: Buffer
  readonly receipt: Receipt
}

export type EmbeddingProblem = InvalidRequest | GateRefusal | UpstreamProblem

export interface EmbeddingsContract {
  /** A request that is not valid is an `InvalidRequest`, one for a model that there is not an `UnknownModel`. */
  readonly embed: (call: EmbeddingCall) => Effect.Effect<Embedded, EmbeddingProblem>
  /** No call costs less; 0 where a model is free. */
  readonly least: Nano
}

export class Embeddings extends Context.Tag("tollgate/embeddings/Embeddings")<Embeddings, EmbeddingsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Embeddings, make))
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const models = yield* EmbeddingModels
  const upstreamOf = yield* upstreamLookup(
    "embedding model",
    models.flatMap(({ id, routes }) => routes.map(({ upstream }) => ({ id, upstream })))
  )
  const versions = yield* PriceVersions

  const embed: EmbeddingsContract["embed"] = Effect.fnUntraced(function* (call) {
    const read = askedOf(models, call.request)
    if (Either.isLeft(read)) return yield* read.left
    const asked = read.right
    const { model } = asked
    const most = costOf(model, asked.most)
    const claim = {
      caller: call.caller,
      usage_type: "inference",
      endpoint: "embeddings",
      model: model.id,
      provider: model.routes[0]!.upstream,
      price: yield* versions.of([{ quantity: "prompt_tokens", unit: "token", price: model.price }]),
      most,
      least: most,
      beside: call.beside
    } as const
    return yield* gate.meter(claim, (admission) =>
      firstOf(model.routes, (route) => attempt(admission, asked, route, call))
    )
  })

  const attempt = Effect.fnUntraced(function* (
    admission: Admission,
    asked: Asked,
    { model, upstream: name }: EmbeddingModel["routes"][number],
    { json, request_id }: EmbeddingCall
  ) {
    const upstream = upstreamOf(name)
    const answer = yield* ask(upstream, admission, {
      path: "/embeddings",
      body: written({ ...asked.request, model }, "input", json),
      faultIn: faultIn(asked),
      request_id
    })
    const recoded = encoded(asked, answer.body)
    const measured = measuredOf(asked, name, tokensReported(answer.body))
    return yield* admission.answer(measured, (receipt): Embedded => ({
      answer: recoded ?? answer.body,
      bytes: recoded === undefined ? answer.bytes : Buffer.from(JSON.stringify(recoded)),
      receipt
    }))
  })

  const costs = models.map((model) => costOf(model, 1))
  return {
    embed,
    least: costs.reduce((least, cost) => (cost < least ? cost : least), costs[0] ?? 0n)
  } satisfies EmbeddingsContract
})

const costOf = ({ price }: EmbeddingModel, tokens: number): Nano => charge([{ units: tokens, price }])

const measuredOf = ({ estimate, model, most }: Asked, provider: string, reported: unknown): Measured => {
  const { count, usage_source } = believed(reported, most, estimate)
  return {
    cost: costOf(model, count),
    prompt_tokens: count,
    completion_tokens: 0,
    units: count,
    provider,
    success: true,
    error_type: null,
    usage_source
  }
}
