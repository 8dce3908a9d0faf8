/** The embeddings endpoint and the list of embedding models. */
import { MeteredRefusal } from "../metered/Problems.ts"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example, Metered } from "../../http/contract/Documented.ts"
import { Fast, ReadsOwnBody, RefusalShape } from "../../http/contract/Annotations.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { EmbeddingAnswer, EmbeddingRequest } from "./Embedding.ts"

export const EmbeddingModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      object: Schema.Literal("model"),
      owned_by: Schema.String,
      name: Schema.String,
      description: Schema.String,
      /** The maximum length of an input, in tokens. */
      context_length: Schema.Int,
      /** Omitted if unknown. */
      dimensions: Schema.optional(Schema.Int),
      /** USD per token, as a decimal string. */
      pricing: Schema.Struct({ prompt: Schema.String })
    })
  )
}).annotations({ identifier: "EmbeddingModelList" })

export class EmbeddingsApi extends HttpApiGroup.make("embeddings")
  .add(
    HttpApiEndpoint.post("embed", "/v1/embeddings")
      .setPayload(EmbeddingRequest)
      .addSuccess(EmbeddingAnswer)
      .annotate(Fast, true)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { model: "sandbox-embedding", input: ["The tide is in.", "The tide is out."] } })
      .annotate(Metered, { charge_known: true })
      .annotate(OpenApi.Summary, "Create embeddings of texts or tokens, as numbers or base64")
  )
  .add(
    HttpApiEndpoint.get("embeddingModels", "/v1/embeddings/models")
      .addSuccess(EmbeddingModelList)
      .annotate(OpenApi.Summary, "List the embedding models with their prices")
  )
  .addError(MeteredRefusal)
  .annotate(RefusalShape, openAiRefusal)
  .middleware(KeyOrToken) {}
