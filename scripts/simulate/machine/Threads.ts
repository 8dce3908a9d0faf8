/**
 * Implements `node:worker_threads` within this thread. Each worker reevaluates its script. Ports pass copies, each message in a separate turn.
 */
import { EventEmitter } from "node:events"
import type { Machine } from "./Machine.ts"

/** Runs a script. `threads` is its `node:worker_threads` module. */
export type RunScript = (threads: object) => void

/** The storage faults (`Storage`) that delay a thread's messages. */
export interface Patience {
  /** Returns the machine time at which delayed messages to or from a thread arrive. */
  readonly holdUntil: (way: "to" | "from") => number
}

class Port extends EventEmitter {
  private readonly machine: Machine
  private readonly patience: Patience
  private readonly way: "to" | "from"
  private messages: Array<unknown> = []
  private scheduled = false
  other: Port | undefined
  dead = false
  onThrown: ((error: Error) => void) | undefined

  constructor(machine: Machine, patience: Patience, way: "to" | "from") {
    super()
    this.machine = machine
    this.patience = patience
    this.way = way
    this.on("newListener", (event) => {
      if (event === "message") this.schedule(true)
    })
  }

  postMessage(message: unknown, transferred: ReadonlyArray<unknown> = []): void {
    const { other } = this
    if (this.dead || other === undefined || other.dead) return
    // A message with transferred objects is not copied.
    other.messages.push(transferred.length > 0 ? message : structuredClone(message))
    other.schedule()
  }

  /** Removes and returns the next message, for `receiveMessageOnPort`. */
  take(): { readonly message: unknown } | undefined {
    return this.messages.length === 0 ? undefined : { message: this.messages.shift() }
  }

  private schedule(begins = false): void {
    if (this.scheduled || this.messages.length === 0 || (!begins && this.listenerCount("message") === 0)) return
    this.scheduled = true
    const until = this.patience.holdUntil(this.way)
    const tell = () => {
      // A delay may have started in the meantime.
      if (!this.dead && this.patience.holdUntil(this.way) > this.machine.now) {
        this.scheduled = false
        return this.schedule()
      }
      this.scheduled = false
      if (this.dead || this.messages.length === 0) return
      const message = this.messages.shift()
      try {
        this.emit("message", message)
      } catch (error) {
        // The error was not caught, so the thread or the process ends.
        if (this.onThrown === undefined) throw error
        this.onThrown(error as Error)
      }
      this.schedule()
    }
    if (until > this.machine.now) this.machine.at(until, tell)
    else this.machine.add(tell)
  }

  close(): void {
    if (this.dead) return
    this.dead = true
    this.machine.add(() => this.emit("close"))
    const { other } = this
    // Deliver earlier messages first.
    this.machine.add(() => other?.closeWhenHeard())
  }

  private closeWhenHeard(): void {
    if (this.dead) return
    if (this.messages.length > 0) return void this.machine.after(1, () => this.closeWhenHeard())
    this.close()
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  start(): void {}
}

export class Threads {
  readonly machine: Machine
  readonly patience: Patience
  readonly real: object
  private readonly runScript: RunScript
  readonly workers = new Set<SimulatedWorker>()
  dead = false

  constructor(machine: Machine, patience: Patience, real: object, runScript: RunScript) {
    this.machine = machine
    this.patience = patience
    this.real = real
    this.runScript = runScript
  }

  /** Ends the process with all of its threads. */
  lose(): void {
    this.dead = true
    for (const worker of this.workers) worker.lose()
  }

  /** Ends a thread, as if it had run out of memory. Undelivered messages are lost. */
  endOne(): void {
    const [worker] = this.workers
    if (worker === undefined) return
    this.workers.delete(worker)
    worker.end(new Error("the thread was ended by the simulation"), 1)
  }

  run(worker: SimulatedWorker, workerData: unknown): void {
    if (this.dead) return
    try {
      this.runScript({ ...this.real, ...moduleOf(this), isMainThread: false, parentPort: worker.inbox, workerData })
    } catch (error) {
      this.workers.delete(worker)
      worker.end(error as Error, 1)
    }
  }
}

/** Builds the `node:worker_threads` module of one life. */
export const moduleOf = (threads: Threads): object => ({
  ...threads.real,
  MessageChannel: class {
    readonly port1: Port
    readonly port2: Port

    constructor() {
      // The thread gets the second port.
      this.port1 = new Port(threads.machine, threads.patience, "from")
      this.port2 = new Port(threads.machine, threads.patience, "to")
      this.port1.other = this.port2
      this.port2.other = this.port1
    }
  },
  Worker: class extends SimulatedWorker {
    constructor(_script: unknown, options: { readonly workerData?: unknown }) {
      super(threads.machine, (worker) => threads.run(worker, options.workerData))
      threads.workers.add(this)
    }
  },
  receiveMessageOnPort: (port: Port) => port.take()
})

/** Delays nothing. It is for a worker's own messages. */
const noPatience: Patience = { holdUntil: () => 0 }

class SimulatedWorker extends EventEmitter {
  readonly inbox: Port
  private readonly outbox: Port
  private readonly machine: Machine
  private readonly handed: Array<Port> = []
  private over = false

  constructor(machine: Machine, run: (worker: SimulatedWorker) => void) {
    super()
    this.machine = machine
    this.inbox = new Port(machine, noPatience, "to")
    this.outbox = new Port(machine, noPatience, "from")
    this.outbox.other = this.inbox
    machine.add(() => {
      if (!this.over) run(this)
    })
  }

  postMessage(message: unknown, transferred: ReadonlyArray<unknown> = []): void {
    this.outbox.postMessage(message, transferred)
    for (const port of transferred) {
      if (!(port instanceof Port)) continue
      this.handed.push(port)
      port.onThrown = (error) => this.end(error, 1)
      // A thread ends by itself once it has no open ports.
      port.once("close", () => this.end(undefined, 0))
    }
  }

  terminate(): Promise<number> {
    this.end(undefined, 1)
    return Promise.resolve(1)
  }

  end(error: Error | undefined, code: number): void {
    if (this.over) return
    this.over = true
    for (const port of this.handed) port.close()
    this.machine.add(() => {
      if (error !== undefined) this.emit("error", error)
      this.emit("exit", code)
    })
  }

  lose(): void {
    this.over = true
    this.inbox.dead = true
    for (const port of this.handed) {
      port.dead = true
      if (port.other !== undefined) port.other.dead = true
    }
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}
