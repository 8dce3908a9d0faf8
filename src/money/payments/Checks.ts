/** Checks that the payments agree with the books. */
import type { Check } from "../../books/ledger/rules/Check.ts"
import { debts, purchaseCredits } from "../../books/ledger/rows/Relations.ts"
import { followedOf } from "./Facts.ts"

const found = "format('%s taken back and %s owed', p.taken, p.owed)"

export const checks: ReadonlyArray<Check> = [
  {
    name: "a payment has one credit",
    query: `SELECT p.id AS id, format('1 credit of %s', p.amount) AS expected,
        format('%s credits of %s', COUNT(e.amount), COALESCE(SUM(e.amount), 0)) AS found
      FROM tollgate_payments_payments p LEFT JOIN ${purchaseCredits} e ON e.reference_id = p.id GROUP BY p.id HAVING COUNT(e.amount) <> 1 OR SUM(e.amount) <> p.amount`,
    sentence: ({ expected, found, id }) => `payment ${id} requires ${expected} (nano-USD), but there are ${found}`
  },
  {
    name: "the due amount of a payment is taken back or owed",
    query: `SELECT p.id AS id, CAST(p.due AS TEXT) AS expected, ${found} AS found
      FROM ${followedOf} p WHERE p.due = p.followed AND p.due <> p.taken + p.owed`,
    sentence: ({ expected, found, id }) => `${expected} nano-USD of payment ${id} is due, but the books show ${found}`
  },
  {
    name: "a debt belongs to a payment",
    isShort: true,
    query: `SELECT d.payment_id AS id, 'a payment' AS expected, format('a debt of %s', d.amount) AS found FROM ${debts} d
      WHERE d.amount <= 0 OR NOT EXISTS (SELECT 1 FROM tollgate_payments_payments p WHERE p.id = d.payment_id)`,
    sentence: ({ found, id }) =>
      `the books show ${found} nano-USD for payment ${id}, but it does not exist or cannot owe that much`
  }
]
