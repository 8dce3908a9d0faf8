/**
 * The disk below the real SQLite driver. Files are in memory. Faults happen at the statements of the writer's connection and of the read connections.
 */
import Sqlite from "better-sqlite3"
import { copyFileSync, existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Machine } from "./Machine.ts"

/** A point in a writer's transaction. At `after_commit`, the commit is complete, regardless of the reported result. */
export type Moment = "begin" | "statement" | "commit" | "after_commit"

export type Mishap =
  /** The disk or another process causes an error with this SQLite code. */
  { readonly error: string } | "crash" | "thread"

export interface StorageFault {
  readonly moment: Moment
  /** The number of points of this kind that pass before the fault. */
  readonly after: number
  readonly mishap: Mishap
}

/** Thrown in a process that has ended. Code that catches it can have no further effect. */
export class Gone extends Error {}

export class Storage {
  /** Called when the process or the thread has to end. */
  onCrash: () => void = () => {}
  onThreadDeath: () => void = () => {}
  onMishap: (moment: Moment | "read", mishap: Mishap) => void = () => {}
  commits = 0
  private armed: Array<StorageFault & { left: number }> = []
  private windows: Array<{ readonly until: number; readonly error: string; readonly moment: Moment }> = []
  private reads: Array<{ left: number; readonly until: number; readonly error: string }> = []
  private holds: Array<{ readonly until: number; readonly way: "to" | "from" }> = []
  private readonly machine: Machine
  /** The writer's connections and their states. */
  readonly writers = new WeakMap<Sqlite.Database, "lives" | "gone">()
  readonly readers = new WeakSet<Sqlite.Database>()
  private writer: Sqlite.Database | undefined

  constructor(machine: Machine) {
    this.machine = machine
    install(this)
  }

  /** Schedules a fault for a later point in a transaction. */
  arm(fault: StorageFault): void {
    this.armed.push({ ...fault, left: fault.after })
  }

  /** Makes every point of this kind fail for `millis`. */
  failFor(millis: number, moment: Moment, error: string): void {
    this.windows.push({ until: this.machine.now + millis, moment, error })
  }

  /** Makes a read fail after `after` other reads. Later reads also fail until `millis` from now. */
  failReads(after: number, millis: number, error: string): void {
    this.reads.push({ left: after, until: this.machine.now + millis, error })
  }

  /** Delays messages to or from the thread for `millis`, as a hanging fsync would. */
  holdFor(millis: number, way: "to" | "from"): void {
    this.holds.push({ until: this.machine.now + millis, way })
  }

  holdUntil(way: "to" | "from"): number {
    let until = 0
    for (const hold of this.holds) if (hold.way === way) until = Math.max(until, hold.until)
    return until
  }

  heal(): void {
    this.armed = []
    this.windows = []
    this.reads = []
    this.holds = []
  }

  get writerDriver(): unknown {
    return driver((db) => {
      this.writers.set(db, "lives")
      this.writer = db
    })
  }

  get readerDriver(): unknown {
    return driver((db) => this.readers.add(db))
  }

  /**
   * Copies the parts of the database that survive a power failure into a new folder, and returns the copy's path. The earlier writer connection
   * becomes unusable.
   */
  survive(file: string, folder: string): string {
    mkdirSync(folder, { recursive: true })
    const copy = join(folder, "tollgate.db")
    const ends = this.isDurable() ? ["", "-wal"] : [""]
    for (const end of ends) if (existsSync(file + end)) copyFileSync(file + end, copy + end)
    if (this.writer !== undefined) this.writers.set(this.writer, "gone")
    this.writer = undefined
    return copy
  }

  /** Returns whether commits are durable before they are acknowledged. Otherwise, a power failure loses the write-ahead log. */
  private isDurable(): boolean {
    const { writer } = this
    if (writer === undefined || !writer.open) return true
    this.writers.delete(writer)
    return writer.pragma("synchronous", { simple: true }) === 2
  }

  threadEnded(): void {
    if (this.writer === undefined) return
    const db = this.writer
    this.writers.set(db, "gone")
    this.writer = undefined
    // Closing the connection rolls back the thread's transaction, so do not close it during a statement.
    this.machine.add(() => db.close())
  }

  /** Runs a statement of the writer, with any faults armed for it. */
  meet(source: string, run: () => unknown): unknown {
    const moment: Moment = source.startsWith("BEGIN") ? "begin" : source === "COMMIT" ? "commit" : "statement"
    if (source === "ROLLBACK" || source.startsWith("PRAGMA")) return run()
    this.happen(moment)
    const result = run()
    if (moment === "commit") {
      this.commits++
      this.happen("after_commit")
    }
    return result
  }

  /** Runs a statement of a read connection, with any faults armed for it. */
  meetRead(source: string, run: () => unknown): unknown {
    if (this.reads.length > 0 && !/^(PRAGMA|ROLLBACK)/.test(source)) {
      const { now } = this.machine
      const due = this.reads.find((one) => one.left-- <= 0)
      this.reads = this.reads.filter((one) => (one === due ? one.until > now : one.left >= 0 || one.until > now))
      if (due !== undefined) {
        this.onMishap("read", due)
        this.bring(due)
      }
    }
    return run()
  }

  private happen(moment: Moment): void {
    this.windows = this.windows.filter(({ until }) => until > this.machine.now)
    const due = this.armed.find((fault) => fault.moment === moment && fault.left-- <= 0)
    if (due !== undefined) {
      this.armed = this.armed.filter((fault) => fault !== due)
      this.onMishap(moment, due.mishap)
      this.bring(due.mishap)
    }
    const window = this.windows.find((one) => one.moment === moment)
    if (window === undefined) return
    this.onMishap(moment, window)
    this.bring(window)
  }

  private bring(mishap: Mishap): void {
    if (mishap === "crash") {
      this.onCrash()
      throw new Gone("this process is gone")
    }
    if (mishap === "thread") {
      this.onThreadDeath()
      this.threadEnded()
      throw new Gone("this thread is gone")
    }
    throw new Sqlite.SqliteError(`simulated: ${mishap.error}`, mishap.error)
  }
}

const driver = (opened: (db: Sqlite.Database) => void): unknown =>
  Object.assign(function (file: string, options: Sqlite.Options) {
    const db = new Sqlite(file, options)
    opened(db)
    return db
  }, Sqlite)

/** Intercepts all of the driver's statements. */
const install = (storage: Storage): void => {
  const db = new Sqlite(":memory:")
  const prototype = Object.getPrototypeOf(db.prepare("SELECT 1")) as Record<
    string,
    (...args: Array<unknown>) => unknown
  >
  db.close()
  for (const name of ["run", "get", "all"] as const) {
    const real = prototype[name]!
    prototype[name] = function (this: Sqlite.Statement, ...args: Array<unknown>) {
      const state = storage.writers.get(this.database)
      if (state === undefined)
        return storage.readers.has(this.database)
          ? storage.meetRead(this.source, () => real.apply(this, args))
          : real.apply(this, args)
      if (state === "gone") throw new Gone("this process is gone")
      return storage.meet(this.source, () => real.apply(this, args))
    }
  }
}
