/**
 * A number that grows whenever it changes who belongs where and who may spend whose credit: memberships, plans, the billing
 * settings, pins. What is remembered of these for the hot path is remembered with the number, and asked again when it has grown;
 * so a change holds at once in this process, and to look costs one comparison.
 */
import { Context, Effect, Layer } from "effect"

interface Contract {
  /** Not an effect: it is read before every call. */
  readonly version: () => number
  /** To be run after the commit of such a change. */
  readonly changed: Effect.Effect<void>
}

export class Belonging extends Context.Tag("tollgate/tenants/Belonging")<Belonging, Contract>() {
  static readonly layer = Layer.sync(Belonging, () => {
    let version = 0
    return { version: () => version, changed: Effect.sync(() => void version++) }
  })
}
