/**
 * Stores the properties that many calls share only once. Reservations and usage records refer to them by number. Each row used to contain all of
 * them. An absent value (an application, a price, a reason that was not recorded yet) is an empty string here.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const columns = [
  "account_id",
  "tenant_id",
  "application_id",
  "usage_type",
  "endpoint",
  "model",
  "provider",
  "price",
  "billing_account_id",
  "billing_source_tenant_id",
  "billing_source_kind",
  "billing_source_why"
]

/** Returns the columns that a row used to have, each with the expression that reads it. */
const read = (column: (name: string) => string): string =>
  columns.map((name) => `COALESCE(${column(name)}, '') AS ${name}`).join(", ")

const ofRecord = read((name) => `r.${name}`)

const ofReservation = read((name) => {
  if (name === "billing_account_id") return "r.billing_account_id"
  if (!name.startsWith("billing_source_")) return `r.facts ->> '${name}'`
  return `r.source ->> '${name === "billing_source_tenant_id" ? "tenant_id" : name.slice("billing_source_".length)}'`
})

const numberOf = (selection: string, from: string): string =>
  `${from} r JOIN tollgate_usage_dimensions d ON (${columns.map((name) => `d.${name}`).join(", ")}) = (${selection.replaceAll(/ AS \w+/g, "")})`

const measures = `prompt_tokens, completion_tokens, units, cost, uncollected, reserved, usage_source, latency_ms, success, error_type`

const statements = [
  `CREATE TABLE tollgate_usage_dimensions (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    usage_type TEXT NOT NULL CHECK (usage_type IN ('inference', 'tool')),
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    price TEXT NOT NULL,
    billing_account_id TEXT NOT NULL,
    billing_source_tenant_id TEXT NOT NULL,
    billing_source_kind TEXT NOT NULL CHECK (billing_source_kind IN ('own', 'team')),
    billing_source_why TEXT NOT NULL,
    UNIQUE (${columns.join(", ")})
  ) STRICT`,
  `INSERT INTO tollgate_usage_dimensions (${columns.join(", ")})
    SELECT ${ofRecord} FROM tollgate_usage_records r UNION SELECT ${ofReservation} FROM tollgate_ledger_reservations r`,

  `CREATE TABLE tollgate_ledger_reservations_next (
    id TEXT PRIMARY KEY,
    dimensions INTEGER NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    at INTEGER NOT NULL,
    run TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `INSERT INTO tollgate_ledger_reservations_next SELECT r.id, d.number, r.amount, r.at, r.run
    FROM ${numberOf(ofReservation, "tollgate_ledger_reservations")} ORDER BY r.id`,
  `DROP TABLE tollgate_ledger_reservations`,
  `ALTER TABLE tollgate_ledger_reservations_next RENAME TO tollgate_ledger_reservations`,

  `CREATE TABLE tollgate_usage_records_next (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    dimensions INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    units REAL NOT NULL,
    cost INTEGER NOT NULL CHECK (cost >= 0),
    uncollected INTEGER NOT NULL CHECK (uncollected >= 0),
    reserved INTEGER NOT NULL,
    usage_source TEXT NOT NULL,
    latency_ms INTEGER NOT NULL,
    success INTEGER NOT NULL CHECK (success IN (0, 1)),
    error_type TEXT
  ) STRICT`,
  `INSERT INTO tollgate_usage_records_next SELECT r.seq, r.id, r.tenant_id, r.number, r.at, d.number,
      ${measures.replaceAll(/\w+/g, "r.$&")}
    FROM ${numberOf(ofRecord, "tollgate_usage_records")} ORDER BY r.seq`,
  `DROP TABLE tollgate_usage_records`,
  `ALTER TABLE tollgate_usage_records_next RENAME TO tollgate_usage_records`,
  // The last safeguard against charging a call twice. Ids begin with their time, so this index, too, grows at its end.
  `CREATE UNIQUE INDEX tollgate_usage_records_id ON tollgate_usage_records (id)`,
  `CREATE UNIQUE INDEX tollgate_usage_records_tenant ON tollgate_usage_records (seq >> 16, tenant_id, number, at)`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
)
