/**
 * A batch's query about runs of nodes (`Leases`). It has a separate file, because importing `Leases` would load the driver in the writer's
 * thread.
 */

/** Whether each run of a JSON list has ended. The row locks prevent ending a run until the transaction ends. */
export const selectEnded =
  "SELECT ended FROM tollgate_sql_nodes WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run FOR KEY SHARE"
