/** Endpoints in Anthropic's Messages protocol. Errors also have that protocol's shape. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { GateRefusal } from "../../books/gate/Problems.ts"
import { Fast, ReadsOwnBody, RefusalShape } from "../../http/contract/Annotations.ts"
import { Example, Metered, Streams } from "../../http/contract/Documented.ts"
import { BodyRefusal } from "../../http/contract/Problems.ts"
import { KeyOrTokenEitherHeader } from "../../people/credentials/Security.ts"
import { IdempotencyRefusal } from "../../http/idempotency/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { UpstreamRefusal } from "../../upstream/wire/Problems.ts"
import { CountTokensRequest, MessagesRequest } from "../dialects/messages/Prompt.ts"
import { CountedTooOften } from "./Problems.ts"
import { messagesRefusal } from "./Refusal.ts"

const MessageAnswer = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message"),
  role: Schema.Literal("assistant"),
  model: Schema.String,
  content: Schema.Array(Schema.Struct({ type: Schema.String, text: Schema.optional(Schema.String) })),
  stop_reason: Schema.NullOr(Schema.String),
  stop_sequence: Schema.NullOr(Schema.String),
  usage: Schema.Struct({ input_tokens: Schema.Int, output_tokens: Schema.Int })
}).annotations({ identifier: "MessageAnswer" })

const TokenCount = Schema.Struct({ input_tokens: Schema.Int }).annotations({ identifier: "TokenCount" })

const EventStream = HttpApiSchema.Text({ contentType: "text/event-stream" })

const question = { model: "auto", messages: [{ role: "user", content: "Why is the sky blue?" }] }

export class MessagesApi extends HttpApiGroup.make("messages")
  .add(
    HttpApiEndpoint.post("create", "/v1/messages")
      .setPayload(MessagesRequest)
      .addSuccess(MessageAnswer)
      .addSuccess(EventStream)
      .addError(GateRefusal)
      .addError(IdempotencyRefusal)
      .annotate(Fast, true)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { ...question, max_tokens: 200 } })
      .annotate(Metered, { charge_known: true })
      .annotate(Streams, true)
      .annotate(
        OpenApi.Summary,
        "Create a message in Anthropic's protocol, optionally streamed; unknown fields are passed to the model unchanged"
      )
  )
  .add(
    HttpApiEndpoint.post("countTokens", "/v1/messages/count_tokens")
      .setPayload(CountTokensRequest)
      .addSuccess(TokenCount)
      .addError(GateRefusal)
      .addError(CountedTooOften)
      .annotate(Fast, true)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: question })
      .annotate(
        OpenApi.Summary,
        "Count a prompt's tokens for free: the model's vendor counts them, or the service estimates them from the bytes"
      )
  )
  .addError(InvalidRequest)
  .addError(BodyRefusal)
  .addError(UpstreamRefusal)
  .annotate(RefusalShape, messagesRefusal)
  .middleware(KeyOrTokenEitherHeader) {}
