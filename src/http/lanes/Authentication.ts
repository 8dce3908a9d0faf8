/** The ways of `Security` that need nothing of a request but its headers, for who serves without the platform's router. */
import { Context } from "effect"
import type { Effect } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"

/** A request's headers, by their names in lower case. */
export interface Headed {
  readonly header: (name: string) => string | undefined
}

/** Resolves the headers to a caller or a refusal, as of this call. */
export type Authenticate = (request: Headed) => Effect.Effect<Caller, ProblemInstance<string>>

/** How each way reads them, by the key of its middleware. */
export class Authentication extends Context.Tag("tollgate/http/Authentication")<
  Authentication,
  ReadonlyMap<string, Authenticate>
>() {}
