/** Checks that the runs agree with the books. */
import type { Check } from "../../books/ledger/rules/Check.ts"
import { budgets } from "../../books/ledger/rows/Relations.ts"

/** Matches ids that this service created, because hosts may set their own budgets in the books. */
const isOwn = `LIKE 'run@_${"_".repeat(22)}' ESCAPE '@'`

export const checks: ReadonlyArray<Check> = [
  {
    name: "a run's row matches the books",
    query: `SELECT r.id AS id, format('a run of itself in %s', r.tenant_id) AS expected,
        CASE WHEN g.id IS NULL THEN 'none' ELSE format('a %s of %s in %s', g.kind, g.anchor, COALESCE(g.tenant_id, 'all tenants')) END AS found
      FROM tollgate_runs r LEFT JOIN ${budgets} g ON g.id = r.id
      WHERE g.id IS NULL OR g.kind <> 'run' OR g.anchor <> r.id OR COALESCE(g.tenant_id, '') <> r.tenant_id`,
    sentence: ({ expected, found, id }) => `${id} is ${expected}, but the books contain ${found}`
  },
  {
    name: "a run of the books has its row",
    query: `SELECT g.id AS id, 'a row' AS expected, 'none' AS found FROM ${budgets} g
      WHERE g.kind = 'run' AND g.id ${isOwn} AND NOT EXISTS (SELECT 1 FROM tollgate_runs r WHERE r.id = g.id)`,
    sentence: ({ id }) => `the books contain a budget for the run ${id}, but the run does not exist`
  }
]
