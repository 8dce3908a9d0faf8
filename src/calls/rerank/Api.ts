/** Endpoints that rerank documents, and the list of reranking models. */
import { MeteredRefusal } from "../metered/Problems.ts"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example, Metered } from "../../http/contract/Documented.ts"
import { Fast, ReadsOwnBody } from "../../http/contract/Annotations.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { RerankAnswer, RerankRequest } from "./Ranking.ts"

export const RerankModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      object: Schema.Literal("model"),
      owned_by: Schema.String,
      name: Schema.String,
      description: Schema.String,
      /** USD per token and per search, as decimal strings. */
      pricing: Schema.Struct({ prompt: Schema.String, search: Schema.String })
    })
  )
}).annotations({ identifier: "RerankModelList" })

const rerank = <const Name extends string>(name: Name, path: `/${string}`, summary: string) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(RerankRequest)
    .addSuccess(RerankAnswer)
    .annotate(Fast, true)
    .annotate(ReadsOwnBody, true)
    .annotate(Example, {
      body: {
        model: "sandbox-rerank",
        query: "When is high tide?",
        documents: ["The harbour opens at nine.", "High tide is at noon."],
        top_n: 1
      }
    })
    .annotate(Metered, { charge_known: true })
    .annotate(OpenApi.Summary, summary)

export class RerankApi extends HttpApiGroup.make("rerank")
  .add(rerank("rerank", "/v1/rerank", "Rank documents by relevance to a query (compatible with Cohere and Jina)"))
  .add(rerank("rerankV2", "/v2/rerank", "Rank documents by relevance to a query (compatible with Cohere's v2 API)"))
  .add(
    HttpApiEndpoint.get("rerankModels", "/v1/rerank/models")
      .addSuccess(RerankModelList)
      .annotate(OpenApi.Summary, "List the reranking models with their prices")
  )
  .addError(MeteredRefusal)
  .middleware(KeyOrToken) {}
