/** Checks that the transfers agree with the books. */
import { text, usd } from "../../books/ledger/rules/Check.ts"
import type { Check } from "../../books/ledger/rules/Check.ts"
import { escrows, transferEntries } from "../../books/ledger/rows/Relations.ts"

export const checks: ReadonlyArray<Check> = [
  {
    name: "held credit is that of the pending transfers",
    isShort: true,
    query: `SELECT a.id AS id, ${text("COALESCE(t.amount, 0)")} AS expected, ${text("a.held")} AS found
      FROM ${escrows} a LEFT JOIN (
        SELECT billing_account_id AS account, SUM(amount) AS amount FROM tollgate_transfers WHERE status = 'pending' GROUP BY 1
      ) t ON t.account = a.id WHERE a.held <> COALESCE(t.amount, 0)`,
    sentence: ({ expected, found, id }) =>
      `${id} holds ${usd(found)} in escrow, but its pending transfers add up to ${usd(expected)}`
  },
  {
    name: "a transfer's entries match its state",
    query: `SELECT t.id AS id, format('1 escrow of %s, %s', t.amount, CASE t.status WHEN 'pending' THEN 'nothing paid out'
          WHEN 'accepted' THEN 'released' ELSE 'returned' END) AS expected,
        format('%s escrows of %s, %s releases, %s returns', COUNT(*) FILTER (WHERE e.source = 'transfer_escrow'),
          COALESCE(SUM(e.amount) FILTER (WHERE e.source = 'transfer_escrow'), 0),
          COUNT(*) FILTER (WHERE e.source = 'transfer_release'), COUNT(*) FILTER (WHERE e.source = 'transfer_return')) AS found
      FROM tollgate_transfers t LEFT JOIN ${transferEntries} e
        ON e.reference_id = t.id GROUP BY t.id
      HAVING COUNT(*) FILTER (WHERE e.source = 'transfer_escrow' AND e.billing_account_id = t.billing_account_id
          AND e.amount = t.amount) <> 1
        OR COUNT(*) FILTER (WHERE e.source = 'transfer_release') <> CASE t.status WHEN 'accepted' THEN 1 ELSE 0 END
        OR COUNT(*) FILTER (WHERE e.source = 'transfer_return') <> CASE WHEN t.status IN ('declined', 'revoked', 'expired') THEN 1 ELSE 0 END`,
    sentence: ({ expected, found, id }) => `transfer ${id} should have ${expected}, but has ${found}`
  },
  {
    // Only ids created by this service are checked, because the sandbox and embedding hosts also release transfers that have no row here.
    name: "an entry of a transfer has its transfer",
    query: `SELECT e.reference_id AS id, 'a transfer' AS expected, format('none for the %s of %s in %s', e.source, e.amount, e.billing_account_id) AS found
      FROM ${transferEntries} e
      WHERE e.reference_id LIKE 'trf@_%' ESCAPE '@' AND NOT EXISTS (SELECT 1 FROM tollgate_transfers t WHERE t.id = e.reference_id)`,
    sentence: ({ found, id }) => `the books require a transfer ${id}, but there is ${found}`
  }
]
