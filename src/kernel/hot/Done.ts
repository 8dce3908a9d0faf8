/** Effects that are already a value. */
import type { Effect, Exit } from "effect"

/** Whether an effect is a value, like most of a call's lookups. Reading the value directly saves the fiber steps of yielding it. */
export const isDone = <A>(effect: Effect.Effect<A, unknown, unknown>): effect is Exit.Success<A, never> =>
  (effect as { readonly _tag?: unknown })._tag === "Success"
