/** Reranks documents. The first upstream that succeeds serves the call. The charge is per search, per token, or both. */
import { Context, Effect, Layer } from "effect"
import { singles } from "../embeddings/Single.ts"
import type { SingleAnswer, SingleCall, SingleProblem } from "../embeddings/Single.ts"
import type { Measured } from "../../books/gate/Gate.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import type { PriceLine } from "../../books/prices/Lines.ts"
import { chargeableCount } from "../../upstream/models/Reported.ts"
import { measuredOf } from "../metered/Measured.ts"
import {
  answerBytesOf,
  validate,
  faultIn,
  isIncomplete,
  longMembers,
  reportedAmounts,
  withDocuments
} from "./Ranking.ts"
import type { Amounts, ValidRequest, RerankFacts, RerankRequest } from "./Ranking.ts"
import { RerankModels } from "./Settings.ts"
import type { RerankModel } from "./Settings.ts"

export interface RerankCall extends SingleCall<RerankRequest> {}

/** A response: `{ results: [{ index, relevance_score }] }`. Its bytes are the upstream's unless the service had to add requested documents. */
export interface Reranked extends SingleAnswer {}

export type RerankProblem = SingleProblem

export interface RerankContract {
  /** Fails with `InvalidRequest` for an invalid request and with `UnknownModel`, a kind of `InvalidRequest`, for an unknown model. */
  readonly rerank: (call: RerankCall) => Effect.Effect<Reranked, RerankProblem>
  /** The price of the cheapest possible call, in nano-USD; 0 if a model is free or none is configured. */
  readonly least: Nano
}

export class Rerank extends Context.Tag("tollgate/rerank/Rerank")<Rerank, RerankContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Rerank, make))
}

const make = Effect.gen(function* () {
  const models = yield* RerankModels
  const { call, least } = yield* singles({
    protocol: "rerank",
    noun: "rerank model",
    models,
    long: "documents",
    longMembers,
    askedOf: (request, facts?: RerankFacts) => validate(models, request, facts),
    pricesOf: priceLines,
    leastOf: (model) => costOf(model, { tokens: 1, searches: 1 }),
    mostOf: ({ model, most }: ValidRequest) => costOf(model, most),
    tokensOf: ({ most }) => most.tokens,
    answerBytesOf,
    faultIn,
    isIncomplete,
    completed: ({ request }, answer) => withDocuments(answer, request.documents),
    completesFromRequest: true,
    reports: (answer) => Object.values(reportedAmounts(answer)).some((figure) => figure !== undefined),
    measuredOf: usedBy
  })
  return { rerank: call, least } satisfies RerankContract
})

const costOf = ({ search_price, token_price }: RerankModel, { searches, tokens }: Amounts): Nano =>
  charge([
    { units: tokens, price: token_price },
    { units: searches, price: search_price }
  ])

const priceLines = ({ search_price, token_price }: RerankModel): ReadonlyArray<PriceLine> => [
  ...(token_price === 0n ? [] : [{ quantity: "prompt_tokens", unit: "token", price: token_price } as const]),
  ...(search_price === 0n && token_price !== 0n
    ? []
    : [{ quantity: "units", unit: "search", price: search_price } as const])
]

/** Returns the call's usage, marked as estimated if a quantity with a price is not reported or not plausible. */
const usedBy = (
  { context, estimate, model, most }: ValidRequest,
  provider: string,
  answer: Readonly<Record<string, unknown>>
): Measured => {
  const figures = reportedAmounts(answer)
  const tokens = chargeableCount(figures.tokens, context, estimate.tokens)
  const searches = chargeableCount(figures.searches, most.searches, estimate.searches)
  const priced = [...(model.token_price === 0n ? [] : [tokens]), ...(model.search_price === 0n ? [] : [searches])]
  const bySearch = model.search_price !== 0n || model.token_price === 0n
  const cost = costOf(model, { tokens: tokens.count, searches: searches.count })
  return measuredOf(cost, bySearch ? searches.count : tokens.count, provider, {
    prompt_tokens: tokens.count,
    usage_source: priced.every(({ usage_source }) => usage_source === "provider") ? "provider" : "estimated"
  })
}
