/** The operator who sent the current request. The middleware in `Security` provides it. */
import { Context } from "effect"
import type { SignedInOperator } from "./Operator.ts"

export class CurrentOperator extends Context.Tag("tollgate/operator/CurrentOperator")<
  CurrentOperator,
  SignedInOperator
>() {}
