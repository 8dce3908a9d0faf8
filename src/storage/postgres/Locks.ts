/**
 * The advisory lock numbers in a PostgreSQL database, in one list so that they remain distinct. A number must never change its meaning, because nodes
 * of two versions can run at the same time.
 */

export const migration = 7_062_516_340

/** Held until the commit by a batch that contains statements from other modules. */
export const statements = 7_062_516_341

/** Held by the leader as long as it leads. */
export const leader = 7_062_516_342

/**
 * Held while indexes are built. A migration also holds it until it commits, because changing a table would wait for the build of the table's index.
 */
export const indexes = 7_062_516_343

/** Held while a process copies to the database. */
export const copy = 7_062_516_350
