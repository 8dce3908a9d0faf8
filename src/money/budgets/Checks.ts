/** Checks that the rows of budgets agree with the books. */
import { everyone } from "../../books/ledger/rules/Budget.ts"
import type { Check } from "../../books/ledger/rules/Check.ts"
import { budgets } from "../../books/ledger/rows/Relations.ts"

/** Matches ids created by this service. Hosts set their own budgets in the books. */
const isOwn = `LIKE 'bud@_${"_".repeat(22)}' ESCAPE '@'`

export const checks: ReadonlyArray<Check> = [
  {
    name: "a budget's row matches the books",
    isShort: true,
    query: `SELECT b.id AS id, format('a budget of %s', COALESCE(b.key_id, b.tenant_id, '${everyone}')) AS expected,
        CASE WHEN g.id IS NULL THEN 'none' ELSE format('a %s of %s in %s', g.kind, g.anchor, COALESCE(g.tenant_id, 'all tenants')) END AS found
      FROM tollgate_budgets_budgets b LEFT JOIN ${budgets} g ON g.id = b.id
      WHERE g.id IS NULL OR g.kind <> 'budget' OR g.anchor <> COALESCE(b.key_id, b.tenant_id, '${everyone}')
        OR COALESCE(g.tenant_id, '') <> COALESCE(b.tenant_id, '')`,
    sentence: ({ expected, found, id }) => `${id} is ${expected}, but the books contain ${found}`
  },
  {
    name: "a budget of the books has its row",
    isShort: true,
    query: `SELECT g.id AS id, 'a row' AS expected, 'none' AS found FROM ${budgets} g
      WHERE g.kind = 'budget' AND g.id ${isOwn} AND NOT EXISTS (SELECT 1 FROM tollgate_budgets_budgets b WHERE b.id = g.id)`,
    sentence: ({ id }) => `the books contain the budget ${id}, but there is no such budget`
  }
]
