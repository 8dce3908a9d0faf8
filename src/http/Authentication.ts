/** The ways of `Security` that need nothing of a request but its `Authorization` header, for who serves without the platform's router. */
import { Context } from "effect"
import type { Effect } from "effect"
import type { Caller } from "../kernel/Caller.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"

/** From the header to who calls, or why nobody does. */
export type Authenticate = (authorization: string | undefined) => Effect.Effect<Caller, ProblemInstance<string>>

/** How each way reads the header, by the key of its middleware. */
export class Authentication extends Context.Tag("tollgate/http/Authentication")<
  Authentication,
  ReadonlyMap<string, Authenticate>
>() {}
