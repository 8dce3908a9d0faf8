/** The state of the service's background loops: their last iteration and failures, and whether a loop is stuck, late, stopped or failing. */
import { Context, Layer } from "effect"
import { LoopObserver } from "../../kernel/Loop.ts"
import type { LoopListener } from "../../kernel/Loop.ts"

export interface LoopFigures {
  readonly loop: string
  /** Seconds since the last successful iteration, or since the loop was first observed. */
  readonly seconds_since_good: number
  /** The number of failed iterations since startup. */
  readonly failures: number
  /** Why the loop is unhealthy; `undefined` if it is healthy. */
  readonly trouble: string | undefined
  readonly running: boolean
  /** Seconds since the last iteration ended; `undefined` before the first iteration. */
  readonly seconds_since_turn: number | undefined
  /** Seconds until the next iteration; `undefined` if the loop is waiting to be woken. */
  readonly seconds_until_turn: number | undefined
}

export interface LoopsContract {
  readonly observe: LoopListener
  readonly figures: () => ReadonlyArray<LoopFigures>
}

export class Loops extends Context.Tag("tollgate/ops/Loops")<Loops, LoopsContract>() {
  /** Observes every loop in the layers that receive it. */
  static readonly layer = Layer.suspend(() => {
    // Uses the process's time, because an advanced sandbox clock must not make a loop late.
    const loops = make(() => performance.now())
    return Layer.merge(Layer.succeed(Loops, loops), Layer.succeed(LoopObserver, loops.observe))
  })
}

/** The maximum duration and the maximum delay of an iteration, in milliseconds. */
const turnLimit = 120_000
const lateLimit = 60_000
/** How many consecutive failures make a loop count as failing. */
const failuresMax = 3

interface State {
  /** The start of the current iteration. */
  began: number | undefined
  /** The start of the next iteration; `undefined` if the loop is waiting to be woken. */
  due: number | undefined
  stopped: boolean
  /** The end of the last iteration. */
  over: number | undefined
  good: number
  failures: number
  failedInARow: number
}

/** Creates the observer. `now` returns milliseconds since any fixed point in time. */
export const make = (now: () => number): LoopsContract => {
  const states = new Map<string, State>()

  const observe: LoopListener = (loop, event) => {
    const at = now()
    let state = states.get(loop)
    if (state === undefined) {
      if (event._tag === "Ended" || event._tag === "Stopped") return
      state = {
        began: undefined,
        due: undefined,
        stopped: false,
        over: undefined,
        good: at,
        failures: 0,
        failedInARow: 0
      }
      states.set(loop, state)
    }
    switch (event._tag) {
      case "Began":
        state.began = at
        state.stopped = false
        return
      case "Turned":
        state.began = undefined
        state.over = at
        state.due = event.pause_ms === undefined ? undefined : at + event.pause_ms
        if (event.failed) {
          state.failures += 1
          state.failedInARow += 1
        } else {
          state.failedInARow = 0
          state.good = at
        }
        return
      case "Stopped":
        state.stopped = true
        return
      case "Ended":
        states.delete(loop)
    }
  }

  const troubleOf = ({ began, due, failedInARow, stopped }: State, at: number): string | undefined => {
    if (stopped) return "it has stopped"
    if (began !== undefined && at - began > turnLimit) return "its current iteration has not finished"
    if (failedInARow >= failuresMax) return `its last ${failedInARow} iterations failed`
    if (began === undefined && due !== undefined && at - due > lateLimit) return "its next iteration has not started"
    return undefined
  }

  return {
    observe,
    figures: () => {
      const at = now()
      return [...states].map(([loop, state]) => ({
        loop,
        seconds_since_good: (at - state.good) / 1_000,
        failures: state.failures,
        trouble: troubleOf(state, at),
        running: state.began !== undefined,
        seconds_since_turn: state.over === undefined ? undefined : (at - state.over) / 1_000,
        seconds_until_turn: state.due === undefined ? undefined : Math.max(0, (state.due - at) / 1_000)
      }))
    }
  }
}
