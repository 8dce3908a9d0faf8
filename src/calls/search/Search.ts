/**
 * Searches the web and charges per query.
 *
 * Where the specification is silent:
 * - A search depth without a separate price is charged at the provider's maximum depth price. If no depth prices are configured, a Tavily query with
 *   depth `advanced` counts as two.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import type { Admission, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import { Busy, busyFor, noRoomForAnswer } from "../../kernel/Busy.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { Nano } from "../../kernel/Money.ts"
import { charge } from "../../kernel/Price.ts"
import { usualResponseBytes } from "../../kernel/Room.ts"
import type { Room } from "../../kernel/Room.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { tooLong } from "../../upstream/models/Failover.ts"
import { failed, isRefusal, readJson, refused } from "../../upstream/wire/Failures.ts"
import type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
import { vendorRequestOf } from "../../upstream/wire/Wire.ts"
import { pick } from "../../upstream/models/Provider.ts"
import type { UnknownProvider } from "../../upstream/models/Provider.ts"
import { upstreamLookup } from "../../upstream/models/Upstreams.ts"
import type { SearchAsk, SearchResult } from "../../upstream/search/SearchVendor.ts"
import { measuredOf } from "../metered/Measured.ts"
import { movable, parsedMax, readOnThread } from "../threads/BodyThreads.ts"
import type { ReadResultsTask, ResultsDone } from "./BodyTask.ts"
import { defaultDepth, priceOf, searchVendors } from "./Provider.ts"
import type { SearchQuery } from "./Query.ts"
import { SearchProviders } from "./Settings.ts"
import type { SearchProvider } from "./Settings.ts"

export interface SearchCall {
  readonly caller: Caller
  readonly query: SearchQuery
  /**
   * Memory for the response. If none is free, the call fails with `Busy` before the provider is called. If the response does not fit, the call is
   * charged and fails with `Busy`.
   */
  readonly room?: Room | undefined
  readonly request_id?: string | undefined
}

export interface SearchResults {
  readonly query: string
  readonly results: ReadonlyArray<SearchResult>
  /** The provider's id. */
  readonly provider: string
  readonly receipt: Receipt
}

export type SearchProblem = UnknownProvider | Busy | GateRefusal | UpstreamProblem

export interface SearchContract {
  /** Searches once, without retries, at the price of the query's depth. */
  readonly search: (call: SearchCall) => Effect.Effect<SearchResults, SearchProblem>
}

/** The maximum size of a vendor's response, in bytes. A call with a longer response fails with `UpstreamFailed` and is charged. */
const answerBytesMax = 8 * 1024 * 1024
/** Response members that can be long. */
const long = { names: new Set(["results"]), depth: 1 }

export class Search extends Context.Tag("tollgate/search/Search")<Search, SearchContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Search, make))
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const providers = yield* SearchProviders
  const upstreamOf = yield* upstreamLookup("search provider", providers)
  const versions = yield* PriceVersions

  const search: SearchContract["search"] = Effect.fnUntraced(function* (call) {
    const { caller, query, request_id, room } = call
    const provider = yield* pick(providers, query.provider)
    if (room?.reserve(usualResponseBytes) === false) return yield* new Busy({ retry_after: busyFor })
    const depth = query.search_depth || defaultDepth
    const price = priceOf(provider, depth)
    const cost = charge([{ units: 1, price }])
    const claim = {
      caller,
      usage_type: "tool",
      capability: "search",
      endpoint: "search",
      model: provider.id,
      provider: provider.id,
      price: yield* versions.of([{ quantity: "units", unit: "query", price }]),
      most: cost,
      least: cost,
      request_id
    } as const
    return yield* gate.meter(claim, (admission) =>
      ask(admission, provider, { ...query, search_depth: depth }, cost, call)
    )
  })

  const ask = Effect.fnUntraced(function* (
    admission: Admission,
    provider: SearchProvider,
    query: SearchAsk,
    cost: Nano,
    { caller: { account_id: account }, request_id, room }: SearchCall
  ) {
    const upstream = upstreamOf(provider.upstream)
    const vendor = searchVendors[provider.vendor]
    const request = vendor.request(query, Redacted.value(upstream.key))
    const answer = yield* Effect.catchAll(
      upstream.wire(admission).exchange(request, { limit: answerBytesMax, read_on: admission.to_its_end, room, long }),
      ({ reason }) => failed(upstream.name, reason, request_id)
    )
    admission.servedAs(vendorRequestOf(answer.headers))
    if (isRefusal(answer)) return yield* refused(upstream.name, answer, request_id)
    const measured = measuredOf(cost, 1, provider.id)
    if (answer.lost === "too_long") {
      yield* admission.settle({ ...measured, success: false, error_type: "upstream_error" })
      return yield* failed(upstream.name, tooLong, request_id)
    }
    const read = answer.lost === undefined ? yield* readResults(answer.body, provider, query, account) : undefined
    if (read === undefined) {
      yield* admission.settle({ ...measured, error_type: "busy" })
      return yield* new Busy({ message: noRoomForAnswer, retry_after: busyFor })
    }
    const { results } = read
    if (results === undefined) return yield* failed(upstream.name, "the response contains no results", request_id)
    return yield* admission.answer(measured, (receipt): SearchResults => ({
      query: query.query,
      results,
      provider: provider.id,
      receipt
    }))
  })

  return { search } satisfies SearchContract
})

/** Reads a response's first results. A separate thread reads a long response. Returns `undefined` if the response was lost. */
const readResults = (
  body: Buffer,
  { vendor }: SearchProvider,
  { max_results }: SearchAsk,
  account: string
): Effect.Effect<ResultsDone | undefined> => {
  if (body.length > parsedMax) {
    const task: ReadResultsTask = { how: "read_results", vendor, max_results, body: movable(body) }
    return readOnThread(task, account)
  }
  const json = readJson(body)
  const results = json && searchVendors[vendor].results(json.value)
  return Effect.succeed({ results: results?.slice(0, max_results) })
}
