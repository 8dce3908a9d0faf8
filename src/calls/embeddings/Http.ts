import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { callable } from "../../http/lanes/Caller.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { group, raw } from "../../http/lanes/Raw.ts"
import { toDecimal } from "../../kernel/Price.ts"
import { EmbeddingsApi } from "./Api.ts"
import { Embeddings } from "./Embeddings.ts"
import { single } from "./Face.ts"
import { EmbeddingModels } from "./Settings.ts"
import type { EmbeddingModel } from "./Settings.ts"

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
  contract.add(EmbeddingsApi),
  "embeddings",
  Effect.fnUntraced(function* (handlers) {
    const { embed, least } = yield* Embeddings
    const models = (yield* EmbeddingModels).map(rowFor)
    return handlers
      .handleRaw("embed", raw(yield* single("embeddings", least, embed, openAiRefusal)))
      .handle("embeddingModels", () => Effect.map(callable(models), (data) => ({ object: "list" as const, data })))
  })
)
