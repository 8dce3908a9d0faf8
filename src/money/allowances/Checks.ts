/** Checks that the allowances agree with the books. */
import { text, usd } from "../../books/ledger/rules/Check.ts"
import type { Check } from "../../books/ledger/rules/Check.ts"
import { allowanceEntries, movements } from "../../books/ledger/rows/Relations.ts"

const signed = "CASE m.type WHEN 'credit' THEN m.amount ELSE -m.amount END"

/** Selects each debit that took back credit, with the number of the preceding grant. */
const taken = `(SELECT d.billing_account_id, d.number, d.amount, d.balance, (SELECT MAX(g.number) FROM ${allowanceEntries} g
    WHERE g.billing_account_id = d.billing_account_id AND g.type = 'credit' AND g.number < d.number) AS grant_number
  FROM ${allowanceEntries} d WHERE d.type = 'debit')`

/** Computes the unused part of a grant: the grant less the later charges. The charges follow from the balances. */
const unused = `g.amount - (g.balance + COALESCE((SELECT SUM(${signed}) FROM ${movements} m
    WHERE m.billing_account_id = d.billing_account_id AND m.number > d.grant_number AND m.number < d.number), 0) - d.balance - d.amount)`

export const checks: ReadonlyArray<Check> = [
  {
    name: "an allowance is granted once a period",
    query: `SELECT g.reference AS id, 'one grant' AS expected, format('%s', COUNT(e.amount)) AS found
      FROM tollgate_allowances_grants g LEFT JOIN ${allowanceEntries} e ON e.reference_id = g.reference AND e.type = 'credit'
      GROUP BY g.reference HAVING COUNT(e.amount) <> 1`,
    sentence: ({ found, id }) => `the ledger must grant the allowance ${id} once, but grants it ${found} times`
  },
  {
    // Only ids created by this service are checked, because the sandbox and hosts credit their own allowances.
    name: "an entry of an allowance has its grant",
    query: `SELECT e.reference_id AS id, 'a grant' AS expected, ${text("e.amount")} AS found FROM ${allowanceEntries} e
      WHERE e.reference_id LIKE 'alw@_%' ESCAPE '@'
        AND NOT EXISTS (SELECT 1 FROM tollgate_allowances_grants g WHERE g.reference = e.reference_id)`,
    sentence: ({ found, id }) =>
      `the ledger grants ${usd(found)} for the allowance ${id}, but there is no such allowance`
  },
  {
    name: "an allowance takes back no more than is unused",
    query: `SELECT d.billing_account_id AS id, ${text(`COALESCE(${unused}, 0)`)} AS expected, ${text("d.amount")} AS found
      FROM ${taken} d LEFT JOIN ${allowanceEntries} g ON g.billing_account_id = d.billing_account_id AND g.number = d.grant_number
      WHERE d.amount > COALESCE(${unused}, 0)`,
    sentence: ({ expected, found, id }) =>
      `the allowance of ${id} took back ${usd(found)}, but only ${usd(expected)} was unused`
  }
]
