/** Chat and text completions, and the models that serve them. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { GateRefusal } from "../gate/Problems.ts"
import { ReadsOwnBody } from "../http/Frame.ts"
import { BodyRefusal, InvalidRequest } from "../http/Problems.ts"
import { Either } from "../http/Security.ts"
import { IdempotencyRefusal } from "../idempotency/Problems.ts"
import { UpstreamRefusal } from "../upstream/Problems.ts"
import { ChatRequest, CompletionRequest } from "./Prompt.ts"

/** USD a token as a decimal text; `-1` where the price depends on the model that is chosen. */
export const ModelEntry = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  name: Schema.String,
  description: Schema.String,
  context_length: Schema.Int,
  pricing: Schema.Struct({ prompt: Schema.String, completion: Schema.String })
}).annotations({ identifier: "ModelEntry" })

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
      .annotate(ReadsOwnBody, true)
      .annotate(OpenApi.Summary, "Chat completion, streamed or not; fields unknown here pass through to the model")
  )
  .add(
    HttpApiEndpoint.post("completion", "/v1/completions")
      .setPayload(CompletionRequest)
      .addSuccess(CompletionAnswer)
      .addSuccess(EventStream)
      .annotate(ReadsOwnBody, true)
      .annotate(OpenApi.Summary, "Text completion (legacy), streamed or not")
  )
  .add(HttpApiEndpoint.get("models", "/v1/models").addSuccess(ModelList))
  .addError(InvalidRequest)
  .addError(BodyRefusal)
  .addError(GateRefusal)
  .addError(IdempotencyRefusal)
  .addError(UpstreamRefusal)
  .middleware(Either) {}
