/** Documents ordered by a query, by the first upstream of a model that answers, at the model's price of a search, of a token, or of both. */
import { Context, Effect, Either, Layer } from "effect"
import { written } from "../chat/Outgoing.ts"
import { Gate } from "../gate/Gate.ts"
import type { Admission, Claim, Measured, Receipt } from "../gate/Gate.ts"
import type { GateRefusal } from "../gate/Problems.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { InvalidRequest } from "../kernel/InvalidRequest.ts"
import type { Nano } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import type { PriceLine } from "../prices/Lines.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { ask, firstOf } from "../upstream/Failover.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import { believed } from "../upstream/Reported.ts"
import { upstreamLookup } from "../upstream/Upstreams.ts"
import { askedOf, faultIn, reported, withDocuments } from "./Ranking.ts"
import type { Amounts, Asked, RerankRequest } from "./Ranking.ts"
import { RerankModels } from "./Settings.ts"
import type { RerankModel } from "./Settings.ts"

/** Documents that are to be ordered. */
export interface RerankCall {
  readonly caller: Caller
  readonly request: RerankRequest
  /** The request's JSON, where the caller has it: long documents are then copied from it, and not written again. */
  readonly json?: Buffer | undefined
  /** Statements that stand or fall with the admission of the call. */
  readonly beside?: Claim["beside"]
  /** Names the call in the log. */
  readonly request_id?: string | undefined
}

/** The upstream's answer: `{ results: [{ index, relevance_score }] }`. */
export interface Reranked {
  readonly answer: Readonly<Record<string, unknown>>
  /** The same, byte for byte as it came, but where documents were asked for and left out. */
  readonly bytes: Buffer
  readonly receipt: Receipt
}

export type RerankProblem = InvalidRequest | GateRefusal | UpstreamProblem

export interface RerankContract {
  /** A request that is not valid is an `InvalidRequest`, one for a model that there is not an `UnknownModel`. */
  readonly rerank: (call: RerankCall) => Effect.Effect<Reranked, RerankProblem>
  /** No call costs less; 0 where a model is free. */
  readonly least: Nano
}

export class Rerank extends Context.Tag("tollgate/rerank/Rerank")<Rerank, RerankContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Rerank, make))
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const models = yield* RerankModels
  const upstreamOf = yield* upstreamLookup(
    "rerank model",
    models.flatMap(({ id, routes }) => routes.map(({ upstream }) => ({ id, upstream })))
  )
  const versions = yield* PriceVersions

  const rerank: RerankContract["rerank"] = Effect.fnUntraced(function* (call) {
    const read = askedOf(models, call.request)
    if (Either.isLeft(read)) return yield* read.left
    const asked = read.right
    const { model } = asked
    const most = costOf(model, asked.most)
    const claim = {
      caller: call.caller,
      usage_type: "inference",
      endpoint: "rerank",
      model: model.id,
      provider: model.routes[0]!.upstream,
      price: yield* versions.of(priceLines(model)),
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
    { model, upstream: name }: RerankModel["routes"][number],
    { json, request_id }: RerankCall
  ) {
    const upstream = upstreamOf(name)
    const answer = yield* ask(upstream, admission, {
      path: "/rerank",
      body: written({ ...asked.request, model }, "documents", json),
      faultIn: faultIn(asked),
      request_id
    })
    const completed = withDocuments(asked, answer.body)
    return yield* admission.answer(measuredOf(asked, name, reported(answer.body)), (receipt): Reranked => ({
      answer: completed ?? answer.body,
      bytes: completed === undefined ? answer.bytes : Buffer.from(JSON.stringify(completed)),
      receipt
    }))
  })

  const costs = models.map((model) => costOf(model, { tokens: 1, searches: 1 }))
  return {
    rerank,
    least: costs.reduce((least, cost) => (cost < least ? cost : least), costs[0] ?? 0n)
  } satisfies RerankContract
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

/** What is not priced need not be known: it is no reason to call a figure estimated. */
const measuredOf = (
  { estimate, model, most }: Asked,
  provider: string,
  figures: Readonly<Record<keyof Amounts, unknown>>
): Measured => {
  const tokens = believed(figures.tokens, most.tokens, estimate.tokens)
  const searches = believed(figures.searches, most.searches, estimate.searches)
  const priced = [...(model.token_price === 0n ? [] : [tokens]), ...(model.search_price === 0n ? [] : [searches])]
  const bySearch = model.search_price !== 0n || model.token_price === 0n
  return {
    cost: costOf(model, { tokens: tokens.count, searches: searches.count }),
    prompt_tokens: tokens.count,
    completion_tokens: 0,
    units: bySearch ? searches.count : tokens.count,
    provider,
    success: true,
    error_type: null,
    usage_source: priced.every(({ usage_source }) => usage_source === "provider") ? "provider" : "estimated"
  }
}
