/** A computer that runs the service, with the world around it. It can lose power at any moment, and then restarts. */
import Sqlite from "better-sqlite3"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Script } from "node:vm"
import * as threads from "node:worker_threads"
import { root } from "../bundle.ts"
import type { Compiled, Scripts } from "./Bundle.ts"
import * as Globals from "./machine/Globals.ts"
import { Machine } from "./machine/Machine.ts"
import * as Sockets from "./machine/Network.ts"
import { Storage } from "./machine/Storage.ts"
import { moduleOf, Threads } from "./machine/Threads.ts"
import type * as Service from "./Service.ts"

export const port = 8787

const require = createRequire(join(root, "package.json"))
/** The value of `import.meta.url` in simulated code, for resolving the project's files. */
const url = pathToFileURL(join(root, "src", "upstream", "catalogue", "simulated.js")).href

/** One life of the service, from a start to an end. */
interface Life {
  readonly threads: Threads
  dead: boolean
  ready: boolean
  stopping: boolean
}

/** How long the computer waits before it restarts the service, in milliseconds. The delay grows while the service fails to start. */
const restartFirst = 500
const restartLast = 16_000

export class Computer {
  readonly machine: Machine
  readonly network: Sockets.Network
  readonly storage: Storage
  world!: Service.World
  file: string
  /** Receives the service's warnings and errors, and a line when the service ends. */
  log: (level: string, message: string) => void = () => {}
  /** The number of starts of the service. */
  lives = 0
  /** The machine time of each life's end, by life number. */
  readonly ends = new Map<number, number>()
  private pause = restartFirst
  private life: Life | undefined
  private stopNow: (() => void) | undefined
  private lapseNow: (() => void) | undefined
  private readonly folder: string
  private readonly shared: Record<string, unknown> = {}
  private readonly library: Script
  private readonly service: Script
  private readonly thread: Script

  constructor(seed: string, scripts: Scripts & { readonly compiled?: Partial<Compiled> }) {
    const memory = "/dev/shm"
    this.folder = mkdtempSync(join(process.platform === "linux" ? memory : tmpdir(), "tollgate-simulation-"))
    const names = "require, module, exports, simulatedUrl, simulatedScheduler, simulatedShared"
    const script = (name: keyof Scripts) =>
      new Script(`(function (${names}) {${scripts[name]}\n})`, {
        filename: `${name}.js`,
        ...(scripts.compiled?.[name] !== undefined && { cachedData: scripts.compiled[name] })
      })
    this.library = script("library")
    this.service = script("service")
    this.thread = script("thread")
    this.machine = new Machine(seed)
    Globals.replace(this.machine, seed)
    this.network = new Sockets.Network(this.machine)
    Sockets.install(this.network)
    this.storage = new Storage(this.machine)
    this.storage.onCrash = () => this.crash()
    this.storage.onThreadDeath = () => this.life?.threads.endOne()
    this.file = join(this.folder, "life-0", "tollgate.db")
    mkdirSync(join(this.folder, "life-0"))
    this.run(this.library, undefined, require)
  }

  /** Creates the outside world. */
  async begin(): Promise<void> {
    const life = { threads: this.threadsOf(), dead: false, ready: false, stopping: false }
    const { makeWorld } = this.load(life)
    makeWorld(this.schedulerOf(life), (world) => (this.world = world))
    await this.machine.run(() => this.world !== undefined)
  }

  get isUp(): boolean {
    return this.life?.ready === true
  }

  /** Starts the service. It is ready once `isUp`. If it fails to start, the computer restarts it. */
  start(): void {
    const life: Life = { threads: this.threadsOf(), dead: false, ready: false, stopping: false }
    this.life = life
    this.lives++
    this.network.owner = life
    const { start } = this.load(life)
    this.stopNow = start({
      world: this.world,
      scheduler: this.schedulerOf(life),
      file: this.file,
      data_dir: join(this.folder, "data"),
      port,
      log: (level, message) => {
        if (!life.dead) this.log(level, message)
      },
      onReady: (lapse) => {
        life.ready = true
        this.lapseNow = lapse
      },
      onEnd: (why) => {
        if (life.dead) return
        this.log(life.stopping ? "INFO" : "FATAL", `the service ended: ${why}`)
        this.crash()
      }
    })
  }

  /** Shuts the service down gracefully. Its end then triggers a restart. */
  stop(): void {
    if (this.life === undefined || this.life.stopping) return
    this.life.stopping = true
    this.life.ready = false
    this.stopNow?.()
  }

  /** Lets the service's lease lapse. Another host then releases the open calls, although this service is still working on them. */
  lapse(): void {
    if (this.isUp) this.lapseNow?.()
  }

  endThread(): void {
    this.life?.threads.endOne()
    this.storage.threadEnded()
  }

  /** Cuts the power, and restarts the service after a pause. */
  crash(): void {
    this.pause = this.isUp ? restartFirst : Math.min(2 * this.pause, restartLast)
    this.end()
    this.machine.after(this.pause, () => this.start())
  }

  /** Ends the service instantly. Its files remain on the disk as they were at that moment. */
  end(): void {
    const { life } = this
    if (life === undefined) return
    this.life = undefined
    life.dead = true
    this.ends.set(this.lives, this.machine.now)
    life.threads.lose()
    this.network.lose(life)
    this.file = this.storage.survive(this.file, join(this.folder, `life-${this.lives}`))
  }

  /** Verifies the database and returns its faults. Call it when the service is not running. */
  async look(): Promise<ReadonlyArray<string>> {
    const life: Life = { threads: this.threadsOf(), dead: false, ready: false, stopping: false }
    let found: ReadonlyArray<string> | undefined
    let failed: unknown
    this.load(life)
      .look(this.file, this.schedulerOf(life))
      .then(
        (all) => (found = all),
        (error: unknown) => (failed = error)
      )
    await this.machine.run(() => found !== undefined || failed !== undefined)
    if (found === undefined) throw failed
    return found
  }

  query(sql: string): ReadonlyArray<Record<string, unknown>> {
    const db = new Sqlite(this.file)
    try {
      return db.prepare(sql).all() as ReadonlyArray<Record<string, unknown>>
    } finally {
      db.close()
    }
  }

  /** Returns the compiled code of the scripts, for another process. */
  compiled(): Compiled {
    const { library, service, thread } = this
    return {
      library: library.createCachedData(),
      service: service.createCachedData(),
      thread: thread.createCachedData()
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  private threadsOf(): Threads {
    return new Threads(this.machine, this.storage, threads, (module) => {
      const driver = this.storage.writerDriver
      this.run(this.thread, undefined, (name) =>
        name === "node:worker_threads" || name === "worker_threads"
          ? module
          : name === "better-sqlite3"
            ? driver
            : require(name)
      )
    })
  }

  private load(life: Life): typeof Service {
    return this.run(this.service, this.schedulerOf(life), (name) =>
      name === "node:worker_threads" || name === "worker_threads"
        ? moduleOf(life.threads)
        : name === "better-sqlite3"
          ? this.storage.readerDriver
          : (this.shared[name] ?? require(name))
    ) as typeof Service
  }

  private run(script: Script, scheduler: unknown, find: (name: string) => unknown): unknown {
    const module = { exports: {} }
    const body = script.runInThisContext() as (...args: ReadonlyArray<unknown>) => void
    body(find, module, module.exports, url, scheduler, this.shared)
    return module.exports
  }

  /** Creates a life's scheduler. The seed determines the fiber order. Fibers of an ended life do not run. */
  private schedulerOf(life: Life) {
    const { machine } = this
    // As in production, a fiber runs until it has to wait or has run 2,048 operations.
    return {
      shouldYield: ({ currentOpCount }: { readonly currentOpCount: number }) =>
        (currentOpCount > 2_048 ? 0 : false) as number | false,
      scheduleTask: (task: () => void) => {
        if (life.dead) return
        machine.add(() => {
          if (!life.dead) task()
        })
      }
    }
  }
}
