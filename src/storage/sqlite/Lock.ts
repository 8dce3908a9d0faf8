/**
 * A lock that the operating system releases when the process ends, however it ends. It is an exclusive SQLite transaction on a separate empty file.
 * SQLite uses `fcntl`, so the lock excludes all processes on the file system, including those in containers, and other connections of the same
 * process. This process must not open and close the file in any other way, because that would release the lock.
 */
import Sqlite from "better-sqlite3"
import { chownSync, existsSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"

export interface Lock {
  readonly release: () => void
}

/**
 * Locks the file and creates it if necessary. `patience` is the maximum wait, in milliseconds. Throws SQLite's error, such as `SQLITE_BUSY` if
 * another process holds the lock.
 */
export const take = (path: string, patience: number): Lock => {
  const db = new Sqlite(path, { timeout: patience })
  try {
    // Nothing is written, so avoid a journal file that would have to be removed.
    db.pragma("journal_mode = MEMORY")
    db.exec("BEGIN EXCLUSIVE")
  } catch (error) {
    db.close()
    throw error
  }
  return { release: () => db.close() }
}

/** The maximum number of attempts if other processes keep removing the file before it is locked. */
const attemptsMax = 20

/**
 * Acquires the lock on a file that exists only while it is locked. A file created by root is given to the folder's owner, who otherwise could not
 * test the lock.
 */
export const acquireNew = (path: string): Lock => {
  for (let attempt = 1; ; attempt++) {
    writeFileSync(path, "", { flag: "a", mode: 0o600 })
    const folder = statSync(dirname(path))
    if (process.getuid?.() === 0 && folder.uid !== 0) chownSync(path, folder.uid, folder.gid)
    const lock = take(path, 1_000)
    // Another process might have removed the file before it was locked.
    if (existsSync(path))
      return {
        release: () => {
          lock.release()
          rmSync(path, { force: true })
        }
      }
    lock.release()
    if (attempt === attemptsMax) throw new Error(`other processes keep removing ${path}`)
  }
}

/** Returns whether a process holds the lock. If none does, removes the file if possible. */
export const isLocked = (path: string): boolean => {
  if (!existsSync(path)) return false
  let lock: Lock
  try {
    lock = take(path, 0)
  } catch {
    // The file is locked, perhaps by a process that is about to remove it. A file that this user cannot open counts as locked.
    return existsSync(path)
  }
  try {
    rmSync(path, { force: true })
  } catch {
    // On systems that cannot remove open files, the unlocked file remains.
  }
  lock.release()
  return false
}
