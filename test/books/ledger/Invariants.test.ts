import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { usd } from "../../../src/kernel/Money.ts"
import { KeyTotalsIndexer } from "../../../src/books/ledger/totals/KeyTotalsIndexer.ts"
import { ProviderTotalsIndexer } from "../../../src/books/ledger/totals/ProviderTotalsIndexer.ts"
import { trialBalance } from "../../../src/books/ledger/audit/Invariants.ts"
import { findingsMax } from "../../../src/books/ledger/rules/Check.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { ChargeLog } from "../../../src/books/log/ChargeLog.ts"
import { checkNames, verify } from "../../../src/app/Checks.ts"
import { Liabilities } from "../../../src/books/log/Liabilities.ts"
import * as TestDatabase from "../../support/database.ts"
import * as LogScene from "../log/LogScene.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, bob, other } from "../../money/usage/Scene.ts"

/** A budget that counts every call of acme. */
const setBudget = Effect.flatMap(Ledger, (ledger) =>
  ledger.setBudget({
    id: "bud_1",
    kind: "budget",
    anchor: acme,
    tenant: acme,
    account: "bil_acme",
    terms: {
      name: "all",
      limit: { usd: 100n * usd, tokens: 1_000_000 },
      period: "total",
      applies_to: {},
      mode: "refuse",
      notify_at: [],
      raises: [],
      by_operator: false,
      created_by: "acc_ada",
      created_at: 0
    }
  })
)

/** A little of everything that the books can hold today. */
const healthy = Effect.gen(function* () {
  yield* Scene.now("2026-03-01T10:00:00Z")
  yield* Scene.tenant(acme, 10n * usd)
  yield* Scene.credit(acme, 3n * usd, "signup_grant", "acc_1")
  yield* setBudget
  yield* Scene.tenant(other, 5n * usd)
  yield* Scene.call({ cost: usd, units: 0.1 })
  yield* Scene.call({ cost: 0n, success: false, error_type: "upstream", units: 0.2 })
  yield* Scene.call({ cost: 4n * usd, account_id: bob, application_id: "app_1", usage_type: "tool" })
  yield* Scene.reserve({ cost: 3n, application_id: "app_1" })
  const limit = { amount: 9n * usd, period: "total" } as const
  const ledger = yield* Ledger
  yield* ledger.setLimit({ application: "app_1", tenant: acme, account: "bil_acme", limit })
  yield* Scene.call({ cost: 42n, tenant_id: other, payer: acme })
  yield* Scene.now("2026-03-02T23:30:00Z")
  yield* Scene.call({ cost: 7n, units: 0.3 })
  yield* Scene.call({ cost: 7n, tenant_id: other })
  yield* Effect.provide(
    Effect.zipRight(
      Effect.flatMap(ProviderTotalsIndexer, ({ add }) => add),
      Effect.flatMap(KeyTotalsIndexer, ({ add }) => add)
    ),
    Layer.merge(ProviderTotalsIndexer.layer, KeyTotalsIndexer.layer)
  )
  yield* Effect.provide(
    Effect.zipRight(
      Effect.flatMap(ChargeLog, ({ add }) => add),
      Effect.flatMap(Liabilities, ({ build }) => build)
    ),
    Layer.provideMerge(Liabilities.layer, LogScene.log)
  )
  // One that the rollups do not hold yet, nor the sums by provider and key.
  yield* Scene.call({ cost: 9n, units: 0.4 })
  yield* Scene.reserve({ cost: usd })
})

const change = TestDatabase.unchecked

/** Publishes the checkpoint of the log, or a change of it. */
const published = (checkpoint: string, cosignatures: number): string =>
  `INSERT INTO tollgate_log_published SELECT 1, size, entry, ${checkpoint}, ${cosignatures}, 0 FROM tollgate_log_head`

/** A transfer of 2 USD from acme to other, and its payments, as the books would write them. */
const transfer = (payments: number): ReadonlyArray<string> => {
  const enter = (account: string, type: string, sign: string, source: string) => [
    `UPDATE tollgate_ledger_amounts SET giftable = giftable ${sign} 2000000000, entries = entries + 1,
        newest = (SELECT MAX(seq) + 1 FROM tollgate_ledger_entries)
      WHERE account = (SELECT number FROM tollgate_ledger_accounts WHERE id = '${account}')`,
    `INSERT INTO tollgate_ledger_entries SELECT (SELECT MAX(seq) + 1 FROM tollgate_ledger_entries), billing_account_id, number + 1, '${type}',
        2000000000, balance ${sign} 2000000000, giftable ${sign} 2000000000, '${source}', 'trf_1', '', at + 999999999, seq
      FROM tollgate_ledger_entries WHERE billing_account_id = '${account}' ORDER BY seq DESC LIMIT 1`
  ]
  return [
    `INSERT INTO tollgate_transfers VALUES ('trf_1', 'bil_acme', 'acc_ada', 'x@example.com', NULL, 'gift', 2000000000, NULL, NULL,
      '${payments === 0 ? "pending" : "accepted"}', 'hash', 'key', 'hash', 1, 1, 1, 1, 1, NULL, NULL)`,
    ...enter("bil_acme", "debit", "-", "transfer_escrow"),
    "UPDATE tollgate_ledger_accounts SET held = held + 2000000000 WHERE id = 'bil_acme'",
    ...Array.from({ length: payments }, () => [
      ...enter("bil_other", "credit", "+", "transfer_release"),
      "UPDATE tollgate_ledger_accounts SET held = held - 2000000000 WHERE id = 'bil_acme'"
    ]).flat()
  ]
}

/** Makes acme's first credit one of another source. */
const firstEntry = (source: string, reference: string) =>
  `UPDATE tollgate_ledger_entries SET source = '${source}', reference_id = '${reference}'
    WHERE billing_account_id = 'bil_acme' AND number = 1`

/** A voucher that was used once, by its own count. */
const voucher = "INSERT INTO tollgate_vouchers_vouchers VALUES ('vou_1', 'hash', 'abc', 5, 2, 1, '', 0, NULL, NULL)"

/** An id as the service makes them. */
const ownId = (kind: string) => `${kind}_${"0".repeat(22)}`

const budgetRow = (id: string, tenant: string, key: string) =>
  `INSERT INTO tollgate_budgets_budgets (id, tenant_id, key_id, created_by, by_operator, revision)
    VALUES ('${id}', ${tenant}, ${key}, 'acc_ada', 0, 1)`

const runRow = (id: string) =>
  `INSERT INTO tollgate_runs (id, tenant_id, account_id, application_id, path, level, name, key_hash, key_prefix, tags, end_user,
      created_at, expires_at) VALUES ('${id}', 'ten_acme', 'acc_ada', 'app_1', '${id}', 1, '', 'hash', 'svc-run-00000', '', '', 1, 2)`

/** Statements that break each rule, and the check that must notice. */
const noBytes = TestDatabase.isPostgres ? "''" : "x''"

const broken: ReadonlyArray<readonly [check: string, ...statements: ReadonlyArray<string>]> = [
  ["balance is the sum of its entries", "UPDATE tollgate_ledger_amounts SET giftable = giftable + 1"],
  ["balance is the sum of its entries", "UPDATE tollgate_ledger_entries SET amount = amount + 1 WHERE number = 2"],
  ["balance is the sum of its entries", "DELETE FROM tollgate_ledger_accounts WHERE id = 'bil_other'"],
  ["balance is that of the last entry", "UPDATE tollgate_ledger_amounts SET granted = granted + 1"],
  [
    "balance is that of the last entry",
    "UPDATE tollgate_ledger_entries SET balance = balance + 1 WHERE seq = (SELECT MAX(seq) FROM tollgate_ledger_entries)"
  ],
  [
    "giftable credit is that of the last entry",
    "UPDATE tollgate_ledger_amounts SET giftable = giftable + 1, granted = granted - 1"
  ],
  ["nothing is below zero", "UPDATE tollgate_ledger_accounts SET held = -1 WHERE id = 'bil_acme'"],
  ["reserved is the sum of open reservations", "UPDATE tollgate_ledger_amounts SET reserved = reserved + 1"],
  ["reserved is the sum of open reservations", "UPDATE tollgate_ledger_reservations SET amount = amount + 1"],
  [
    "reserved is the sum of open reservations",
    "UPDATE tollgate_usage_dimensions SET billing_account_id = 'bil_nobody'"
  ],
  ["reserved is within the balance", "UPDATE tollgate_ledger_amounts SET reserved = giftable + granted + 1"],
  [
    "funded means that credit was bought or received",
    "UPDATE tollgate_ledger_accounts SET funded = 0 WHERE id = 'bil_acme'"
  ],
  [
    "funded means that credit was bought or received",
    "UPDATE tollgate_ledger_entries SET source = 'admin' WHERE number = 1"
  ],
  ["held is the credit in escrow", "UPDATE tollgate_ledger_accounts SET held = held + 1"],
  ["held is the credit in escrow", ...transfer(0), "UPDATE tollgate_ledger_accounts SET held = 0"],
  [
    "credit is neither made nor lost",
    "UPDATE tollgate_ledger_amounts SET giftable = giftable + 1 WHERE account = (SELECT number FROM tollgate_ledger_accounts WHERE id = 'bil_acme')"
  ],
  [
    "credit is neither made nor lost",
    ...transfer(1),
    "UPDATE tollgate_ledger_accounts SET held = 1 WHERE id = 'bil_acme'"
  ],
  ["entries are numbered without a gap", "UPDATE tollgate_ledger_entries SET number = number + 100 WHERE seq = 4"],
  ["entries are counted", "UPDATE tollgate_ledger_amounts SET entries = entries + 1"],
  [
    "each balance follows from the one before",
    "UPDATE tollgate_ledger_entries SET balance = balance + 1 WHERE number = 2"
  ],
  [
    "each giftable part follows from the one before",
    "UPDATE tollgate_ledger_entries SET giftable = giftable - 1 WHERE number = 2"
  ],
  [
    "giftable credit is part of the balance",
    "UPDATE tollgate_ledger_entries SET giftable = balance + 1 WHERE number = 2"
  ],
  ["a source fits its direction", "UPDATE tollgate_ledger_entries SET source = NULL WHERE number = 1"],
  ["a source fits its direction", "UPDATE tollgate_ledger_entries SET source = 'signup_grant' WHERE type = 'debit'"],
  ["a transfer pays out once", ...transfer(2)],
  [
    "a transfer pays out once",
    ...transfer(1),
    "UPDATE tollgate_ledger_entries SET amount = 1 WHERE source = 'transfer_release'"
  ],
  [
    "a transfer pays out once",
    ...transfer(1),
    "UPDATE tollgate_ledger_entries SET reference_id = 'trf_2' WHERE source = 'transfer_release'"
  ],
  ["held credit is that of the pending transfers", ...transfer(0), "UPDATE tollgate_transfers SET status = 'declined'"],
  ["held credit is that of the pending transfers", ...transfer(0), "DELETE FROM tollgate_transfers"],
  ["a transfer's entries match its state", ...transfer(1), "UPDATE tollgate_transfers SET status = 'declined'"],
  ["a transfer's entries match its state", ...transfer(1), "UPDATE tollgate_transfers SET amount = amount + 1"],
  ["an entry of a transfer has its transfer", ...transfer(1), "DELETE FROM tollgate_transfers"],
  [
    "a payment has one credit",
    "INSERT INTO tollgate_payments_payments VALUES ('pay_x', 'ten_acme', 'offline', 1, 0, 1, 0)"
  ],
  [
    "the due amount of a payment is taken back or owed",
    "INSERT INTO tollgate_payments_payments VALUES ('pay_x', 'ten_acme', 'offline', 2, 1, 1, 1)"
  ],
  ["a debt belongs to a payment", `UPDATE tollgate_ledger_accounts SET debts = '{"pay_x":"1"}' WHERE id = 'bil_acme'`],
  [
    "an account in debt has no free credit",
    `UPDATE tollgate_ledger_accounts SET debts = '{"pay_x":"1"}' WHERE id = 'bil_acme'`
  ],
  ["entries are in the order of time", "UPDATE tollgate_ledger_entries SET at = at - 1 WHERE number = 2"],
  [
    "each entry points to the one before",
    "UPDATE tollgate_ledger_entries SET previous = 1 WHERE seq = (SELECT MAX(seq) FROM tollgate_ledger_entries)"
  ],
  ["each entry points to the one before", "UPDATE tollgate_ledger_entries SET previous = NULL"],
  ["each entry points to the one before", "UPDATE tollgate_ledger_entries SET previous = 99 WHERE number = 1"],
  ["tollgate_ledger_amounts names the newest entry", "UPDATE tollgate_ledger_amounts SET newest = newest - 1"],
  ["tollgate_ledger_amounts names the newest entry", "UPDATE tollgate_ledger_amounts SET newest = NULL"],
  ["tollgate_ledger_offsets locates the entries", "INSERT INTO tollgate_ledger_offsets VALUES (1, 64, 1)"],
  ["a call is recorded once", "DROP INDEX tollgate_usage_records_id", "UPDATE tollgate_usage_records SET id = 'use_1'"],
  [
    "a call is either open or recorded",
    "UPDATE tollgate_usage_records SET id = (SELECT replace(id, 'call_', 'use_') FROM tollgate_ledger_reservations ORDER BY id LIMIT 1) WHERE seq = 1"
  ],
  ["a call has dimensions of its tenant", "UPDATE tollgate_usage_records SET dimensions = -1 WHERE seq = 1"],
  ["a call has dimensions of its tenant", "UPDATE tollgate_usage_dimensions SET tenant_id = 'ten_x'"],
  ["a call has dimensions of its tenant", "UPDATE tollgate_ledger_reservations SET dimensions = -1"],
  ["a cost has one debit", "UPDATE tollgate_usage_records SET cost = cost + 1 WHERE seq = 1"],
  ["a cost has one debit", "UPDATE tollgate_usage_records SET cost = 0 WHERE seq = 1"],
  ["a cost has one debit", "UPDATE tollgate_usage_dimensions SET billing_account_id = 'bil_other'"],
  [
    "a cost has one debit",
    "UPDATE tollgate_ledger_entries SET reference_id = (SELECT id FROM tollgate_usage_records WHERE seq = 1) WHERE type = 'debit'"
  ],
  [
    "a debit has one cost",
    "UPDATE tollgate_ledger_entries SET reference_id = 'use_none' WHERE type = 'debit' AND number = 3"
  ],
  ["the payer is an account of its tenant", "UPDATE tollgate_usage_dimensions SET billing_source_tenant_id = 'ten_x'"],
  ["records are numbered without a gap", "UPDATE tollgate_usage_records SET number = number + 100 WHERE seq = 2"],
  ["records are in the order of time", "UPDATE tollgate_usage_records SET at = at - 1 WHERE number = 2"],
  ["a watermark is the number of a record", "UPDATE tollgate_usage_watermarks SET number = number + 2"],
  ["a watermark is the number of a record", "UPDATE tollgate_usage_watermarks SET number = -1"],
  ["a watermark is the number of a record", "INSERT INTO tollgate_usage_watermarks VALUES ('ten_x', 1)"],
  ["each record points to the one before", "UPDATE tollgate_usage_records SET previous = 1 WHERE number = 3"],
  ["tollgate_usage_heads names the newest record", "UPDATE tollgate_usage_heads SET records = records + 1"],
  ["tollgate_usage_heads names the newest record", "UPDATE tollgate_usage_heads SET newest = newest - 1"],
  ["tollgate_usage_heads names the newest record", "DELETE FROM tollgate_usage_tenants WHERE id = 'ten_other'"],
  ["tollgate_usage_offsets locates the records", "INSERT INTO tollgate_usage_offsets VALUES (9, 64, 1, 1)"],
  // The watermark moved without a fold; moved back, so that records are in the rollups and in the tail; a fold that was lost.
  ["tollgate_usage_by_tenant sums the records", "UPDATE tollgate_usage_watermarks SET number = number + 1"],
  ["tollgate_usage_by_caller sums the records", "UPDATE tollgate_usage_watermarks SET number = number - 1"],
  ["tollgate_usage_by_payer sums the records", "DELETE FROM tollgate_usage_watermarks WHERE tenant_id = 'ten_other'"],
  ["tollgate_usage_by_tenant sums the records", "DELETE FROM tollgate_usage_by_tenant"],
  ["tollgate_usage_by_tenant sums the records", "UPDATE tollgate_usage_by_tenant SET requests = requests + 1"],
  ["tollgate_usage_by_tenant sums the records", "UPDATE tollgate_usage_by_tenant SET units = units + 0.001"],
  ["tollgate_usage_by_tenant sums the records", "DELETE FROM tollgate_usage_by_tenant WHERE usage_type = 'tool'"],
  [
    "tollgate_usage_by_caller sums the records",
    "UPDATE tollgate_usage_by_caller SET cost = cost + 1 WHERE grain = 3600000"
  ],
  [
    "tollgate_usage_by_caller sums the records",
    "UPDATE tollgate_usage_by_caller SET successes = 0 WHERE grain = 86400000"
  ],
  ["tollgate_usage_by_payer sums the records", "UPDATE tollgate_usage_by_payer SET latency_ms = latency_ms + 1"],
  [
    "tollgate_usage_by_payer sums the records",
    "UPDATE tollgate_usage_by_payer SET account_id = 'acc_x' WHERE billing_source_kind = 'team'"
  ],
  // Rows beside those that the records make: of a day, a payer, a caller without any, and of no period that there is.
  [
    "tollgate_usage_by_tenant sums the records",
    "INSERT INTO tollgate_usage_by_tenant SELECT tenant_id, start + 864000000, application_id, usage_type, provider, 1, 1, 1, 1, 1, 1, 1 FROM tollgate_usage_by_tenant LIMIT 1"
  ],
  [
    "tollgate_usage_by_payer sums the records",
    "INSERT INTO tollgate_usage_by_payer SELECT 'bil_x', start, account_id, billing_source_kind, 0, 0, 0, 0, 0, 5, 0 FROM tollgate_usage_by_payer LIMIT 1"
  ],
  [
    "tollgate_usage_by_caller sums the records",
    "INSERT INTO tollgate_usage_by_caller SELECT tenant_id, 'acc_x', grain, start, model, endpoint, 1, 1, 1, 1, 1, 1, 1 FROM tollgate_usage_by_caller LIMIT 1"
  ],
  [
    "tollgate_usage_by_caller sums the records",
    "INSERT INTO tollgate_usage_by_caller SELECT tenant_id, account_id, grain, start, 'x', endpoint, 1, 1, 1, 1, 1, 1, 1 FROM tollgate_usage_by_caller WHERE grain = 3600000 LIMIT 1"
  ],
  [
    "tollgate_usage_by_caller sums the records",
    "UPDATE tollgate_usage_by_caller SET grain = 60000 WHERE grain = 3600000"
  ],
  ["tollgate_usage_by_caller sums the records", "UPDATE tollgate_usage_by_caller SET start = start + 1"],
  ["a limit's spent is the sum of its key's charges", "UPDATE tollgate_ledger_budgets SET spent = spent - 1"],
  ["a limit's spent is the sum of its key's charges", "UPDATE tollgate_ledger_budgets SET start = 1798761600000"],
  [
    "a limit's spent is the sum of its key's charges",
    "UPDATE tollgate_usage_by_tenant SET cost = cost + 1 WHERE application_id = 'app_1'"
  ],
  [
    "a limit's reserved is the sum of its key's reservations",
    "UPDATE tollgate_ledger_budgets SET reserved = reserved + 1"
  ],
  [
    "a limit's reserved is the sum of its key's reservations",
    "UPDATE tollgate_ledger_reservations SET amount = amount + 1"
  ],
  ["a key spends no more than its limit", "UPDATE tollgate_ledger_budgets SET ceiling = spent"],
  ["a budget's spent is the sum of its records", "UPDATE tollgate_ledger_budgets SET spent = spent - 1"],
  ["a budget's tokens is the sum of its records", "UPDATE tollgate_ledger_budgets SET tokens = tokens + 1"],
  ["a budget's reserved is the sum of its open calls", "UPDATE tollgate_ledger_budgets SET reserved = reserved - 1"],
  ["a budget's tokens_reserved is the sum of its open calls", "UPDATE tollgate_ledger_budgets SET tokens_reserved = 1"],
  ["a budget's open is the sum of its open calls", "UPDATE tollgate_ledger_budgets SET open = open + 1"],
  ["sorted runs hold the records", "INSERT INTO tollgate_usage_sorted_runs VALUES ('ten_acme', 0, 1)"],
  [
    "totals of runs equal the records",
    `INSERT INTO tollgate_usage_tallies (tenant_id, level, run, totals, kinds, sums) VALUES ('ten_acme', 0, 0, ${noBytes}, NULL, ${noBytes})`
  ],
  // A sum that is off, of no records, or missing; an end that was moved without adding, moved back, or is behind all records.
  ["totals of providers equal the records", "UPDATE tollgate_usage_by_provider SET uncollected = uncollected + 1"],
  ["totals of providers equal the records", "UPDATE tollgate_usage_by_provider SET units = units + 0.001"],
  ["totals of providers equal the records", "UPDATE tollgate_usage_by_provider SET model = 'x'"],
  ["totals of providers equal the records", "DELETE FROM tollgate_usage_by_provider"],
  ["totals of providers equal the records", "UPDATE tollgate_usage_by_provider_end SET record = record + 1"],
  ["totals of providers equal the records", "DELETE FROM tollgate_usage_by_provider_end"],
  [
    "totals of providers equal the records",
    "DELETE FROM tollgate_usage_by_provider",
    "DELETE FROM tollgate_usage_records",
    "UPDATE tollgate_usage_by_provider_end SET record = 1"
  ],
  ["sums by key equal the records", "UPDATE tollgate_usage_by_key SET latency_ms = latency_ms + 1"],
  ["sums by key equal the records", "UPDATE tollgate_usage_by_key SET grain = 60000 WHERE grain = 3600000"],
  ["sums by key equal the records", "UPDATE tollgate_usage_by_key SET application_id = 'app_2'"],
  ["sums by key equal the records", "DELETE FROM tollgate_usage_by_key"],
  ["sums by key equal the records", "UPDATE tollgate_usage_by_key_end SET record = 1"],
  [
    "sums by key equal the records",
    "DELETE FROM tollgate_usage_by_key",
    "DELETE FROM tollgate_usage_records",
    "UPDATE tollgate_usage_by_key_end SET record = 1"
  ],
  [
    "an allowance is granted once a period",
    "INSERT INTO tollgate_allowances_grants VALUES ('ten_acme', 'month', 1, 1, 'alw_1', 5, 1, 0)"
  ],
  ["an entry of an allowance has its grant", firstEntry("allowance", "alw_1")],
  [
    "an allowance takes back no more than is unused",
    "UPDATE tollgate_ledger_entries SET source = 'allowance', reference_id = 'alw_1' WHERE type = 'debit' AND number = 3"
  ],
  ["a voucher counts its uses", voucher],
  [
    "a use of a voucher has one credit",
    voucher,
    "INSERT INTO tollgate_vouchers_uses VALUES ('vou_1', 'ten_acme', 'acc_ada', 'vch_1', 0)"
  ],
  ["an entry of a voucher has its use", firstEntry("voucher", "vch_1")],
  [
    "the checkpoint of the log is signed and has its root",
    "UPDATE tollgate_log_head SET checkpoint = replace(checkpoint, '— ', '— x')"
  ],
  ["the checkpoint of the log is signed and has its root", "UPDATE tollgate_log_head SET size = size - 1"],
  ["the checkpoint of the log is signed and has its root", "DELETE FROM tollgate_log_keys"],
  ["the checkpoint of the log is signed and has its root", "DELETE FROM tollgate_log_tiles"],
  ["the checkpoint of the log is signed and has its root", "DELETE FROM tollgate_log_head"],
  [
    "the checkpoint of the log is signed and has its root",
    "INSERT INTO tollgate_log_tiles SELECT 1, 0, NULL, hashes FROM tollgate_log_tiles"
  ],
  ["the log has each entry and nothing else", "UPDATE tollgate_ledger_entries SET description = 'x' WHERE number = 1"],
  ["the log has each entry and nothing else", "UPDATE tollgate_log_head SET salt = 'x'"],
  ["the log has each entry and nothing else", "UPDATE tollgate_log_head SET entry = entry - 1"],
  ["the log has each entry and nothing else", "UPDATE tollgate_log_tiles SET first = first + 1"],
  ["the log has each entry and nothing else", "UPDATE tollgate_log_forms SET first = first + 1"],
  ["the log has each entry and nothing else", "UPDATE tollgate_log_forms SET last = last + 1000"],
  ["the log has each entry and nothing else", "DELETE FROM tollgate_log_forms"],
  [
    "the log has each entry and nothing else",
    "DELETE FROM tollgate_ledger_entries WHERE seq = (SELECT MIN(seq) FROM tollgate_ledger_entries)"
  ],
  // A checkpoint with a cosignature that it lacks, of another row, of another size, and of another log.
  ["the published checkpoint is in the log and cosigned", published("checkpoint", 1)],
  [
    "the published checkpoint is in the log and cosigned",
    published("checkpoint", 0),
    "UPDATE tollgate_log_published SET entry = entry - 1"
  ],
  [
    "the published checkpoint is in the log and cosigned",
    published("checkpoint", 0),
    "UPDATE tollgate_log_published SET size = size + 1"
  ],
  ["the published checkpoint is in the log and cosigned", published("replace(checkpoint, origin, 'x')", 0)],
  ["no witness contradicts the log", "INSERT INTO tollgate_log_witnesses VALUES ('w', 0, 0, 'it knows more')"],
  [
    "the newest statement of liabilities is signed and has its root",
    "UPDATE tollgate_log_liabilities SET statement = replace(statement, 'total ', 'total 1')"
  ],
  [
    "the newest statement of liabilities is signed and has its root",
    "UPDATE tollgate_log_liability_blocks SET sum = '1'"
  ],
  ["the newest statement of liabilities is signed and has its root", "DELETE FROM tollgate_log_liability_blocks"],
  ["the proofs of liabilities have the balances of their days", "DELETE FROM tollgate_log_liabilities"],
  [
    "the proofs of liabilities have the balances of their days",
    "UPDATE tollgate_log_liabilities SET statement = NULL, entry = 1"
  ],
  [
    "the proofs of liabilities have the balances of their days",
    "UPDATE tollgate_log_liabilities SET statement = NULL, entries = entries + 1"
  ],
  [
    "the proofs of liabilities have the balances of their days",
    "UPDATE tollgate_log_liabilities SET statement = NULL",
    "UPDATE tollgate_log_liability_blocks SET sum = sum || '0'"
  ],
  [
    "the proofs of liabilities have the balances of their days",
    "UPDATE tollgate_ledger_entries SET balance = balance + 1 WHERE number = 1"
  ],
  // A row without a budget, one of another anchor, of another tenant, and of a key.
  ["a budget's row matches the books", budgetRow("bud_2", "'ten_acme'", "NULL")],
  ["a budget's row matches the books", budgetRow("bud_1", "'ten_acme'", "'app_1'")],
  ["a budget's row matches the books", budgetRow("bud_1", "'ten_other'", "NULL")],
  ["a budget's row matches the books", budgetRow("bud_1", "NULL", "NULL")],
  ["a budget's row matches the books", budgetRow("app_1", "'ten_acme'", "'app_1'")],
  [
    "a budget of the books has its row",
    budgetRow("bud_1", "'ten_acme'", "NULL"),
    `UPDATE tollgate_ledger_budgets SET id = '${ownId("bud")}' WHERE id = 'bud_1'`
  ],
  ["a run's row matches the books", runRow("run_1")],
  ["a run's row matches the books", runRow("bud_1")],
  [
    "a run of the books has its row",
    `UPDATE tollgate_ledger_budgets SET id = '${ownId("run")}', anchor = '${ownId("run")}', kind = 'run' WHERE id = 'bud_1'`
  ]
]

describe("Invariants", () => {
  it.effect("a healthy database has no findings, nor has an empty one", () =>
    Effect.gen(function* () {
      expect(yield* verify).toEqual([])
      yield* healthy
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("a budget and a run whose rows match the books are in order", () =>
    Effect.gen(function* () {
      yield* healthy
      yield* change(
        budgetRow("bud_1", "'ten_acme'", "NULL"),
        `UPDATE tollgate_ledger_budgets SET kind = 'run', anchor = id WHERE id = 'bud_1'`,
        `DELETE FROM tollgate_budgets_budgets`,
        runRow("bud_1")
      )
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect.each([0, 1])("a transfer that has paid out %d times is in order", (payments) =>
    Effect.gen(function* () {
      yield* healthy
      yield* change(...transfer(payments))
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("the books are double entry: world, revenue, customers and escrow are 0 together", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme, 10n * usd)
      yield* Scene.call({ cost: usd })
      yield* Effect.flatMap(Ledger, (ledger) =>
        Effect.zipRight(
          ledger.escrow({ account: "bil_acme", amount: 2n * usd, transfer: "trf_1" }),
          ledger.takeBack({ account: "bil_acme", amount: 3n * usd, reference: "pay_1" })
        )
      )
      expect(yield* trialBalance).toEqual({
        world: -7n * usd,
        revenue: usd,
        customers: 4n * usd,
        escrow: 2n * usd
      })
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect.each(broken)("%s", ([check, ...statements]) =>
    Effect.gen(function* () {
      yield* healthy
      yield* change(...statements)
      const findings = yield* verify
      expect(findings.map((finding) => finding.check)).toContain(check)
      for (const { expected, found, id, message } of findings) {
        expect({ expected, found, id }).toEqual({
          expected: expect.any(String),
          found: expect.any(String),
          id: expect.any(String)
        })
        expect(message).not.toMatch(/null|undefined/)
      }
    }).pipe(Effect.provide(Scene.layer))
  )

  it("each rule is broken here at least once", () => {
    expect([...new Set(broken.map(([check]) => check))].toSorted()).toEqual(checkNames.toSorted())
  })

  it.effect("a finding names what is off, and both figures", () =>
    Effect.gen(function* () {
      yield* healthy
      yield* change(
        "UPDATE tollgate_ledger_amounts SET granted = granted + 1 WHERE account = (SELECT number FROM tollgate_ledger_accounts WHERE id = 'bil_other')"
      )
      const [finding] = yield* verify
      expect(finding).toEqual({
        check: "balance is the sum of its entries",
        id: "bil_other",
        expected: "4999999993",
        found: "4999999994",
        message: "bil_other has a balance of 4.999999994 USD, but its entries sum to 4.999999993 USD"
      })
    }).pipe(Effect.provide(Scene.layer))
  )

  it.effect("a rule that is broken everywhere does not flood the report", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      yield* Effect.forEach(Array.from({ length: 300 }), () => Scene.call({ cost: 1n }), { concurrency: "unbounded" })
      yield* change("UPDATE tollgate_ledger_entries SET balance = balance + number")
      const found = (yield* verify).filter(({ check }) => check === "each balance follows from the one before")
      expect(found).toHaveLength(findingsMax)
    }).pipe(Effect.provide(Scene.layer))
  )
})
