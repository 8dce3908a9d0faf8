/** What the mail route refuses. */
import { Problem } from "../kernel/Problem.ts"

export class EmailNotVerified extends Problem<EmailNotVerified>()("EmailNotVerified", {
  status: 400,
  error: "the key's account has no verified email address to send to",
  code: "email_not_verified"
}) {}

export class MailUnavailable extends Problem<MailUnavailable>()("MailUnavailable", {
  status: 503,
  error: "mail is unavailable: no mail server is configured here",
  code: "mail_unavailable"
}) {}
