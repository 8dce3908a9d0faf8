/** A batch's query about runs of nodes (`Leases`). In its own file, because importing `Leases` would load the driver in the writer's thread. */

/** Whether each run in a JSON list has ended. The row locks prevent ending a run until the transaction ends. */
export const selectEnded =
  "SELECT ended FROM tollgate_sql_nodes WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run FOR KEY SHARE"
