/**
 * The loops of the service, as they report themselves: when each last turned, how often it failed, and which of them does not turn
 * as it should.
 */
import { Context, Layer } from "effect"
import { LoopObserver } from "../../kernel/Loop.ts"
import type { LoopListener } from "../../kernel/Loop.ts"

/** What is known of a loop at the moment. */
export interface LoopFigures {
  readonly loop: string
  /** Since a turn last went well, or since the loop was first seen. */
  readonly seconds_since_good: number
  /** Turns that failed, since the start. */
  readonly failures: number
  /** Why it counts as not turning; `undefined`: it turns. */
  readonly trouble: string | undefined
  /** Whether a turn is under way. */
  readonly running: boolean
  /** Since the last turn was over; `undefined` before its first. */
  readonly seconds_since_turn: number | undefined
  /** Until the next turn; `undefined`: until the loop is woken. */
  readonly seconds_until_turn: number | undefined
}

export interface LoopsContract {
  readonly observe: LoopListener
  readonly figures: () => ReadonlyArray<LoopFigures>
}

export class Loops extends Context.Tag("tollgate/ops/Loops")<Loops, LoopsContract>() {
  /** Listens to every loop of the layers that it is provided to. */
  static readonly layer = Layer.suspend(() => {
    // By the time of the process: a clock that is moved forward makes no loop late.
    const loops = make(() => performance.now())
    return Layer.merge(Layer.succeed(Loops, loops), Layer.succeed(LoopObserver, loops.observe))
  })
}

/** How long a turn may run, and how late one may begin, in milliseconds. */
const turnLimit = 120_000
const lateLimit = 60_000
/** From how many failures in a row on a loop counts as failing. */
const failuresMax = 3

interface State {
  /** When the turn began that is under way. */
  began: number | undefined
  /** When the next turn is to begin; `undefined`: when the loop is woken. */
  due: number | undefined
  stopped: boolean
  /** When the last turn was over. */
  over: number | undefined
  good: number
  failures: number
  failedInARow: number
}

/** `now` in milliseconds, counted from anywhere. */
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
    if (began !== undefined && at - began > turnLimit) return "its turn does not come to an end"
    if (failedInARow >= failuresMax) return `its last ${failedInARow} turns failed`
    if (began === undefined && due !== undefined && at - due > lateLimit) return "its next turn does not begin"
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
