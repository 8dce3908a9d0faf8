/**
 * The numbers of the advisory locks that are taken in a PostgreSQL database: one list, so that no two are the same. Nodes of two versions
 * may run together, so a number never changes its meaning.
 */

/** Held while a database is brought up to date. */
export const migration = 7_062_516_340

/** Held by the batch that writes statements of rooms, until it commits. */
export const statements = 7_062_516_341

/** Held by the node that leads, for as long as it does. */
export const leader = 7_062_516_342

/** Held while indexes are built, and by a migration until it commits: a change of a table would wait for its index. */
export const indexes = 7_062_516_343

/** Held while a database is copied to. */
export const copy = 7_062_516_350
