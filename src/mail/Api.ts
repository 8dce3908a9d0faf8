/** Mail to oneself. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Example, Metered } from "../http/Documented.ts"
import { GateRefusal } from "../gate/Problems.ts"
import { ReadsOwnBody } from "../http/Annotations.ts"
import { BodyRefusal } from "../http/Problems.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { ApiKey } from "../http/Security.ts"
import { IdempotencyRefusal } from "../idempotency/Problems.ts"
import { Envelope } from "../kernel/Envelope.ts"
import { SelfLetter, SelfLetterSent } from "./Letter.ts"
import { EmailNotVerified, LetterRefused, MailUnavailable } from "./Problems.ts"

export class MailApi extends HttpApiGroup.make("mail")
  .add(
    HttpApiEndpoint.post("sendToSelf", "/v1/email/self/send")
      .setPayload(SelfLetter)
      .addSuccess(Envelope(SelfLetterSent))
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { subject: "The nightly report", body: "All is well." } })
      .annotate(Metered, { charge_known: true })
      .annotate(OpenApi.Summary, "Send a letter to the verified address of the key's account")
  )
  .addError(InvalidRequest)
  .addError(BodyRefusal)
  .addError(EmailNotVerified)
  .addError(MailUnavailable)
  .addError(LetterRefused)
  .addError(GateRefusal)
  .addError(IdempotencyRefusal)
  .middleware(ApiKey) {}
