/**
 * The disk beneath the real SQLite driver: files on a disk in memory, and what can go wrong with the connection of the writer's thread,
 * at each of its statements.
 */
import Sqlite from "better-sqlite3"
import { copyFileSync, existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Machine } from "./Machine.ts"

/** Where in a transaction of the writer something happens; `after_commit`: the commit is done, whatever is reported of it. */
export type Moment = "begin" | "statement" | "commit" | "after_commit"

/** What happens there. */
export type Mishap =
  /** The disk, or another process, refuses it with this code of SQLite. */
  | { readonly error: string }
  /** The process is gone. */
  | "crash"
  /** The thread is gone. */
  | "thread"

export interface StorageFault {
  readonly moment: Moment
  /** How many such moments pass before it. */
  readonly after: number
  readonly mishap: Mishap
}

/** Thrown where the process is gone: nothing that catches it can do anything any more. */
export class Gone extends Error {}

export class Storage {
  /** Told when the process, or the thread, is to be gone. */
  onCrash: () => void = () => {}
  onThreadDeath: () => void = () => {}
  /** How often each mishap has happened, by moment. */
  onMishap: (moment: Moment | "read", mishap: Mishap) => void = () => {}
  commits = 0
  private armed: Array<StorageFault & { left: number }> = []
  private windows: Array<{ readonly until: number; readonly error: string; readonly moment: Moment }> = []
  private reads: Array<{ left: number; readonly until: number; readonly error: string }> = []
  private holds: Array<{ readonly until: number; readonly way: "to" | "from" }> = []
  private readonly machine: Machine
  /** Connections of the writer that live, and those that are gone. */
  readonly writers = new WeakMap<Sqlite.Database, "lives" | "gone">()
  /** Connections of services that read. */
  readonly readers = new WeakSet<Sqlite.Database>()
  private writer: Sqlite.Database | undefined

  constructor(machine: Machine) {
    this.machine = machine
    install(this)
  }

  /** Something happens once, at a moment to come. */
  arm(fault: StorageFault): void {
    this.armed.push({ ...fault, left: fault.after })
  }

  /** Every such moment fails, for so long. */
  failFor(millis: number, moment: Moment, error: string): void {
    this.windows.push({ until: this.machine.now + millis, moment, error })
  }

  /** A read fails after so many others; where it is for so long, each does from then on. */
  failReads(after: number, millis: number, error: string): void {
    this.reads.push({ left: after, until: this.machine.now + millis, error })
  }

  /** The thread does not get at what it is told, or its answers are late, for so long: an fsync that hangs. */
  holdFor(millis: number, way: "to" | "from"): void {
    this.holds.push({ until: this.machine.now + millis, way })
  }

  holdUntil(way: "to" | "from"): number {
    let until = 0
    for (const hold of this.holds) if (hold.way === way) until = Math.max(until, hold.until)
    return until
  }

  /** Nothing goes wrong any more. */
  heal(): void {
    this.armed = []
    this.windows = []
    this.reads = []
    this.holds = []
  }

  /** The driver's class, for the writer's thread. */
  get writerDriver(): unknown {
    return driver((db) => {
      this.writers.set(db, "lives")
      this.writer = db
    })
  }

  /** The same for the thread that serves. */
  get readerDriver(): unknown {
    return driver((db) => this.readers.add(db))
  }

  /** The files as they are on the disk at this moment, in a folder of their own. Whoever had them open has them no more. */
  survive(file: string, folder: string): string {
    mkdirSync(folder, { recursive: true })
    const copy = join(folder, "tollgate.db")
    const ends = this.isDurable() ? ["", "-wal"] : [""]
    for (const end of ends) if (existsSync(file + end)) copyFileSync(file + end, copy + end)
    if (this.writer !== undefined) this.writers.set(this.writer, "gone")
    this.writer = undefined
    return copy
  }

  /** Whether each commit was on the disk when it was answered. What was not goes with the power. */
  private isDurable(): boolean {
    const { writer } = this
    if (writer === undefined || !writer.open) return true
    this.writers.delete(writer)
    return writer.pragma("synchronous", { simple: true }) === 2
  }

  /** The thread that had the connection has ended. */
  threadEnded(): void {
    if (this.writer === undefined) return
    const db = this.writer
    this.writers.set(db, "gone")
    this.writer = undefined
    // What the thread had begun is undone when its connection is closed, which must not be in the middle of a statement of it.
    this.machine.add(() => db.close())
  }

  /** Runs a statement of the writer, with what happens there. */
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

  /** Runs a statement of the connection that reads. */
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

/** Every statement of the driver asks first. */
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
