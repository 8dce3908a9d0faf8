/** The valid client token of the current request. */
import { Context } from "effect"

export interface HeldClientTokenFacts {
  readonly hash: string
  readonly client_id: string
}

export class HeldClientToken extends Context.Tag("tollgate/contact/HeldClientToken")<
  HeldClientToken,
  HeldClientTokenFacts
>() {}
