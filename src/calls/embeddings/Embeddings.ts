/** Creates embeddings for OpenAI's embeddings route. The first upstream that succeeds serves the call. The charge is per input token. */
import { Context, Effect, Layer } from "effect"
import type { Measured } from "../../books/gate/Gate.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import { chargeableCount } from "../../upstream/models/Reported.ts"
import { measuredOf } from "../metered/Measured.ts"
import { answerBytesOf, validate, encoded, faultIn, isIncomplete, longMembers, tokensReported } from "./Embedding.ts"
import type { ValidRequest, EmbeddingFacts, EmbeddingRequest } from "./Embedding.ts"
import { EmbeddingModels } from "./Settings.ts"
import type { EmbeddingModel } from "./Settings.ts"
import { singles } from "./Single.ts"
import type { SingleAnswer, SingleCall, SingleProblem } from "./Single.ts"

export interface EmbeddingCall extends SingleCall<EmbeddingRequest> {}

/** A response: `{ data: [{ index, embedding }], model, usage }`. Its bytes are the upstream's unless embeddings were converted to base64. */
export interface Embedded extends SingleAnswer {}

export type EmbeddingProblem = SingleProblem

export interface EmbeddingsContract {
  /** Fails with `InvalidRequest` for an invalid request and with `UnknownModel`, a kind of `InvalidRequest`, for an unknown model. */
  readonly embed: (call: EmbeddingCall) => Effect.Effect<Embedded, EmbeddingProblem>
  /** The price of the cheapest possible call, in nano-USD; 0 if a model is free or none is configured. */
  readonly least: Nano
}

export class Embeddings extends Context.Tag("tollgate/embeddings/Embeddings")<Embeddings, EmbeddingsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Embeddings, make))
}

const make = Effect.gen(function* () {
  const models = yield* EmbeddingModels
  const { call, least } = yield* singles({
    protocol: "embeddings",
    noun: "embedding model",
    models,
    long: "input",
    longMembers,
    askedOf: (request, facts?: EmbeddingFacts) => validate(models, request, facts),
    pricesOf: ({ price }) => [{ quantity: "prompt_tokens", unit: "token", price }],
    leastOf: (model) => costOf(model, 1),
    mostOf: ({ model, most }: ValidRequest) => costOf(model, most),
    tokensOf: ({ most }) => most,
    answerBytesOf,
    faultIn,
    isIncomplete,
    completed: (_, answer) => encoded(answer),
    completesFromRequest: false,
    reports: (answer) => tokensReported(answer) !== undefined,
    measuredOf: usedBy
  })
  return { embed: call, least } satisfies EmbeddingsContract
})

const costOf = ({ price }: EmbeddingModel, tokens: number): Nano => charge([{ units: tokens, price }])

const usedBy = (
  { context, estimate, model }: ValidRequest,
  provider: string,
  answer: Readonly<Record<string, unknown>>
): Measured => {
  const { count, usage_source } = chargeableCount(tokensReported(answer), context, estimate)
  return measuredOf(costOf(model, count), count, provider, { prompt_tokens: count, usage_source })
}
