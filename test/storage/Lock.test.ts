/** Locks that end with their process: taken once, told apart from files that nobody has locked, removed with their owner. */
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import * as Lock from "../../src/storage/sqlite/Lock.ts"
import { freshFolder } from "../support/Service.ts"

let folder: string
let path: string
beforeEach(() => {
  folder = freshFolder()
  path = join(folder, "books.db.run_1")
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe("a lock", () => {
  it("is had by one at a time, and its file is there for as long", () => {
    const lock = Lock.acquireNew(path)
    expect(Lock.isLocked(path)).toBe(true)
    expect(() => Lock.take(path, 0)).toThrow("database is locked")
    // To look does not release it.
    expect(Lock.isLocked(path)).toBe(true)
    expect(readdirSync(folder)).toEqual(["books.db.run_1"])
    lock.release()
    expect(existsSync(path)).toBe(false)
    expect(Lock.isLocked(path)).toBe(false)
  })

  it("is nobody's where the process that made the file has ended, and the file is removed", () => {
    writeFileSync(path, "")
    expect(Lock.isLocked(path)).toBe(false)
    expect(existsSync(path)).toBe(false)
  })

  it("is seen from another thread of the process too", async () => {
    const lock = Lock.acquireNew(path)
    const worker = new Worker(
      `const Sqlite = require("better-sqlite3")
       const { parentPort, workerData } = require("node:worker_threads")
       const db = new Sqlite(workerData, { timeout: 0 })
       try { db.exec("BEGIN EXCLUSIVE"); parentPort.postMessage("free") } catch (error) { parentPort.postMessage(error.code) }
       db.close()`,
      { eval: true, workerData: path }
    )
    expect(await new Promise((resolve) => worker.once("message", resolve))).toBe("SQLITE_BUSY")
    await worker.terminate()
    expect(Lock.isLocked(path)).toBe(true)
    lock.release()
  })

  it("cannot be taken where nothing can be written", () => {
    expect(() => Lock.acquireNew(join(folder, "missing", "books.db.run_1"))).toThrow("ENOENT")
  })
})
