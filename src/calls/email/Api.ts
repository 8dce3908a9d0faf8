/** The endpoint that sends an email to the account's verified address. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Example, Metered } from "../../http/contract/Documented.ts"
import { GateRefusal } from "../../books/gate/Problems.ts"
import { ReadsOwnBody } from "../../http/contract/Annotations.ts"
import { BodyRefusal } from "../../http/contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ApiKey } from "../../people/credentials/Security.ts"
import { IdempotencyRefusal } from "../../http/idempotency/Problems.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { SelfLetter, SelfLetterSent } from "../../people/mail/Letter.ts"
import { EmailNotVerified, LetterRefused, MailUnavailable, TooManyLetters } from "../../people/mail/Problems.ts"

export class MailApi extends HttpApiGroup.make("mail")
  .add(
    HttpApiEndpoint.post("sendToSelf", "/v1/email/self/send")
      .setPayload(SelfLetter)
      .addSuccess(Envelope(SelfLetterSent))
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { subject: "The nightly report", body: "All is well." } })
      .annotate(Metered, { charge_known: true })
      .annotate(OpenApi.Summary, "Send an email to the verified address of the key's account")
  )
  .addError(InvalidRequest)
  .addError(BodyRefusal)
  .addError(EmailNotVerified)
  .addError(MailUnavailable)
  .addError(LetterRefused)
  .addError(TooManyLetters)
  .addError(GateRefusal)
  .addError(IdempotencyRefusal)
  .middleware(ApiKey) {}
