/** Whether people may sign in by a link in a letter: `email_sign_in` of the configuration; not by default. */
import { Context } from "effect"

export class EmailSignIn extends Context.Reference<EmailSignIn>()("tollgate/auth/EmailSignIn", {
  defaultValue: () => false as boolean
}) {}
