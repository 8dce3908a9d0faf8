/** Web searches, each at the price of a query. */
import { Context, Effect, Layer, Redacted } from "effect"
import { Gate } from "../gate/Gate.ts"
import type { Admission } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { query } from "../http/Body.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { json } from "../http/Reply.ts"
import type { Reply } from "../http/Reply.ts"
import { toDecimal } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { failed, parse, refused } from "../upstream/Failures.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import { pick } from "../upstream/Provider.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import type { SearchAsk } from "../upstream/search/SearchVendor.ts"
import { defaultDepth, priceOf, SearchProviders, searchVendors } from "./Provider.ts"
import type { SearchProvider } from "./Provider.ts"
import { SearchQuery } from "./Query.ts"

export interface SearchContract {
  /** `GET /v1/search`. */
  readonly search: (
    caller: Caller,
    inbound: Inbound
  ) => Effect.Effect<Reply, InvalidRequest | InsufficientCredits | BooksUnavailable | UpstreamProblem>
}

const answerBytesMax = 32 * 1024 * 1024

export class Search extends Context.Tag("tollgate/search/Search")<Search, SearchContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Search, make))
}

const read = query(SearchQuery)

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const upstreams = yield* Upstreams
  const providers = yield* SearchProviders
  const versions = yield* PriceVersions

  const search: SearchContract["search"] = Effect.fnUntraced(function* (caller, inbound) {
    const asked = yield* read(inbound.query())
    const provider = yield* pick(providers, asked.provider)
    const depth = asked.search_depth || defaultDepth
    const price = priceOf(provider, depth)
    const cost = charge([{ units: 1, price }])
    const claim = {
      caller,
      usage_type: "tool",
      endpoint: "search",
      model: provider.id,
      provider: provider.id,
      price: yield* versions.of([{ quantity: "units", unit: "query", price }]),
      most: cost,
      least: cost
    } as const
    return yield* gate.meter(claim, (admission) =>
      ask(admission, provider, { ...asked, search_depth: depth }, cost, inbound)
    )
  })

  const ask = Effect.fnUntraced(function* (
    admission: Admission,
    provider: SearchProvider,
    asked: SearchAsk,
    cost: Nano,
    inbound: Inbound
  ) {
    const upstream = upstreams.get(provider.upstream)!
    const vendor = searchVendors[provider.vendor]
    const request = vendor.request(asked, Redacted.value(upstream.key))
    const answer = yield* Effect.catchAll(
      upstream.wire(admission).exchange(request, { limit: answerBytesMax }),
      ({ reason }) => failed(upstream.name, reason, inbound.request_id)
    )
    if (answer.status < 200 || answer.status > 299) return yield* refused(upstream.name, answer, inbound.request_id)
    const parsed = parse(answer.body)
    const results = parsed === undefined ? undefined : vendor.results(parsed)
    if (results === undefined) return yield* failed(upstream.name, "its answer holds no results", inbound.request_id)
    return yield* admission.answer(
      {
        cost,
        prompt_tokens: 0,
        completion_tokens: 0,
        units: 1,
        provider: provider.id,
        success: true,
        error_type: null,
        usage_source: "counted"
      },
      ({ charged }) =>
        json(
          200,
          { query: asked.query, results: results.slice(0, asked.max_results), provider: provider.id },
          { "x-charge-usd": toDecimal(charged) }
        )
    )
  })

  return { search } satisfies SearchContract
})
