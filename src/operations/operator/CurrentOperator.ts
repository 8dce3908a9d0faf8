/** The operator of the current request, as its credential says; provided by the middleware of `Security`. */
import { Context } from "effect"
import type { SignedInOperator } from "./Operator.ts"

export class CurrentOperator extends Context.Tag("tollgate/operator/CurrentOperator")<
  CurrentOperator,
  SignedInOperator
>() {}
