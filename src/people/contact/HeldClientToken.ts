/** The client token of a request: it is still good, and the website's that it was given to. */
import { Context } from "effect"

export interface HeldClientTokenFacts {
  readonly hash: string
  readonly client_id: string
}

export class HeldClientToken extends Context.Tag("tollgate/contact/HeldClientToken")<
  HeldClientToken,
  HeldClientTokenFacts
>() {}
