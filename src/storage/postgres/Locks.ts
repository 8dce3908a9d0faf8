/**
 * The numbers of the advisory locks in a PostgreSQL database, in one list to keep them distinct. Nodes of two versions may run together, so a number
 * never changes its meaning.
 */

/** Held during a migration. */
export const migration = 7_062_516_340

/** Held by a batch with statements of rooms, until it commits. */
export const statements = 7_062_516_341

/** Held by the leader while it leads. */
export const leader = 7_062_516_342

/** Held while indexes are built. A migration also holds it until it commits, because a table change would wait for the table's index. */
export const indexes = 7_062_516_343

/** Held while a database is the target of a copy. */
export const copy = 7_062_516_350
