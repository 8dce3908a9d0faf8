/** When a worker counts as hanging. */
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import type { Channel } from "../../../src/app/workers/Channel.ts"
import * as Subjects from "../../../src/app/workers/Subjects.ts"
import { watch } from "../../../src/app/workers/Watch.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A worker that replies while `isAlive`, and otherwise lets the question time out after `late` more milliseconds. */
const worker = () => {
  const state = { isAlive: true, late: 0 }
  const ask: Channel["ask"] = (_, __, patience) =>
    state.isAlive
      ? Promise.resolve(null)
      : new Promise((_, reject) => setTimeout(() => reject(new Error("no reply")), patience + state.late))
  return { state, ask }
}

/** The time of one question without a reply, and the pause before it. */
const round = 2_000 + Subjects.replyTimeouts.alive

it("a worker that misses three questions in a row hangs, and is reported at each miss from then on", async () => {
  const { ask, state } = worker()
  const reported: Array<number> = []
  const { answers, end } = watch({ ask }, (misses) => reported.push(misses))
  await vi.advanceTimersByTimeAsync(60_000)
  expect([answers(), reported]).toEqual([true, []])
  state.isAlive = false
  await vi.advanceTimersByTimeAsync(2 * round + 1_000)
  expect([answers(), reported]).toEqual([false, []])
  // One reply begins the count again.
  state.isAlive = true
  await vi.advanceTimersByTimeAsync(2 * round)
  expect([answers(), reported]).toEqual([true, []])
  state.isAlive = false
  await vi.advanceTimersByTimeAsync(5 * round + 2_000)
  expect(reported).toEqual([3, 4, 5])
  end()
  await vi.advanceTimersByTimeAsync(10 * round)
  expect(reported).toEqual([3, 4, 5])
})

it("a question that times out late does not count, because this process itself was stopped", async () => {
  const { ask, state } = worker()
  Object.assign(state, { isAlive: false, late: 1_500 })
  const reported: Array<number> = []
  const { end } = watch({ ask }, (misses) => reported.push(misses))
  await vi.advanceTimersByTimeAsync(20 * round)
  end()
  expect(reported).toEqual([])
})
