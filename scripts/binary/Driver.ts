/**
 * Loads the SQLite driver in the executable. Its native part can be loaded only from a file, so the first use writes it into the data folder, with
 * its hash in the name. Each load first compares all of its bytes. A user with write access to that folder could change the database as well, but
 * must not be able to inject code by placing a file there in advance.
 */
import createDatabase from "driver:database"
import SqliteError from "driver:sqlite-error"
import { lchownSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { bytesOf, textOf } from "./Assets.ts"

let addon: unknown

const load = (): unknown => (addon ??= open(join(resolve(process.env.DATA_DIR || "./data"), "native")))

const open = (folder: string): unknown => {
  const path = join(folder, `better_sqlite3-${textOf("better_sqlite3.hash")}.node`)
  const bytes = bytesOf("better_sqlite3.node")
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (!isThere(path, bytes)) {
      const temporaryPath = `${path}.${process.pid}.${Math.round(performance.now() * 1000)}`
      writeFileSync(temporaryPath, bytes, { flag: "wx", mode: 0o500 })
      renameSync(temporaryPath, path)
      belongsToOwner(folder, path)
      if (!isThere(path, bytes)) throw new Error(`${path} differs from what was written`)
    }
    const module = { exports: {} }
    process.dlopen(module, path)
    return module.exports
  } catch (error) {
    rmSync(path, { force: true })
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`DATA_DIR: the SQLite driver could not be loaded from ${folder}: ${why}`, { cause: error })
  }
}

/** If root writes a file into another user's data folder, gives the file to that user, who may start the service later. */
const belongsToOwner = (folder: string, path: string): void => {
  const { gid, uid } = statSync(dirname(folder))
  if (process.getuid?.() !== 0 || uid === 0) return
  lchownSync(path, uid, gid)
  lchownSync(folder, uid, gid)
}

const isThere = (path: string, bytes: Buffer): boolean => {
  try {
    return readFileSync(path).equals(bytes)
  } catch {
    return false
  }
}

export default Object.assign(createDatabase(load, false), { SqliteError })
