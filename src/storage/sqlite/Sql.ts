/** Opens SQLite databases, after running their migrations. */
import * as Migrator from "@effect/sql/Migrator"
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer } from "effect"
import { rmSync } from "node:fs"
import ledger from "../migrations/0001_ledger.ts"
import identity from "../migrations/0002_identity.ts"
import mail from "../migrations/0003_mail.ts"
import organisations from "../migrations/0004_organisations.ts"
import pooling from "../migrations/0005_pooling.ts"
import transfers from "../migrations/0006_transfers.ts"
import explain from "../migrations/0007_explain.ts"
import idempotency from "../migrations/0008_idempotency.ts"
import media from "../migrations/0009_media.ts"
import payments from "../migrations/0010_payments.ts"
import clients from "../migrations/0011_clients.ts"
import dimensions from "../migrations/0012_dimensions.ts"
import autoreload from "../migrations/0013_autoreload.ts"
import scopes from "../migrations/0014_scopes.ts"
import gauges from "../migrations/0017_gauges.ts"
import readiness from "../migrations/0018_readiness.ts"
import movements from "../migrations/0019_movements.ts"
import holders from "../migrations/0020_holders.ts"
import sorted from "../migrations/0021_sorted.ts"
import tails from "../migrations/0022_tails.ts"
import verifications from "../migrations/0023_verifications.ts"
import chains from "../migrations/0024_chains.ts"
import tokenDetails from "../migrations/0025_token_details.ts"
import devices from "../migrations/0026_devices.ts"
import limits from "../migrations/0027_limits.ts"
import operator from "../migrations/0028_operator.ts"
import consoleLists from "../migrations/0029_console.ts"
import tallies from "../migrations/0030_tallies.ts"
import byProvider from "../migrations/0031_by_provider.ts"
import debts from "../migrations/0032_debts.ts"
import keptAnswers from "../migrations/0033_kept_answers.ts"
import belonging from "../migrations/0034_belonging.ts"
import keptRows from "../migrations/0035_kept_rows.ts"
import signIn from "../migrations/0037_sign_in.ts"
import provisioning from "../migrations/0036_provisioning.ts"
import allowances from "../migrations/0038_allowances.ts"
import vendorCalls from "../migrations/0046_vendor_calls.ts"
import reconciliations from "../migrations/0047_reconciliations.ts"
import requestIds from "../migrations/0039_request_ids.ts"
import passkeysScim from "../migrations/0040_passkeys_scim.ts"
import mediaList from "../migrations/0041_media_list.ts"
import suspendedBy from "../migrations/0042_suspended_by.ts"
import byKey from "../migrations/0043_by_key.ts"
import budgets from "../migrations/0044_budgets.ts"
import openRuns from "../migrations/0045_open_runs.ts"
import log from "../migrations/0048_log.ts"
import logProofs from "../migrations/0049_log_proofs.ts"
import runRecords from "../migrations/0050_run_records.ts"
import logForms from "../migrations/0051_log_forms.ts"
import bodyHashes from "../migrations/0052_body_hashes.ts"
import { blank } from "./Files.ts"
import { wordsOf } from "./Opening.ts"
import { migrationsTable as table, reasonOf, UpgradeFailed } from "../database/Unusable.ts"

/**
 * The migrations. The list is append-only, because a database never applies a migration twice. They are recorded in a table with a distinct name, so
 * a host can have its own migrations.
 */
export const migrations = {
  "0001_ledger": ledger,
  "0002_identity": identity,
  "0003_mail": mail,
  "0004_organisations": organisations,
  "0005_pooling": pooling,
  "0006_transfers": transfers,
  "0007_explain": explain,
  "0008_idempotency": idempotency,
  "0009_media": media,
  "0010_payments": payments,
  "0011_clients": clients,
  "0012_dimensions": dimensions,
  "0013_autoreload": autoreload,
  "0014_scopes": scopes,
  "0017_gauges": gauges,
  "0018_readiness": readiness,
  "0019_movements": movements,
  "0020_holders": holders,
  "0021_sorted": sorted,
  "0022_tails": tails,
  "0023_verifications": verifications,
  "0024_chains": chains,
  "0025_token_details": tokenDetails,
  "0026_devices": devices,
  "0027_limits": limits,
  "0028_operator": operator,
  "0029_console": consoleLists,
  "0030_tallies": tallies,
  "0031_by_provider": byProvider,
  "0032_debts": debts,
  "0033_kept_answers": keptAnswers,
  "0034_belonging": belonging,
  "0035_kept_rows": keptRows,
  "0036_provisioning": provisioning,
  "0037_sign_in": signIn,
  "0038_allowances": allowances,
  "0039_request_ids": requestIds,
  "0040_passkeys_scim": passkeysScim,
  "0041_media_list": mediaList,
  "0042_suspended_by": suspendedBy,
  "0043_by_key": byKey,
  "0044_budgets": budgets,
  "0045_open_runs": openRuns,
  "0046_vendor_calls": vendorCalls,
  "0047_reconciliations": reconciliations,
  "0048_log": log,
  "0049_log_proofs": logProofs,
  "0050_run_records": runRecords,
  "0051_log_forms": logForms,
  "0052_body_hashes": bodyHashes
}

/** The number of the newest migration. */
export const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** Returns the newest applied migration, or 0 for an empty database. */
const appliedTo = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [found] = yield* sql`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ${table}`
  if (found === undefined) return 0
  const [row] = yield* sql<{ id: number | null }>`SELECT max(migration_id) AS id FROM ${sql(table)}`
  return row?.id ?? 0
})

/**
 * Applies the missing migrations and checks the result, because the migrator mistakes a failure of its first write for a concurrent migration and
 * reports success.
 */
const applyMissing = Effect.gen(function* () {
  const done = yield* Migrator.make({})({ loader: Migrator.fromRecord(migrations), table })
  if ((yield* appliedTo) !== newest)
    return yield* new UpgradeFailed({ message: "the table of migrations could not be written" })
  return done
})

/**
 * Applies all missing migrations in one transaction and returns their numbers and names. A file that contains data is first copied to
 * `<file>.before-<migration>`.
 */
export const migrate = (file: string | undefined) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const applied = yield* appliedTo
    const where = file ?? "the database"
    if (applied > newest) {
      return yield* new UpgradeFailed({
        message: `${where} was written by a newer version (migration ${applied}; this version knows ${newest}): run that version, or restore a backup`
      })
    }
    if (applied === newest) return []
    const snapshot =
      file === undefined || applied === 0 ? undefined : `${file}.before-${String(newest).padStart(4, "0")}`
    if (snapshot !== undefined) {
      const remove = Effect.sync(() => rmSync(snapshot, { force: true }))
      yield* remove
      yield* Effect.catchAllCause(Effect.zipRight(blank(snapshot), sql`VACUUM INTO ${snapshot}`), (cause) =>
        Effect.zipRight(
          remove,
          new UpgradeFailed({
            message: `${where} was not changed, because no snapshot could be written next to it: ${wordsOf(snapshot, cause)}`
          })
        )
      )
    }
    return yield* sql.withTransaction(applyMissing).pipe(
      leavingReferences,
      Effect.catchAllCause((cause) =>
        Effect.fail(
          new UpgradeFailed({
            message:
              `${where} could not be upgraded and is unchanged` +
              `${snapshot === undefined ? "" : ` (a snapshot is at ${snapshot})`}: ${reasonOf(cause)}`
          })
        )
      )
    )
  })

/**
 * Protects a host's objects that refer to a table while a migration replaces the table. Otherwise, rows that refer to it would be deleted with it,
 * and views would not find it. Both settings belong to the connection and can be changed only outside a transaction.
 */
const leavingReferences = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.acquireUseRelease(
      Effect.gen(function* () {
        const [keys] = yield* sql<{ foreign_keys: number }>`PRAGMA foreign_keys`
        const [names] = yield* sql<{ legacy_alter_table: number }>`PRAGMA legacy_alter_table`
        yield* sql`PRAGMA foreign_keys = OFF`
        yield* sql`PRAGMA legacy_alter_table = ON`
        return { keys: keys?.foreign_keys === 1 ? "ON" : "OFF", names: names?.legacy_alter_table === 1 ? "ON" : "OFF" }
      }),
      () => effect,
      ({ keys, names }) =>
        Effect.zipRight(
          sql.unsafe(`PRAGMA legacy_alter_table = ${names}`),
          sql.unsafe(`PRAGMA foreign_keys = ${keys}`)
        ).pipe(Effect.orDie)
    )
  )

const migrated = (file: string | undefined) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const sql = yield* SqlClient
      // In WAL mode, the default of NORMAL can lose the last commits in a power failure.
      yield* sql`PRAGMA synchronous = FULL`
      yield* migrate(file)
    })
  )

/** Opens a SQLite file for reading and migrates it first. */
export const layer = (file: string) => {
  const client = SqliteClient.layer({ filename: file })
  const readOnly = Layer.effectDiscard(Effect.flatMap(SqlClient, (sql) => sql`PRAGMA query_only = ON`))
  return readOnly.pipe(Layer.provide(migrated(file)), Layer.provideMerge(client))
}

/** The bytes of an empty, migrated database, once there is one. */
let empty: Uint8Array | undefined

const keepEmpty = Layer.effectDiscard(
  Effect.map(
    Effect.flatMap(SqliteClient.SqliteClient, (sql) => sql.export),
    (bytes) => void (empty = bytes)
  )
)

/**
 * Opens a new, migrated database in memory for reading and writing. The writer shares the connection. A process migrates only its first database in
 * memory. Later ones are copies of it, which takes 2 % of the time.
 */
export const layerMemory = Layer.suspend(() =>
  // The driver also opens bytes, although the client's type does not allow that.
  Layer.provideMerge(
    empty === undefined ? Layer.provideMerge(keepEmpty, migrated(undefined)) : migrated(undefined),
    SqliteClient.layer({ filename: (empty as unknown as string | undefined) ?? ":memory:" })
  )
)

/** Migrates a file and closes it. Returns the applied migrations. */
export const migrateFile = (file: string) => Effect.provide(migrate(file), SqliteClient.layer({ filename: file }))
