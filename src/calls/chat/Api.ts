/** Endpoints for chat and text completions, and for the models that serve them. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example, Metered, Streams } from "../../http/contract/Documented.ts"
import { Fast, ReadsOwnBody } from "../../http/contract/Annotations.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { ModelNotFound } from "../prompts/Problems.ts"
import { ChatRequest, CompletionRequest } from "../prompts/Prompt.ts"
import { MeteredRefusal } from "../metered/Problems.ts"

const Usd = Schema.optionalWith(Schema.String, { exact: true })

/** Prices of separately billed tokens, under the names that clients expect. A missing field means the ordinary price. */
const details = {
  input_audio_cache_read: Usd,
  input_cache_read: Usd,
  input_cache_write: Usd,
  input_cache_write_1h: Usd,
  internal_reasoning: Usd,
  audio: Usd,
  image: Usd,
  audio_output: Usd,
  image_output: Usd
}

/** USD per token and per request, as decimal strings. `-1` means that the price depends on the chosen model. */
const Pricing = Schema.Struct({
  prompt: Schema.String,
  completion: Schema.String,
  request: Schema.String,
  ...details,
  /** Prices of calls with longer prompts. They apply to all tokens of the call. A missing field means the base price. */
  long_context: Schema.optionalWith(
    Schema.Array(Schema.Struct({ above_prompt_tokens: Schema.Int, prompt: Usd, completion: Usd, ...details })),
    { exact: true }
  )
})

/** A request field that changes a call's price. */
const ModelExtra = Schema.Struct({
  field: Schema.String,
  /** The allowed values or tool types. A missing field means that all are allowed. */
  values: Schema.optional(Schema.Array(Schema.String)),
  /** The multiplier of the ordinary price, as a decimal string. */
  price_factor: Schema.String,
  /** USD added to a call's price if it uses the field, as a decimal string. */
  request: Schema.String
})

const ClientProtocol = Schema.Literal("chat", "text", "messages", "responses")

export const ModelEntry = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Schema.Int,
  owned_by: Schema.String,
  name: Schema.String,
  description: Schema.String,
  context_length: Schema.Int,
  architecture: Schema.Struct({
    input_modalities: Schema.Array(Schema.String),
    output_modalities: Schema.Array(Schema.String)
  }),
  top_provider: Schema.Struct({ context_length: Schema.Int, max_completion_tokens: Schema.Int }),
  pricing: Pricing,
  /** The client protocols that can be used to call the model. */
  protocols: Schema.Array(ClientProtocol),
  /** The protocols of the model's first upstream. Requests in other protocols are translated. */
  native_protocols: Schema.Array(ClientProtocol),
  extras: Schema.optional(Schema.Array(ModelExtra))
}).annotations({ identifier: "ModelEntry" })
export type ModelEntry = typeof ModelEntry.Type

export const ModelList = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(ModelEntry) }).annotations({
  identifier: "ModelList"
})

const Usage = Schema.Struct({
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int
})

const answer = <A, I>(choice: Schema.Schema<A, I>, object: string) =>
  Schema.Struct({
    id: Schema.String,
    object: Schema.Literal(object),
    created: Schema.Int,
    model: Schema.String,
    choices: Schema.Array(choice),
    usage: Schema.optional(Usage)
  })

const ChatAnswer = answer(
  Schema.Struct({
    index: Schema.Int,
    message: Schema.Struct({ role: Schema.String, content: Schema.NullOr(Schema.String) }),
    finish_reason: Schema.String
  }),
  "chat.completion"
).annotations({ identifier: "ChatAnswer" })

const CompletionAnswer = answer(
  Schema.Struct({ text: Schema.String, index: Schema.Int, finish_reason: Schema.String }),
  "text_completion"
).annotations({ identifier: "CompletionAnswer" })

const EventStream = HttpApiSchema.Text({ contentType: "text/event-stream" })

export class ChatApi extends HttpApiGroup.make("chat")
  .add(
    HttpApiEndpoint.post("chat", "/v1/chat/completions")
      .setPayload(ChatRequest)
      .addSuccess(ChatAnswer)
      .addSuccess(EventStream)
      .annotate(Fast, true)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, {
        body: { model: "auto", messages: [{ role: "user", content: "Why is the sky blue?" }], max_tokens: 200 }
      })
      .annotate(Metered, { charge_known: true })
      .annotate(Streams, true)
      .annotate(
        OpenApi.Summary,
        "Create a chat completion, optionally streamed; unknown fields are passed to the model unchanged"
      )
  )
  .add(
    HttpApiEndpoint.post("completion", "/v1/completions")
      .setPayload(CompletionRequest)
      .addSuccess(CompletionAnswer)
      .addSuccess(EventStream)
      .annotate(Fast, true)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { model: "auto", prompt: "The sky is blue because", max_tokens: 200 } })
      .annotate(Metered, { charge_known: true })
      .annotate(Streams, true)
      .annotate(OpenApi.Summary, "Create a text completion (legacy), optionally streamed")
  )
  .add(
    HttpApiEndpoint.get("models", "/v1/models")
      .addSuccess(ModelList)
      .annotate(OpenApi.Summary, "List the models with their prices")
  )
  .add(
    HttpApiEndpoint.get("model", "/v1/models/:id")
      .setPath(Schema.Struct({ id: Schema.String }))
      .addSuccess(ModelEntry)
      .addError(ModelNotFound)
      .annotate(OpenApi.Summary, "Get one model with its prices")
  )
  .add(
    // Serves `model` for ids that contain unescaped slashes.
    HttpApiEndpoint.get("modelBelow", "/v1/models/*")
      .setPath(Schema.Struct({ "*": Schema.String }))
      .addSuccess(ModelEntry)
      .addError(ModelNotFound)
      .annotate(OpenApi.Exclude, true)
  )
  .addError(MeteredRefusal)
  .middleware(KeyOrToken) {}
