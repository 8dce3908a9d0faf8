/** What must hold between payments and the books. */
import type { Check } from "../ledger/Invariants.ts"
import { purchaseCredits } from "../ledger/Relations.ts"

export const checks: ReadonlyArray<Check> = [
  {
    name: "a payment has one credit",
    query: `SELECT p.id AS id, format('1 credit of %s', p.amount) AS expected,
        format('%s credits of %s', COUNT(e.amount), COALESCE(SUM(e.amount), 0)) AS found
      FROM tollgate_payments_payments p LEFT JOIN ${purchaseCredits} e ON e.reference_id = p.id GROUP BY p.id HAVING COUNT(e.amount) <> 1 OR SUM(e.amount) <> p.amount`,
    sentence: ({ expected, found, id }) => `payment ${id} calls for ${expected} (nano-USD), but there are ${found}`
  }
]
