/** Backs up the database file while the service uses it, and restores it while the service is stopped. */
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import Sqlite from "better-sqlite3"
import { Data, Effect } from "effect"
import {
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { findingsMax } from "../ledger/rules/Check.ts"
import type { Finding } from "../ledger/rules/Check.ts"
import { blank } from "../../storage/sqlite/Files.ts"
import * as Opening from "../../storage/sqlite/Opening.ts"
import type { DatabaseUnusable } from "../../storage/database/Unusable.ts"
import * as Sql from "../../storage/sqlite/Sql.ts"
import { reasonOf } from "../../storage/database/Unusable.ts"

export class BackupFailed extends Data.TaggedError("BackupFailed")<{ readonly message: string }> {}

const failed = (message: string) => new BackupFailed({ message })

/** Fails unless the file exists and contains books. */
const held = (file: string) =>
  Effect.filterOrFail(
    Opening.look(file, { writing: false }),
    (applied) => applied !== undefined && applied > 0,
    (applied) => failed(applied === undefined ? `${file} does not exist` : `${file} contains no books`)
  )

/** Writes a consistent copy of `file` to `to`, which must not exist. Other programs may write to `file` meanwhile. */
export const backup = (file: string, to: string): Effect.Effect<void, BackupFailed | DatabaseUnusable> =>
  Effect.gen(function* () {
    yield* held(file)
    const target = lstatSync(to, { throwIfNoEntry: false })
    if (target?.isDirectory() === true) return yield* failed(`${to} is a folder; pass the name of a file in it`)
    if (target !== undefined) return yield* failed(`${to} already exists`)
    if (!existsSync(dirname(to))) return yield* failed(`${to}: the folder ${dirname(to)} does not exist`)
    if (ownFiles(realpathSync(file)).includes(join(realpathSync(dirname(to)), basename(to))))
      return yield* failed(`SQLite uses the name ${to} for the database itself; choose another`)
    yield* Effect.acquireUseRelease(
      Effect.sync(() => partOf(to)),
      (part) => Effect.zipRight(copy(file, part), publish(part, to)),
      (part) => Effect.sync(() => rmSync(part, { force: true }))
    )
  })

const ownFiles = (file: string) => ["", "-wal", "-shm", "-journal", ".lock"].map((tail) => file + tail)

/** Returns the name for the unfinished copy, and removes unfinished copies of stopped processes and of this one. */
const partOf = (to: string): string => {
  const prefix = `${basename(to)}.part-`
  for (const name of readdirSync(dirname(to))) {
    const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : Number.NaN
    if (Number.isInteger(pid) && !isRunning(pid)) rmSync(join(dirname(to), name), { force: true })
  }
  return join(dirname(to), `${prefix}${process.pid}`)
}

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return pid !== process.pid
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

const copy = (file: string, to: string) =>
  Effect.flatMap(SqlClient, (sql) => sql`VACUUM INTO ${to}`).pipe(
    Effect.provide(SqliteClient.layer({ filename: file, readonly: true, disableWAL: true })),
    Effect.scoped,
    (vacuum) => Effect.zipRight(blank(to), vacuum),
    Effect.catchAllCause((cause) =>
      // A write error concerns the copy; any other error concerns the source.
      failed(`${file} could not be copied: ${Opening.wordsOf(isWriting(cause) ? to : file, cause)}`)
    )
  )

const isWriting = (cause: unknown): boolean =>
  /^(SQLITE_(FULL|IOERR|CANTOPEN|READONLY)|E)/.test(Opening.faultOf(cause)?.code ?? "")

/** Gives the finished copy its name. Fails if a file with that name exists by now. */
const publish = (part: string, to: string) =>
  Effect.try({
    try: () => {
      try {
        linkSync(part, to)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EEXIST") throw failed(`${to} already exists`)
        // Some file systems do not support hard links. An empty file claims the name, and the copy replaces it.
        closeSync(openSync(to, "wx"))
        try {
          renameSync(part, to)
        } catch (cause) {
          rmSync(to, { force: true })
          throw cause
        }
      }
    },
    catch: (error) =>
      error instanceof BackupFailed ? error : failed(`${to} could not be written: ${Opening.wordsOf(to, error)}`)
  })

export type Verify = Effect.Effect<ReadonlyArray<Finding>, never, SqlClient>

/** Finds the damage that SQLite's integrity check reports. */
export const damage = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql<{ integrity_check: string }>`PRAGMA integrity_check(${sql.literal(String(findingsMax))})`
  const damaged = rows.map(({ integrity_check }) => integrity_check).filter((line) => line !== "ok")
  return damaged.map((message): Finding => ({ check: "file", id: "", expected: "ok", found: message, message }))
}).pipe(Effect.orDie)

/** Returns a file's damage or, if there is none, the findings of `verify`. */
const check = (verify: Verify) =>
  Effect.flatMap(damage, (damaged) => (damaged.length > 0 ? Effect.succeed(damaged) : verify))

/**
 * Verifies the copy `from`, then replaces `file` with it. Returns the new name of the old file, or `undefined` if there was none. No process may be
 * using `file`. The copy itself does not change.
 */
export const restore = (
  from: string,
  file: string,
  now: number,
  verify: Verify
): Effect.Effect<string | undefined, BackupFailed | DatabaseUnusable> =>
  Effect.gen(function* () {
    yield* held(from)
    if (existsSync(file) && realpathSync(from) === realpathSync(file))
      return yield* failed(`${from} is the database itself`)
    const fresh = `${file}.restored`
    const remove = Effect.sync(() => {
      for (const tail of tails) rmSync(fresh + tail, { force: true })
    })
    const whole = Effect.gen(function* () {
      yield* backup(from, fresh)
      // Opening the file migrates it, as the service does at startup.
      const wrong = yield* check(verify).pipe(
        Effect.provide(Sql.layer(fresh)),
        Effect.scoped,
        Effect.catchAllCause((cause) =>
          failed(`${from} is not a database of this service: ${reasonOf(cause).replaceAll(fresh, from)}`)
        )
      )
      if (wrong.length > 0)
        return yield* failed(
          `${from} fails its checks:\n${wrong
            .slice(0, 20)
            .map(({ check, message }) => `${check}: ${message}`)
            .join("\n")}`
        )
      return yield* Effect.sync(() => replace(file, fresh, now))
    })
    return yield* Effect.zipRight(remove, Effect.ensuring(whole, remove))
  })

/** A database in WAL mode consists of up to three files. */
const tails = ["", "-wal", "-shm"]

const replace = (file: string, fresh: string, now: number): string | undefined => {
  const old = statSync(file, { throwIfNoEntry: false })
  const { gid, uid } = old ?? statSync(dirname(file))
  for (const tail of tails) {
    if (process.getuid?.() === 0 && existsSync(fresh + tail)) chownSync(fresh + tail, uid, gid)
  }
  const previous = old === undefined ? undefined : `${file}.replaced-${now}`
  if (old !== undefined) fold(file)
  // Move the log before its database, because SQLite would apply it to another database of that name.
  for (const tail of tails.toReversed()) {
    if (previous !== undefined && existsSync(file + tail)) renameSync(file + tail, previous + tail)
    else rmSync(file + tail, { force: true })
  }
  for (const tail of tails) if (existsSync(fresh + tail)) renameSync(fresh + tail, file + tail)
  return previous
}

/** Checkpoints the database into a single file, if possible. */
const fold = (file: string): void => {
  try {
    const db = new Sqlite(file, { timeout: 5_000 })
    try {
      db.pragma("wal_checkpoint(TRUNCATE)")
    } finally {
      db.close()
    }
  } catch {
    // A damaged database is renamed unchanged.
  }
}
