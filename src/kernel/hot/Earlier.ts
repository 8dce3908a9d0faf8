/** Keeps the identity of objects that are reloaded and serve as cache keys elsewhere. */

/**
 * Returns `before` if both values are equal as JSON, otherwise `now`. This keeps caches keyed by object identity (the gate's facts, the codec's
 * terms) from growing with each reload.
 */
export const earlier = <A>(before: A | undefined, now: A): A =>
  before !== undefined && JSON.stringify(before) === JSON.stringify(now) ? before : now
