/** Errors of the mail route and of other routes that send email. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

/** The credential's account has no verified address. The body does not name an account. */
export class EmailNotVerified extends Problem<EmailNotVerified>()("EmailNotVerified", {
  status: 400,
  error: "the key's account has no verified email address to send to",
  code: "email_not_verified",
  fields: { account_id: Schema.optional(Schema.String) },
  details: {}
}) {}

/** The mail server rejected the email permanently. After a temporary rejection, the email waits in the outbox. */
export class LetterRefused extends Problem<LetterRefused>()("LetterRefused", {
  status: 500,
  error: "the mail server rejected the email",
  code: "upstream_error"
}) {}

/** The account has reached its email limit, or its address has too many waiting emails. No email was queued. */
export class TooManyLetters extends Problem<TooManyLetters>()("TooManyLetters", {
  status: 429,
  error: "you have sent too many emails; try again later",
  code: "too_many_letters"
}) {}

export class MailUnavailable extends Problem<MailUnavailable>()("MailUnavailable", {
  status: 503,
  error: "mail is unavailable because no mail server is configured",
  code: "mail_unavailable"
}) {}
