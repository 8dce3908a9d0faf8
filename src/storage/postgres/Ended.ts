/**
 * A batch's queries about runs of nodes (`Leases`). They have a file of their own, since the writer's thread would load the driver with the
 * other.
 */

/** Of runs, a JSON list, whether each was ended. While the transaction lasts, no run can be ended. */
export const selectEnded =
  "SELECT ended FROM tollgate_sql_nodes WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run FOR KEY SHARE"
