/** Detects effects that are already a value. */
import type { Effect, Exit } from "effect"

/** Whether an effect is already a value, which most lookups of a call are. Reading the value directly saves the fiber the steps of yielding it. */
export const isDone = <A>(effect: Effect.Effect<A, unknown, unknown>): effect is Exit.Success<A, never> =>
  (effect as { readonly _tag?: unknown })._tag === "Success"
