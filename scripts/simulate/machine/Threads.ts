/** `node:worker_threads` in this thread: a worker is its script, run anew; ports carry copies, each message in a turn of its own. */
import { EventEmitter } from "node:events"
import type { Machine } from "./Machine.ts"

/** Runs a script with what it asks for by `require`. */
export type RunScript = (threads: object) => void

/** What the storage of a service does at the moment (`Storage`), as far as its thread notices. */
export interface Patience {
  /** Until when messages to a thread wait, and those from it. */
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
    // What is handed over is no copy; nor is anything of the message that it stands in.
    other.messages.push(transferred.length > 0 ? message : structuredClone(message))
    other.schedule()
  }

  /** The next message, for whoever asks before it is told. */
  take(): { readonly message: unknown } | undefined {
    return this.messages.length === 0 ? undefined : { message: this.messages.shift() }
  }

  private schedule(begins = false): void {
    if (this.scheduled || this.messages.length === 0 || (!begins && this.listenerCount("message") === 0)) return
    this.scheduled = true
    const until = this.patience.holdUntil(this.way)
    const tell = () => {
      // What holds messages back may have begun meanwhile.
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
        // Nobody caught it: so a thread ends, and so a process does.
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
    // What was said before is heard first.
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

  /** The process is gone, its threads with it. */
  lose(): void {
    this.dead = true
    for (const worker of this.workers) worker.lose()
  }

  /** A thread ends by itself, as one does that runs out of memory; what it would have said next is not heard. */
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

/** The module, for the code of a service. */
export const moduleOf = (threads: Threads): object => ({
  ...threads.real,
  MessageChannel: class {
    readonly port1: Port
    readonly port2: Port

    constructor() {
      // The second goes to the thread.
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

/** What a worker's own messages need: nothing holds them back. */
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
      // A thread that has nothing open ends by itself.
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
