/** The routes of reranking: JSON to a request, the upstream's answer as it came. And the models. */
import { Effect, Either } from "effect"
import { Api } from "../Api.ts"
import { Gate } from "../gate/Gate.ts"
import type { Inbound } from "../http/Inbound.ts"
import { parse } from "../http/Json.ts"
import { group, raw } from "../http/Raw.ts"
import type { Reply } from "../http/Reply.ts"
import { affordable } from "../idempotency/BeforeBody.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside } from "../idempotency/Idempotency.ts"
import type { Caller } from "../kernel/Caller.ts"
import { toDecimal as usdOf } from "../kernel/Money.ts"
import { toDecimal } from "../kernel/Price.ts"
import type { RerankRequest } from "./Ranking.ts"
import { Rerank } from "./Rerank.ts"
import { RerankModels } from "./Settings.ts"
import type { RerankModel } from "./Settings.ts"

/** The longest request body. */
const bodyBytesMax = 8 * 1024 * 1024

/** `POST /v1/rerank`. */
const rerank = Effect.gen(function* () {
  const ordering = yield* Rerank
  const idempotency = yield* Idempotency
  const ifAffordable = affordable(yield* Gate, idempotency, [ordering.least])

  const call = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
    const json = yield* inbound.read(bodyBytesMax)
    const parsed = parse(json)
    if (Either.isLeft(parsed)) return yield* parsed.left
    const request = parsed.right as RerankRequest
    const { bytes, receipt } = yield* ordering.rerank({
      caller,
      request,
      json,
      beside,
      request_id: inbound.request_id
    })
    return {
      status: 200,
      headers: { "content-type": "application/json", "x-charge-usd": usdOf(receipt.charged) },
      body: bytes
    } satisfies Reply
  })

  return (caller: Caller, inbound: Inbound) =>
    ifAffordable(
      caller,
      inbound,
      idempotency.onceOf(caller, inbound, "rerank", bodyBytesMax, (inbound, beside) => call(caller, inbound, beside))
    )
})

const rowFor = ({ description, id, name, owned_by, search_price, token_price }: RerankModel) => ({
  id,
  object: "model" as const,
  owned_by,
  name,
  description,
  pricing: { prompt: toDecimal(token_price), search: toDecimal(search_price) }
})

export const RerankHttp = group(
  Api,
  "rerank",
  Effect.fnUntraced(function* (handlers) {
    const data = (yield* RerankModels).map(rowFor)
    return handlers
      .handleRaw("rerank", raw(yield* rerank))
      .handle("rerankModels", () => Effect.succeed({ object: "list" as const, data }))
  })
)
