/**
 * Checks a database file before it is used, and describes in one sentence why a file cannot be used.
 *
 * Where the specification is silent:
 * - An empty file, another program's file, and a log without its database are refused and not changed. Only `serve`, `migrate` and `restore` create a
 *   database.
 * - When the service starts, it waits up to a minute for a file that another process has locked. It logs this immediately and every ten seconds. A
 *   command waits five seconds.
 */
import Sqlite from "better-sqlite3"
import { Cause, Effect } from "effect"
import { accessSync, constants, statSync } from "node:fs"
import { dirname } from "node:path"
import { copyTable, DatabaseUnusable, migrationsTable, selectSource, unfinishedCopy } from "../database/Unusable.ts"
import type { Use } from "../database/Unusable.ts"

/**
 * Returns the newest migration applied to a file: 0 if there is none, and `undefined` if the file does not exist. Changes nothing. `writing` also
 * checks for write permission. Fails if the file is not a database of this service.
 */
export const look = (
  file: string,
  { copying = false, patience = 5_000, writing }: Use
): Effect.Effect<number | undefined, DatabaseUnusable> =>
  Effect.try({
    try: () => {
      const unusable = (why: string) => new DatabaseUnusable({ message: `${file} ${why}` })
      const permitted = (path: string, mode: number, why: string) => {
        if (!isPermitted(path, mode)) throw unusable(why)
      }
      const folder = () => permitted(dirname(file), constants.W_OK, `is in a folder that this user may not write to`)
      const found = statSync(file, { throwIfNoEntry: false })
      if (found === undefined) {
        // SQLite would delete the log, and with it the commits that are not in the database yet.
        if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
          throw unusable(`is missing, but ${file}-wal exists: put the file back next to it, or move ${file}-wal away`)
        if (writing) folder()
        return undefined
      }
      if (found.isDirectory()) throw unusable("is a folder, not a database file")
      if (!found.isFile()) throw unusable("is not a file")
      if (found.size === 0) throw unusable("is empty: restore a backup, or delete it to begin with empty books")
      // SQLite would accept a file this short as an empty database.
      if (found.size < 512) throw unusable(notSqlite)
      const owner =
        process.getuid === undefined
          ? ""
          : `: it belongs to user ${found.uid}, and this process runs as user ${process.getuid()}`
      permitted(file, constants.R_OK, `is not readable by this user${owner}`)
      if (writing) {
        permitted(file, constants.W_OK, `is not writable by this user, or is on a read-only disk${owner}`)
        folder()
        for (const tail of ["-wal", "-shm"])
          permitted(
            file + tail,
            constants.R_OK | constants.W_OK,
            `has a ${file}${tail} that this user may not write to`
          )
      }
      return appliedIn(file, copying, patience)
    },
    catch: (error) => (error instanceof DatabaseUnusable ? error : unusableFor(file, error))
  })

const unusableFor = (file: string, error: unknown): DatabaseUnusable =>
  new DatabaseUnusable({
    message: wordsOf(file, error),
    is_locked: /^SQLITE_(BUSY|LOCKED)/.test(faultOf(error)?.code ?? "")
  })

/** Fails unless the file can be locked for writing now. Writes nothing. */
export const tryToWrite = (file: string): Effect.Effect<void, DatabaseUnusable> =>
  Effect.try({
    try: () => {
      const db = new Sqlite(file, { fileMustExist: true, timeout: 0 })
      try {
        db.exec("BEGIN IMMEDIATE; ROLLBACK")
      } finally {
        db.close()
      }
    },
    catch: (error) => unusableFor(file, error)
  })

/** The waits for a locked file, in milliseconds. */
export interface Waiting {
  readonly most: number
  /** The interval between log lines. */
  readonly said: number
}

/** Retries while another process has locked the file, for at most `most`, and logs this. Uses real time, independently of the test clock. */
export const whenUnlocked = <A, R>(
  file: string,
  effect: Effect.Effect<A, DatabaseUnusable, R>,
  { most, said }: Waiting = { most: 60_000, said: 10_000 }
): Effect.Effect<A, DatabaseUnusable, R> =>
  Effect.suspend(() => {
    const began = performance.now()
    let sayAt = began
    const attempt: Effect.Effect<A, DatabaseUnusable, R> = Effect.catchAll(effect, (error) => {
      if (error.is_locked !== true) return error
      const now = performance.now()
      if (now - began >= most)
        return new DatabaseUnusable({
          message: `${file} is still locked by another process after ${most / 1_000} s: stop that process, or start again when it has finished`
        })
      if (now < sayAt) return Effect.zipRight(lockPause, attempt)
      sayAt = now + said
      return Effect.logWarning(
        `${file} is locked by another process: waiting up to ${Math.ceil((began + most - now) / 1_000)} s`
      ).pipe(Effect.zipRight(lockPause), Effect.zipRight(attempt))
    })
    return attempt
  })

const lockPause = Effect.promise(() => new Promise<void>((done) => setTimeout(done, 200)))

const notSqlite = "is not a SQLite database: it is damaged or another kind of file"

/** Returns whether access is permitted. A missing file counts as permitted, because it can be created. */
const isPermitted = (path: string, mode: number): boolean => {
  try {
    accessSync(path, mode)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT"
  }
}

const appliedIn = (file: string, copying: boolean, patience: number): number => {
  const db = new Sqlite(file, { readonly: true, timeout: patience })
  try {
    const names = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as Array<string>
    if (!copying && names.includes(copyTable))
      throw unfinishedCopy(file, String(db.prepare(selectSource).pluck().get()))
    if (names.includes(migrationsTable))
      return (db.prepare(`SELECT max(migration_id) FROM ${migrationsTable}`).pluck().get() as number | null) ?? 0
    const other = names.find((name) => !name.startsWith("sqlite_"))
    if (other === undefined) return 0
    throw new DatabaseUnusable({
      message: `${file} is another program's database: it contains the table ${other} and no table of this service`
    })
  } finally {
    db.close()
  }
}

/** Returns the underlying error of SQLite or the file system, if there is one. */
export const faultOf = (error: unknown): (Error & { readonly code: string }) | undefined => {
  const causes = new Set<unknown>()
  let one: unknown = Cause.isCause(error) ? Cause.squash(error) : error
  while (one instanceof Error && !causes.has(one)) {
    causes.add(one)
    if ("code" in one && typeof one.code === "string" && /^(SQLITE_|E[A-Z]+$)/.test(one.code))
      return one as Error & { readonly code: string }
    one = one.cause
  }
  return undefined
}

/** Describes the error in one sentence, with advice for the operator. */
export const wordsOf = (file: string, error: unknown): string => {
  const fault = faultOf(error)
  if (fault === undefined) return `${file} could not be used: ${error instanceof Error ? error.message : String(error)}`
  const [, kind = fault.code] = /^SQLITE_([A-Z]+)/.exec(fault.code) ?? []
  switch (kind) {
    case "BUSY":
    case "LOCKED":
      return `${file} is locked by another process: try again when that process has finished`
    case "FULL":
    case "ENOSPC":
    case "EDQUOT":
      return `${file} could not be written: the disk is full`
    case "NOTADB":
      return `${file} ${notSqlite}`
    case "CORRUPT":
      return `${file} is damaged or truncated (${fault.message}): restore a backup (tollgate restore --from FILE)`
    case "READONLY":
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `${file} is not writable by this user, or is on a read-only disk`
    case "CANTOPEN":
      return `${file} could not be opened: may this user read it, and write to ${dirname(file)}?`
    case "IOERR":
    case "EIO":
      return `${file} could not be used: its disk is failing (${fault.code})`
    case "ERROR":
      return `${file} is not as this service left it (${fault.message}): restore a backup (tollgate restore --from FILE)`
    default:
      return `${file} could not be used: ${fault.message} (${fault.code})`
  }
}
