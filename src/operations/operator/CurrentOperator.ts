/** The operator behind the current request, provided by the middleware in `Security`. */
import { Context } from "effect"
import type { SignedInOperator } from "./Operator.ts"

export class CurrentOperator extends Context.Tag("tollgate/operator/CurrentOperator")<
  CurrentOperator,
  SignedInOperator
>() {}
