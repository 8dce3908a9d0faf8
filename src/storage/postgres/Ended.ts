/**
 * The query that a batch uses to check node runs (`Leases`). It is in a separate file, because importing `Leases` would load the driver in the
 * writer's thread.
 */

/** Selects whether each run in a JSON array has ended. The row locks prevent other nodes from ending a run until the transaction ends. */
export const selectEnded =
  "SELECT ended FROM tollgate_sql_nodes WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run FOR KEY SHARE"
