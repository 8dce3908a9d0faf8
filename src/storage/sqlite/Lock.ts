/**
 * A lock that the operating system releases when the process ends, however it ends: an exclusive transaction on an empty file of its own.
 * SQLite holds it by `fcntl`, so it is one process's among all that share the file system, containers included, and one connection's
 * within a process. Opening and closing the file by other means in this process would release it.
 */
import Sqlite from "better-sqlite3"
import { chownSync, existsSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"

export interface Lock {
  readonly release: () => void
}

/**
 * Takes the lock on the file, which is made if it is not there. `patience`: how long another's is waited for, in milliseconds. Throws
 * what SQLite does, `SQLITE_BUSY` where another has it.
 */
export const take = (path: string, patience: number): Lock => {
  const db = new Sqlite(path, { timeout: patience })
  try {
    // Nothing is written, so a journal on disk would only be another file to remove.
    db.pragma("journal_mode = MEMORY")
    db.exec("BEGIN EXCLUSIVE")
  } catch (error) {
    db.close()
    throw error
  }
  return { release: () => db.close() }
}

/** How often a file is made anew that others remove before it is locked. */
const attemptsMax = 20

/**
 * Takes the lock on a file that is only there while it is locked. It belongs to the owner of the folder, as all that root makes there:
 * another user could not tell whether it is locked.
 */
export const takeNew = (path: string): Lock => {
  for (let attempt = 1; ; attempt++) {
    writeFileSync(path, "", { flag: "a", mode: 0o600 })
    const folder = statSync(dirname(path))
    if (process.getuid?.() === 0 && folder.uid !== 0) chownSync(path, folder.uid, folder.gid)
    const lock = take(path, 1_000)
    // Another process may have removed it as unlocked before it was locked.
    if (existsSync(path))
      return {
        release: () => {
          lock.release()
          rmSync(path, { force: true })
        }
      }
    lock.release()
    if (attempt === attemptsMax) throw new Error(`${path} is removed by others again and again`)
  }
}

/** Whether a process holds the lock. An unlocked file is removed. */
export const isTaken = (path: string): boolean => {
  if (!existsSync(path)) return false
  let lock: Lock
  try {
    lock = take(path, 0)
  } catch {
    // Locked, perhaps by a process that is about to remove it. One that this user may not open counts as locked.
    return existsSync(path)
  }
  try {
    rmSync(path, { force: true })
  } catch {
    // It stays, unlocked, where open files cannot be removed.
  }
  lock.release()
  return false
}
