/** The routes of embeddings: JSON to a request, the upstream's answer as it came. And the models. */
import { Effect, Either } from "effect"
import { Api } from "../Api.ts"
import { Gate } from "../gate/Gate.ts"
import type { Inbound } from "../http/Inbound.ts"
import { parse } from "../http/Json.ts"
import { openAiRefusal } from "../http/OpenAiRefusal.ts"
import { group, raw } from "../http/Raw.ts"
import type { Reply } from "../http/Reply.ts"
import { affordable } from "../idempotency/BeforeBody.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside } from "../idempotency/Idempotency.ts"
import type { Caller } from "../kernel/Caller.ts"
import { toDecimal as usdOf } from "../kernel/Money.ts"
import { toDecimal } from "../kernel/Price.ts"
import type { EmbeddingRequest } from "./Embedding.ts"
import { Embeddings } from "./Embeddings.ts"
import { EmbeddingModels } from "./Settings.ts"
import type { EmbeddingModel } from "./Settings.ts"

/** The longest request body. */
const bodyBytesMax = 8 * 1024 * 1024

/** `POST /v1/embeddings`. */
const embed = Effect.gen(function* () {
  const embeddings = yield* Embeddings
  const idempotency = yield* Idempotency
  const ifAffordable = affordable(yield* Gate, idempotency, [embeddings.least])

  const call = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
    const json = yield* inbound.read(bodyBytesMax)
    const parsed = parse(json)
    if (Either.isLeft(parsed)) return yield* parsed.left
    const request = parsed.right as EmbeddingRequest
    const { bytes, receipt } = yield* embeddings.embed({
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
      idempotency.onceOf(
        caller,
        inbound,
        "embeddings",
        bodyBytesMax,
        (inbound, beside) => call(caller, inbound, beside),
        undefined,
        openAiRefusal
      )
    )
})

const rowFor = ({ description, dimensions, id, input_tokens_max, name, owned_by, price }: EmbeddingModel) => ({
  id,
  object: "model" as const,
  owned_by,
  name,
  description,
  context_length: input_tokens_max,
  ...(dimensions !== undefined && { dimensions }),
  pricing: { prompt: toDecimal(price) }
})

export const EmbeddingsHttp = group(
  Api,
  "embeddings",
  Effect.fnUntraced(function* (handlers) {
    const data = (yield* EmbeddingModels).map(rowFor)
    return handlers
      .handleRaw("embed", raw(yield* embed))
      .handle("embeddingModels", () => Effect.succeed({ object: "list" as const, data }))
  })
)
