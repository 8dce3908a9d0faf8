/** Objects that serve as keys of caches elsewhere, and are read again now and then. */

/**
 * Of two plain values (as JSON has them) that say the same the earlier, else the later. What knows the object by itself (the gate's facts,
 * the terms that crossed to the writer's thread) then does not remember it once more each time that it is read.
 */
export const earlier = <A>(before: A | undefined, now: A): A =>
  before !== undefined && JSON.stringify(before) === JSON.stringify(now) ? before : now
