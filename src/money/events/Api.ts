/** The route for a tenant's live events: calls, the balance and the user's notifications. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NoHead } from "../../http/contract/Annotations.ts"
import { CallsToken } from "../../people/credentials/Security.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { StreamsBusy, TooManyStreams } from "./Problems.ts"

export class EventsApi extends HttpApiGroup.make("events").add(
  HttpApiEndpoint.get("events", "/v1/events")
    .setUrlParams(
      Schema.Struct({
        cursor: Schema.optional(
          Schema.String.annotations({ description: "The id of the last event received; the stream continues after it" })
        )
      })
    )
    .setHeaders(
      Schema.Struct({
        "last-event-id": Schema.optional(
          Schema.String.annotations({
            description: "The id of the last event received; takes precedence over `cursor`"
          })
        )
      })
    )
    .addSuccess(HttpApiSchema.Text({ contentType: "text/event-stream" }))
    .addError(InvalidRequest)
    .addError(TooManyStreams)
    .addError(StreamsBusy)
    .middleware(CallsToken)
    .annotate(NoHead, true)
    .annotate(
      OpenApi.Summary,
      "Stream server-sent events for the token's tenant: `ready`, `call` (a row of `usage`), `balance` (as `billing/credits`), `notification` " +
        "(a row of `notifications`; only for the user's own sign-in), `reset` (more than 1,000 calls were missed: read them again), and " +
        "`end` (always the last event) with a reason. To continue after an event, send its id"
    )
) {}
