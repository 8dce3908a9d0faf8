/** The operator of the current request. The middleware of `Security` provides it. */
import { Context } from "effect"
import type { SignedInOperator } from "./Operator.ts"

export class CurrentOperator extends Context.Tag("tollgate/operator/CurrentOperator")<
  CurrentOperator,
  SignedInOperator
>() {}
