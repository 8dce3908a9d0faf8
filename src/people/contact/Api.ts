/** Routes for a website's contact form: a token for a browser that is not signed in, and the single message that the token admits. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { ClientIdNotFound, ClientIdRequired } from "../auth/Problems.ts"
import { RateLimited } from "../../http/contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { ClientToken, ClientTokenRequest, ContactMessage } from "./Contact.ts"
import { ClientTokenOf } from "./Security.ts"

export class ContactApi extends HttpApiGroup.make("contact")
  .add(
    HttpApiEndpoint.post("clientToken", "/v1/web/client-token")
      .setPayload(ClientTokenRequest)
      .addSuccess(ClientToken)
      .addError(ClientIdRequired)
      .addError(ClientIdNotFound)
      .annotate(Example, { body: { service_client_id: "{service_client_id}" } })
      .annotate(OpenApi.Summary, "Get a token for one contact message, valid for 30 minutes")
  )
  .add(
    HttpApiEndpoint.post("contact", "/v1/web/contact")
      .setPayload(ContactMessage)
      .addSuccess(Envelope(Schema.Struct({ received: Schema.Literal(true) })))
      .middleware(ClientTokenOf)
      .annotate(Example, {
        body: { name: "Ada", email: "ada@example.com", inquiryType: "general", message: "How do I invite my team?" }
      })
      .annotate(OpenApi.Summary, "Send a message to the operator; the client token works once")
  )
  .addError(InvalidRequest)
  .addError(RateLimited) {}
