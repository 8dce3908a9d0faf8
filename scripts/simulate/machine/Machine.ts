/**
 * The machine that runs a simulation: its time, its timers and the order of all work. A turn is one unit of work (a fiber, a packet, a timer).
 * Between turns, the machine drains Node's queues, so that only the seed determines the order.
 */
import { random } from "./Random.ts"
import type { Random } from "./Random.ts"

export type Turn = () => void

/** Node's function, saved before its replacement (`Globals`). */
const realImmediate = setImmediate

export interface Timer {
  readonly due: number
  readonly fire: Turn
}

/** The start of every simulation: 2027-01-10T00:00:00Z. */
const beginning = Date.UTC(2027, 0, 10)

/** The probability that a timer due within `slowMax` milliseconds fires before ready work, as on a slow machine. */
const slowness = 1 / 200
const slowMax = 100

/** The maximum number of turns, ten times more than any story needs. More turns mean an endless loop. */
const turnsMax = 500_000

export class Machine {
  /** The milliseconds since the machine started. */
  now = 0
  /** The wall clock's error in milliseconds. */
  offset = 0
  turns = 0
  /** The number of turns that the seed selected from several ready turns. */
  choices = 0
  random: Random
  private readonly ready: Array<Turn> = []
  private readonly timers = new Heap()
  /** The number of operations on Node's threads that must end before the next turn. */
  private outside = 0
  private results: Array<Turn | undefined> = []

  constructor(seed: string) {
    this.random = random(seed)
  }

  wall(): number {
    return beginning + Math.floor(this.now) + this.offset
  }

  /** Adds work that is ready to run. */
  add(turn: Turn): void {
    this.ready.push(turn)
  }

  at(due: number, fire: Turn): Timer {
    return this.timers.push(Math.max(due, this.now), fire)
  }

  after(millis: number, fire: Turn): Timer {
    return this.at(this.now + millis, fire)
  }

  cancel(timer: Timer): void {
    this.timers.remove(timer)
  }

  /** Waits for work on Node's other threads. Each result arrives in a separate turn, in the order of the calls. */
  native<A>(work: Promise<A>): Promise<A> {
    return new Promise((resolve, reject) => {
      const place = this.results.push(undefined) - 1
      this.outside++
      const done = (turn: Turn) => {
        this.results[place] = turn
        this.outside--
      }
      work.then(
        (value) => done(() => resolve(value)),
        (error: unknown) => done(() => reject(error as Error))
      )
    })
  }

  /** Runs turns until the condition holds, no work is left, or `millisMax` have passed. Returns whether the condition holds. */
  async run(until: () => boolean, millisMax = Number.POSITIVE_INFINITY): Promise<boolean> {
    const end = this.now + millisMax
    for (;;) {
      if (this.turns > turnsMax) throw new Error("the simulation never becomes idle")
      await this.settle()
      if (until()) return true
      const next = this.timers.first()
      const { ready } = this
      if (ready.length === 0) {
        if (next === undefined || next.due > end) {
          if (millisMax !== Number.POSITIVE_INFINITY) this.now = Math.max(this.now, end)
          return false
        }
        this.fire(next)
      } else if (next !== undefined && next.due <= this.now + slowMax && this.random.chance(slowness)) {
        this.fire(next)
      } else {
        this.now += 0.001
        this.take()()
      }
      this.turns++
    }
  }

  private fire(timer: Timer): void {
    this.now = Math.max(this.now, timer.due)
    this.timers.remove(timer)
    timer.fire()
  }

  private take(): Turn {
    const { ready } = this
    const last = ready.length - 1
    if (last === 0) return ready.pop()!
    this.choices++
    const place = this.random.below(last + 1)
    const turn = ready[place]!
    ready[place] = ready[last]!
    ready.pop()
    return turn
  }

  /** Drains Node's queues of microtasks and ticks, and waits for its threads. */
  private async settle(): Promise<void> {
    do await new Promise((resolve) => realImmediate(resolve))
    while (this.outside > 0)
    if (this.results.length === 0) return
    for (const result of this.results.splice(0)) this.ready.push(result!)
  }
}

interface Entry extends Timer {
  readonly order: number
  place: number
}

/** Timers by due time. Timers that are due at the same time run in the order of their creation. */
class Heap {
  private readonly entries: Array<Entry> = []
  private made = 0

  first(): Timer | undefined {
    return this.entries[0]
  }

  push(due: number, fire: Turn): Timer {
    const entry: Entry = { due, fire, order: this.made++, place: this.entries.length }
    this.entries.push(entry)
    this.up(entry)
    return entry
  }

  remove(timer: Timer): void {
    const entry = timer as Entry
    const { entries } = this
    if (entries[entry.place] !== entry) return
    const last = entries.pop()!
    if (last === entry) return
    this.put(last, entry.place)
    this.up(last)
    this.down(last)
  }

  private put(entry: Entry, place: number): void {
    entry.place = place
    this.entries[place] = entry
  }

  private up(entry: Entry): void {
    while (entry.place > 0) {
      const parent = this.entries[(entry.place - 1) >> 1]!
      if (isBefore(parent, entry)) return
      const { place } = entry
      this.put(entry, parent.place)
      this.put(parent, place)
    }
  }

  private down(entry: Entry): void {
    for (;;) {
      const left = this.entries[2 * entry.place + 1]
      const right = this.entries[2 * entry.place + 2]
      const child = right !== undefined && isBefore(right, left!) ? right : left
      if (child === undefined || isBefore(entry, child)) return
      const { place } = entry
      this.put(entry, child.place)
      this.put(child, place)
    }
  }
}

const isBefore = (one: Entry, other: Entry): boolean =>
  one.due < other.due || (one.due === other.due && one.order < other.order)
