/** Detects effects that already have a value. */
import type { Effect, Exit } from "effect"

/**
 * Returns whether an effect already has a value, as most lookups during a call do. Reading that value directly saves a fiber the steps of yielding
 * the effect.
 */
export const isDone = <A>(effect: Effect.Effect<A, unknown, unknown>): effect is Exit.Success<A, never> =>
  (effect as { readonly _tag?: unknown })._tag === "Success"
