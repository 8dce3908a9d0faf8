/** Refusals of the mail route, and of routes that cause letters. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

/** The body does not name the account: the credential does. */
export class EmailNotVerified extends Problem<EmailNotVerified>()("EmailNotVerified", {
  status: 400,
  error: "the key's account has no verified email address to send to",
  code: "email_not_verified",
  fields: { account_id: Schema.optional(Schema.String) },
  details: {}
}) {}

/** Refused for good. A letter that is refused for now waits in the outbox. */
export class LetterRefused extends Problem<LetterRefused>()("LetterRefused", {
  status: 500,
  error: "the mail server refused the letter",
  code: "upstream_error"
}) {}

/** The account has caused as many letters as it may for now, or too many letters wait for its address. Nothing was done. */
export class TooManyLetters extends Problem<TooManyLetters>()("TooManyLetters", {
  status: 429,
  error: "you have caused too many letters, try again later",
  code: "too_many_letters"
}) {}

export class MailUnavailable extends Problem<MailUnavailable>()("MailUnavailable", {
  status: 503,
  error: "mail is unavailable: no mail server is configured here",
  code: "mail_unavailable"
}) {}
