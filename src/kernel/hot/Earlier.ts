/** Stable identity for objects that are reloaded and serve as cache keys elsewhere. */

/**
 * Returns `before` if both are equal as JSON, otherwise `now`. Caches keyed by object identity (the gate's facts, the codec's terms) then do not grow
 * with each reload.
 */
export const earlier = <A>(before: A | undefined, now: A): A =>
  before !== undefined && JSON.stringify(before) === JSON.stringify(now) ? before : now
