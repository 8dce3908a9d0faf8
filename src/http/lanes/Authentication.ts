/** The authentication methods of `Security`. They need only a request's headers and therefore work without the platform's router. */
import { Context } from "effect"
import type { Effect } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"

/** A request's headers, by lower-case name. */
export interface Headed {
  readonly header: (name: string) => string | undefined
}

/** Resolves the headers to the current caller or a refusal. */
export type Authenticate = (request: Headed) => Effect.Effect<Caller, ProblemInstance<string>>

/** The authentication method of each security middleware, by the middleware's key. */
export class Authentication extends Context.Tag("tollgate/http/Authentication")<
  Authentication,
  ReadonlyMap<string, Authenticate>
>() {}
