/** Copies of the database: taken while it is served, and put back in its place when it is not. */
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Data, Effect } from "effect"
import { existsSync, renameSync, rmSync } from "node:fs"
import { verify } from "../ledger/Invariants.ts"
import * as Sql from "./Sql.ts"

export class BackupFailed extends Data.TaggedError("BackupFailed")<{ readonly message: string }> {}

const failed = (what: string) => (error: unknown) =>
  new BackupFailed({ message: `${what}: ${error instanceof Error ? error.message : String(error)}` })

/** Writes a whole copy of `file` to `to`, as it is at one moment. Whoever writes to it meanwhile is not held up. */
export const backup = (file: string, to: string): Effect.Effect<void, BackupFailed> =>
  Effect.gen(function* () {
    if (!existsSync(file)) return yield* new BackupFailed({ message: `${file}: there is no such database` })
    if (existsSync(to)) return yield* new BackupFailed({ message: `--to ${to}: it is there already` })
    const fresh = `${to}.part`
    rmSync(fresh, { force: true })
    yield* Effect.flatMap(SqlClient, (sql) => sql`VACUUM INTO ${fresh}`).pipe(
      Effect.provide(SqliteClient.layer({ filename: file, readonly: true, disableWAL: true })),
      Effect.scoped,
      Effect.mapError(failed(`${file} could not be copied`))
    )
    renameSync(fresh, to)
  })

/** What is off in a copy: broken pages, or books that are not right. It is brought up to date first, as at a start. */
const check = (file: string): Effect.Effect<ReadonlyArray<string>, BackupFailed> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const rows = yield* sql<{ integrity_check: string }>`PRAGMA integrity_check`
    const broken = rows.map(({ integrity_check }) => integrity_check).filter((line) => line !== "ok")
    if (broken.length > 0) return broken
    return (yield* verify).map(({ check, message }) => `${check}: ${message}`)
  }).pipe(
    Effect.provide(Sql.layer(file)),
    Effect.scoped,
    Effect.mapError(failed(`${file} is not a database of this service`))
  )

/**
 * Puts the copy `from` in the place of `file`, once it was found whole; answers where the old file lies now. Nobody may be serving
 * it. The copy itself stays as it is.
 */
export const restore = (from: string, file: string, now: number): Effect.Effect<string | undefined, BackupFailed> =>
  Effect.gen(function* () {
    const fresh = `${file}.restored`
    for (const tail of tails) rmSync(fresh + tail, { force: true })
    yield* backup(from, fresh)
    const wrong = yield* check(fresh)
    if (wrong.length > 0) {
      for (const tail of tails) rmSync(fresh + tail, { force: true })
      return yield* new BackupFailed({ message: `${from} is not whole:\n${wrong.slice(0, 20).join("\n")}` })
    }
    const kept = existsSync(file) ? `${file}.replaced-${now}` : undefined
    for (const tail of tails) {
      // What the old file had not yet taken in stays with it.
      if (kept !== undefined && existsSync(file + tail)) renameSync(file + tail, kept + tail)
      else rmSync(file + tail, { force: true })
      if (existsSync(fresh + tail)) renameSync(fresh + tail, file + tail)
    }
    return kept
  })

/** A database in WAL mode is up to three files. */
const tails = ["", "-wal", "-shm"]
