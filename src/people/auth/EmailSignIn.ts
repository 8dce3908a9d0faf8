/** Whether users may sign in by a link in a letter (`email_sign_in` in the configuration). Off by default. */
import { Context } from "effect"

export class EmailSignIn extends Context.Tag("tollgate/auth/EmailSignIn")<EmailSignIn, boolean>() {}
