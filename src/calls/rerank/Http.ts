import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { single } from "../embeddings/Face.ts"
import { callable } from "../../http/lanes/Caller.ts"
import { group, raw } from "../../http/lanes/Raw.ts"
import { toDecimal } from "../../kernel/Price.ts"
import { RerankApi } from "./Api.ts"
import { Rerank } from "./Rerank.ts"
import { RerankModels } from "./Settings.ts"
import type { RerankModel } from "./Settings.ts"

const rowFor = ({ description, id, name, owned_by, search_price, token_price }: RerankModel) => ({
  id,
  object: "model" as const,
  owned_by,
  name,
  description,
  pricing: { prompt: toDecimal(token_price), search: toDecimal(search_price) }
})

export const RerankHttp = group(
  contract.add(RerankApi),
  "rerank",
  Effect.fnUntraced(function* (handlers) {
    const { least, rerank } = yield* Rerank
    const models = (yield* RerankModels).map(rowFor)
    const ordered = raw(yield* single("rerank", least, rerank))
    return handlers
      .handleRaw("rerank", ordered)
      .handleRaw("rerankV2", ordered)
      .handle("rerankModels", () => Effect.map(callable(models), (data) => ({ object: "list" as const, data })))
  })
)
