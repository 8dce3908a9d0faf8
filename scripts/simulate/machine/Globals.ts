/**
 * Replaces the implicit inputs of simulated code: the time, timers and randomness of JavaScript and Node. The replacement is permanent in this
 * process.
 */
import { createRequire, syncBuiltinESMExports } from "node:module"
import type { Machine, Timer } from "./Machine.ts"
import { random } from "./Random.ts"

const require = createRequire(import.meta.url)

type Callback = (...args: ReadonlyArray<unknown>) => void

/** Implements the part of a Node timer that the service uses. */
class Timeout {
  private timer: Timer | undefined
  private readonly machine: Machine
  private readonly millis: number
  private readonly callback: () => void
  private readonly repeats: boolean

  constructor(machine: Machine, callback: () => void, millis: number, repeats: boolean) {
    this.machine = machine
    this.callback = callback
    // As in Node, a delay that is invalid or too large becomes one millisecond.
    this.millis = millis >= 1 && millis <= 2 ** 31 - 1 ? Math.trunc(millis) : 1
    this.repeats = repeats
    this.refresh()
  }

  refresh(): this {
    this.close()
    this.timer = this.machine.after(this.millis, () => {
      this.timer = undefined
      if (this.repeats) this.refresh()
      this.callback()
    })
    return this
  }

  close(): this {
    if (this.timer !== undefined) this.machine.cancel(this.timer)
    this.timer = undefined
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }
}

const timersOf = (machine: Machine) => {
  let immediates = new Map<object, () => void>()
  /** The immediates of this turn. An immediate can clear a later one. */
  let due = new Map<object, () => void>()
  /** Runs all immediates in order within one turn, as Node does. */
  const runImmediates = () => {
    due = immediates
    immediates = new Map()
    for (const run of due.values()) run()
  }
  const clear = (timer: unknown) => {
    if (timer instanceof Timeout) timer.close()
  }
  return {
    setTimeout: (callback: Callback, millis = 1, ...args: ReadonlyArray<unknown>) =>
      new Timeout(machine, () => callback(...args), millis, false),
    setInterval: (callback: Callback, millis = 1, ...args: ReadonlyArray<unknown>) =>
      new Timeout(machine, () => callback(...args), millis, true),
    setImmediate: (callback: Callback, ...args: ReadonlyArray<unknown>) => {
      const key = { ref: () => key, unref: () => key, hasRef: () => true }
      if (immediates.size === 0) machine.add(runImmediates)
      immediates.set(key, () => callback(...args))
      return key
    },
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: (key: object) => {
      immediates.delete(key)
      due.delete(key)
    }
  }
}

const replaceTimers = (machine: Machine): void => {
  const timers = timersOf(machine)
  const promises = {
    setTimeout: (millis?: number, value?: unknown) =>
      new Promise((resolve) => timers.setTimeout(() => resolve(value), millis)),
    setImmediate: (value?: unknown) => new Promise((resolve) => timers.setImmediate(() => resolve(value)))
  }
  const promisify = require("node:util").promisify.custom as symbol
  Object.defineProperty(timers.setTimeout, promisify, { value: promises.setTimeout })
  Object.defineProperty(timers.setImmediate, promisify, { value: promises.setImmediate })
  Object.assign(globalThis, timers)
  Object.assign(require("node:timers"), timers)
  Object.assign(require("node:timers/promises"), promises)
  AbortSignal.timeout = (millis) => {
    const controller = new AbortController()
    timers.setTimeout(() => controller.abort(new DOMException("timed out", "TimeoutError")), millis)
    return controller.signal
  }
}

const replaceTime = (machine: Machine): void => {
  const { Date: RealDate } = globalThis
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args: Array<number>, self) =>
      Reflect.construct(target, args.length === 0 ? [machine.wall()] : args, self) as Date,
    apply: () => new RealDate(machine.wall()).toString(),
    get: (target, name) => (name === "now" ? () => machine.wall() : (Reflect.get(target, name, target) as unknown))
  })
  const nanos = () => BigInt(Math.round(machine.now * 1e6))
  Object.defineProperty(performance, "now", { value: () => machine.now })
  Object.defineProperty(performance, "timeOrigin", { value: machine.wall() })
  const hrtime = (since?: readonly [number, number]): [number, number] => {
    const now = nanos() - (since === undefined ? 0n : BigInt(since[0]) * 1_000_000_000n + BigInt(since[1]))
    return [Number(now / 1_000_000_000n), Number(now % 1_000_000_000n)]
  }
  process.hrtime = Object.assign(hrtime, { bigint: nanos })
}

type Done = (error: null, value: unknown) => void

const replaceChance = (machine: Machine, seed: string): void => {
  const { below, bytes, next } = random(`chance ${seed}`)
  const crypto = require("node:crypto") as Record<string, unknown>
  const given = <A>(value: A, done: Done | undefined): A | undefined => {
    if (done === undefined) return value
    machine.add(() => done(null, value))
    return undefined
  }
  const fill = <A extends ArrayBufferView>(view: A): A => {
    Buffer.from(view.buffer, view.byteOffset, view.byteLength).set(bytes(view.byteLength))
    return view
  }
  const uuid = () => {
    const made = bytes(16)
    made[6] = (made[6]! & 0x0f) | 0x40
    made[8] = (made[8]! & 0x3f) | 0x80
    return made.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-") as ReturnType<Crypto["randomUUID"]>
  }
  Math.random = next
  Object.assign(crypto, {
    randomBytes: (count: number, done?: Done) => given(bytes(count), done),
    randomUUID: uuid,
    randomInt: (least: number, most?: number | Done, done?: Done) =>
      typeof most === "number" ? given(least + below(most - least), done) : given(below(least), most),
    randomFillSync: fill,
    randomFill: (view: ArrayBufferView, done: Done) => given(fill(view), done)
  })
  const web = globalThis.crypto
  Object.defineProperty(web, "getRandomValues", { value: fill })
  Object.defineProperty(web, "randomUUID", { value: uuid })
  // WebCrypto computes on other threads, so each result arrives in a turn.
  const { subtle } = web
  const prototype = Object.getPrototypeOf(subtle) as Record<string, (...args: Array<unknown>) => Promise<unknown>>
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const work = prototype[name]
    if (name === "constructor" || typeof work !== "function") continue
    Object.defineProperty(subtle, name, {
      value: (...args: Array<unknown>) => machine.native(work.apply(subtle, args))
    })
  }
}

/** Makes HTTP parsers compile synchronously instead of on other threads. */
const replaceCompiler = (): void => {
  const { Instance, Module } = WebAssembly
  Object.assign(WebAssembly, {
    compile: (bytes: BufferSource) => Promise.resolve(new Module(bytes)),
    instantiate: (from: BufferSource | WebAssembly.Module, imports?: WebAssembly.Imports) =>
      from instanceof Module
        ? Promise.resolve(new Instance(from, imports))
        : Promise.resolve({ module: new Module(from), instance: new Instance(new Module(from), imports) })
  })
}

type Compressed = (error: unknown, bytes?: Buffer) => void

/** Makes zlib compute synchronously. Callbacks run in separate turns. zlib's streams are unchanged, because no story uses them. */
const replaceCompression = (machine: Machine): void => {
  const zlib = require("node:zlib") as Record<string, unknown>
  for (const [name, work] of Object.entries(zlib)) {
    if (!name.endsWith("Sync") || typeof work !== "function") continue
    zlib[name.slice(0, -"Sync".length)] = (...args: ReadonlyArray<unknown>) => {
      const done = args.at(-1) as Compressed
      let result: Parameters<Compressed>
      try {
        result = [null, (work as (...args: ReadonlyArray<unknown>) => Buffer)(...args.slice(0, -1))]
      } catch (error) {
        result = [error]
      }
      machine.add(() => done(...result))
    }
  }
}

/** Replaces all implicit inputs. Code that was loaded earlier keeps the functions that it copied. */
export const replace = (machine: Machine, seed: string): void => {
  replaceCompiler()
  replaceTimers(machine)
  replaceTime(machine)
  replaceChance(machine, seed)
  replaceCompression(machine)
  syncBuiltinESMExports()
}
