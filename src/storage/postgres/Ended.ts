/**
 * The query in which a batch checks the runs of nodes (`Leases`). It is in a file of its own, because importing `Leases` would load the driver in the
 * writer's thread.
 */

/** Selects whether each run in a JSON array has ended. The row locks keep a run from being ended until the transaction ends. */
export const selectEnded =
  "SELECT ended FROM tollgate_sql_nodes WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run FOR KEY SHARE"
