/**
 * The SQLite driver in the executable. Its native part can only be loaded from a file, so it is put into the data folder at its
 * first use, under a name that holds its hash, and compared byte by byte before every load: whoever can write there could write
 * the database too, but not slip code into the process by a file left from elsewhere.
 */
import createDatabase from "driver:database"
import SqliteError from "driver:sqlite-error"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { getRawAsset } from "node:sea"

/** Replaced when the executable is built. */
declare const DRIVER_HASH: string

let addon: unknown

const load = (): unknown => (addon ??= open(join(resolve(process.env.DATA_DIR || "./data"), "native")))

const open = (folder: string): unknown => {
  const path = join(folder, `better_sqlite3-${DRIVER_HASH}.node`)
  const bytes = Buffer.from(getRawAsset("better_sqlite3.node") as ArrayBuffer)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (!isThere(path, bytes)) {
      const beside = `${path}.${process.pid}.${Math.round(performance.now() * 1000)}`
      writeFileSync(beside, bytes, { flag: "wx", mode: 0o500 })
      renameSync(beside, path)
      if (!isThere(path, bytes)) throw new Error(`${path} is not what was written to it`)
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

const isThere = (path: string, bytes: Buffer): boolean => {
  try {
    return readFileSync(path).equals(bytes)
  } catch {
    return false
  }
}

export default Object.assign(createDatabase(load, false), { SqliteError })
