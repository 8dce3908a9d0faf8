/** SQL for the checks of other rooms, so that these checks do not refer to the tables of the books directly. */

/** The sources of credit from outside the books. */
export const outsideSet: ReadonlySet<string> = new Set([
  "purchase",
  "registration_bonus",
  "signup_grant",
  "admin",
  "allowance",
  "voucher"
])
/** The sources of credit from escrow. */
export const escrowEndSet: ReadonlySet<string> = new Set(["transfer_release", "transfer_return"])

const listed = (sources: Iterable<string>) => `(${[...sources].map((source) => `'${source}'`).join(", ")})`
export const outsideSources = listed(outsideSet)
export const escrowEndSources = listed(escrowEndSet)

/** The entries of transfers, in both accounts. */
export const transferEntries = `(SELECT * FROM tollgate_ledger_entries
  WHERE source = 'transfer_escrow' OR source IN ${escrowEndSources})`

export const purchaseCredits = "(SELECT * FROM tollgate_ledger_entries WHERE type = 'credit' AND source = 'purchase')"

/** The entries that credited a purchase or took it back, fully or in part. */
export const purchaseEntries = "(SELECT * FROM tollgate_ledger_entries WHERE source = 'purchase')"

export const allowanceEntries = "(SELECT * FROM tollgate_ledger_entries WHERE source = 'allowance')"
export const voucherEntries = "(SELECT * FROM tollgate_ledger_entries WHERE source = 'voucher')"

/** All entries except charges. */
export const movements = "(SELECT * FROM tollgate_ledger_entries WHERE source IS NOT NULL)"

/** The debt of each payment: `payment_id`, `billing_account_id` and `amount`. */
export const debts = `(SELECT j.key AS payment_id, a.id AS billing_account_id, CAST(j.value AS bigint) AS amount
  FROM tollgate_ledger_accounts a CROSS JOIN json_each(a.debts) j ON true WHERE a.debts IS NOT NULL)`

/** The escrow of each billing account: `id` and `held`. */
export const escrows = "(SELECT id, held FROM tollgate_ledger_accounts)"

export const budgets = "tollgate_ledger_budgets"
