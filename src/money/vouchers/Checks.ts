/** Checks that the vouchers agree with the books. */
import { text, usd } from "../../books/ledger/rules/Check.ts"
import type { Check } from "../../books/ledger/rules/Check.ts"
import { voucherEntries } from "../../books/ledger/rows/Relations.ts"

export const checks: ReadonlyArray<Check> = [
  {
    name: "a voucher counts its uses",
    query: `SELECT v.id AS id, ${text("v.uses")} AS expected, ${text("COUNT(u.voucher_id)")} AS found
      FROM tollgate_vouchers_vouchers v LEFT JOIN tollgate_vouchers_uses u ON u.voucher_id = v.id
      GROUP BY v.id, v.uses HAVING COUNT(u.voucher_id) <> v.uses`,
    sentence: ({ expected, found, id }) => `voucher ${id} counts ${expected} uses, but ${found} tenants redeemed it`
  },
  {
    name: "a use of a voucher has one credit",
    query: `SELECT u.reference AS id, ${text("v.amount")} AS expected,
        format('%s credits of %s', COUNT(e.amount), COALESCE(SUM(e.amount), 0)) AS found
      FROM tollgate_vouchers_uses u JOIN tollgate_vouchers_vouchers v ON v.id = u.voucher_id
      LEFT JOIN ${voucherEntries} e ON e.reference_id = u.reference
      GROUP BY u.reference, v.amount HAVING COUNT(e.amount) <> 1 OR SUM(e.amount) <> v.amount`,
    sentence: ({ expected, found, id }) =>
      `use ${id} of a voucher is worth ${usd(expected)}, but the ledger contains ${found} (nano-USD)`
  },
  {
    // Only ids created by this service are checked, because the sandbox and hosts credit their own vouchers.
    name: "an entry of a voucher has its use",
    query: `SELECT e.reference_id AS id, 'a use' AS expected, ${text("e.amount")} AS found FROM ${voucherEntries} e
      WHERE e.reference_id LIKE 'vch@_%' ESCAPE '@'
        AND NOT EXISTS (SELECT 1 FROM tollgate_vouchers_uses u WHERE u.reference = e.reference_id)`,
    sentence: ({ found, id }) => `the ledger grants ${usd(found)} for use ${id} of a voucher, but there is no such use`
  }
]
