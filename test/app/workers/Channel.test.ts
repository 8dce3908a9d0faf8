/** Requests between the owner and a worker: replies, refusals, silence and the end of a process. */
import { describe, expect, it } from "vitest"
import * as Channel from "../../../src/app/workers/Channel.ts"
import type { Handler } from "../../../src/app/workers/Channel.ts"

/** Two processes, each with its handlers. */
const pair = (one: Record<string, Handler>, other: Record<string, Handler>) => {
  const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
  const first: Channel.Channel = Channel.make(
    (message) => second.receive(copy(message)),
    (subject) => one[subject]
  )
  const second: Channel.Channel = Channel.make(
    (message) => first.receive(copy(message)),
    (subject) => other[subject]
  )
  return [first, second] as const
}

describe("a channel", () => {
  it("takes each reply to its request, in both directions", async () => {
    const [one, other] = pair({ double: (n) => 2 * Number(n) }, { slow: async (n) => n, fast: (n) => n })
    expect(
      await Promise.all([one.ask("slow", 1, 1_000), one.ask("fast", 2, 1_000), other.ask("double", 3, 1_000)])
    ).toEqual([1, 2, 6])
  })

  it("takes refusals, and says when a process is not ready", async () => {
    const [one] = pair({}, { fail: () => Promise.reject(new Error("no")) })
    await expect(one.ask("fail", null, 1_000)).rejects.toThrow("no")
    await expect(one.ask("other", null, 1_000)).rejects.toThrow("this process is not ready for other")
  })

  it("does not wait for a process that is silent or has ended", async () => {
    const [one] = pair({}, { never: () => new Promise(() => {}) })
    await expect(one.ask("never", null, 10)).rejects.toThrow("no reply about never within 10 ms")
    const open = one.ask("never", null, 60_000)
    one.close()
    await expect(open).rejects.toThrow("has ended")
    await expect(one.ask("never", null, 60_000)).rejects.toThrow("has ended")
    const broken = Channel.make(
      () => {
        throw new Error("closed")
      },
      () => undefined
    )
    await expect(broken.ask("any", null, 60_000)).rejects.toThrow("closed")
  })

  it("ignores messages of other kinds", () => {
    const [one] = pair({}, {})
    for (const message of [null, "text", { cmd: "other" }, { tollgate: "reply", id: 7, value: 1 }]) one.receive(message)
  })
})
