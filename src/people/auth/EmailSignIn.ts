/** Whether users may sign in with a link from an email (`email_sign_in` in the configuration). Off by default. */
import { Context } from "effect"

export class EmailSignIn extends Context.Tag("tollgate/auth/EmailSignIn")<EmailSignIn, boolean>() {}
