/** Effects that have their value already. */
import type { Effect, Exit } from "effect"

/**
 * Whether an effect is a value. What every call looks up mostly is, and who takes it as it is saves the steps of a fiber that it takes to
 * yield it.
 */
export const isDone = <A>(effect: Effect.Effect<A, unknown, unknown>): effect is Exit.Success<A, never> =>
  (effect as { readonly _tag?: unknown })._tag === "Success"
