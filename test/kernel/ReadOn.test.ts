/** Work whose caller has left: for ten seconds, or to its end until the host closes. */
import { Cause, Effect, Exit, Fiber } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { readOnFor, ReadToEnd, Work } from "../../src/kernel/ReadOn.ts"
import type { ReadOnPolicy } from "../../src/kernel/ReadOn.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
afterEach(() => void vi.useRealTimers())

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Work that is under way, and whose caller has left. */
const left = async (reads_on: ReadOnPolicy) => {
  let stopped = false
  let outcome: string | undefined
  const work = new Work<string, string>(reads_on)
  const fiber = Effect.runFork(
    Effect.uninterruptible(
      Effect.map(
        work.done((one) =>
          one.started(() => {
            stopped = true
          })
        ),
        (value) => (outcome = value)
      )
    )
  )
  fiber.unsafeInterruptAsFork(fiber.id())
  await settle()
  return {
    work,
    stopped: () => stopped,
    outcome: () => outcome,
    exit: () => Effect.runPromise(Fiber.await(fiber)),
    isOver: () => fiber.unsafePoll() !== null
  }
}

describe("work whose caller has left", () => {
  it("has ten seconds", async () => {
    const { exit, stopped } = await left(true)
    vi.advanceTimersByTime(readOnFor - 1)
    expect(stopped()).toBe(false)
    vi.advanceTimersByTime(1)
    expect([stopped(), Exit.isInterrupted(await exit())]).toEqual([true, true])
  })

  it("is read on to its end where it is to be", async () => {
    const { exit, isOver, outcome, stopped, work } = await left(new ReadToEnd())
    vi.advanceTimersByTime(60 * readOnFor)
    await settle()
    expect([stopped(), isOver()]).toEqual([false, false])
    work.end(Effect.succeed("an answer"))
    await exit()
    expect(outcome()).toBe("an answer")
  })

  it("hears of no failure at that end", async () => {
    const { exit, work } = await left(new ReadToEnd())
    work.end(Effect.fail("down"))
    const failed = await exit()
    expect(Exit.isFailure(failed) && Cause.isInterruptedOnly(failed.cause)).toBe(true)
  })

  it("has ten seconds from when its host begins to close, whether its caller left before or after", async () => {
    const host = new ReadToEnd()
    const before = await left(host)
    vi.advanceTimersByTime(60 * readOnFor)
    host.close()
    vi.advanceTimersByTime(readOnFor - 1)
    const after = await left(host)
    expect([before.stopped(), after.stopped()]).toEqual([false, false])
    vi.advanceTimersByTime(1)
    expect([before.stopped(), Exit.isInterrupted(await before.exit())]).toEqual([true, true])
    vi.advanceTimersByTime(readOnFor - 2)
    expect(after.stopped()).toBe(false)
    vi.advanceTimersByTime(1)
    expect([after.stopped(), Exit.isInterrupted(await after.exit())]).toEqual([true, true])
  })
})
