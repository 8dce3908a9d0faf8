/** The endpoint in OpenAI's Responses protocol. Errors also have that protocol's shape. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NotHandedOut } from "../prompts/Kept.ts"
import { Fast, ReadsOwnBody, RefusalShape, RefusesWebSocket } from "../../http/contract/Annotations.ts"
import { Example, Metered, Streams } from "../../http/contract/Documented.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { ResponsesRequest } from "../dialects/responses/Prompt.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { MeteredRefusal } from "../metered/Problems.ts"

const ResponseAnswer = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response"),
  created_at: Schema.Number,
  status: Schema.String,
  model: Schema.String,
  output: Schema.Array(Schema.Struct({ type: Schema.String, id: Schema.optional(Schema.String) })),
  usage: Schema.NullOr(Schema.Struct({ input_tokens: Schema.Int, output_tokens: Schema.Int, total_tokens: Schema.Int }))
}).annotations({ identifier: "ResponseAnswer" })

const EventStream = HttpApiSchema.Text({ contentType: "text/event-stream" })

export class ResponsesApi extends HttpApiGroup.make("responses")
  .add(
    HttpApiEndpoint.post("create", "/v1/responses")
      .setPayload(ResponsesRequest)
      .addSuccess(ResponseAnswer)
      .addSuccess(EventStream)
      .annotate(Fast, true)
      .annotate(ReadsOwnBody, true)
      .annotate(RefusesWebSocket, true)
      .annotate(Example, { body: { model: "auto", input: "Why is the sky blue?", max_output_tokens: 200 } })
      .annotate(Metered, { charge_known: true })
      .annotate(Streams, true)
      .annotate(
        OpenApi.Summary,
        "Create a response in OpenAI's newer protocol, optionally streamed; unknown fields are passed to the model unchanged"
      )
  )
  .addError(MeteredRefusal)
  .addError(NotHandedOut)
  .annotate(RefusalShape, openAiRefusal)
  .middleware(KeyOrToken) {}
