/** Which loops count as troubled. */
import { describe, expect, it } from "vitest"
import * as Loops from "../../../src/operations/ops/Loops.ts"

const world = () => {
  let now = 0
  const loops = Loops.make(() => now)
  return {
    pass: (seconds: number) => (now += seconds * 1_000),
    began: () => loops.observe("outbox", { _tag: "Began" }),
    turned: (pause_ms?: number) => loops.observe("outbox", { _tag: "Turned", failed: false, pause_ms }),
    failed: () => loops.observe("outbox", { _tag: "Turned", failed: true, pause_ms: 1_000 }),
    ended: () => loops.observe("outbox", { _tag: "Ended" }),
    stopped: () => loops.observe("outbox", { _tag: "Stopped" }),
    trouble: () => loops.figures()[0]?.trouble,
    figures: () => loops.figures()
  }
}

describe("a loop", () => {
  it("is healthy while it waits to be woken, however long", () => {
    const { began, pass, trouble, turned } = world()
    began()
    turned()
    pass(1_000_000)
    expect(trouble()).toBeUndefined()
  })

  it("is troubled if its turn begins late", () => {
    const { began, pass, trouble, turned } = world()
    began()
    turned(30_000)
    pass(60)
    expect(trouble()).toBeUndefined()
    pass(31)
    expect(trouble()).toBe("its next iteration has not started")
    began()
    expect(trouble()).toBeUndefined()
  })

  it("is troubled if its current iteration does not finish", () => {
    const { began, figures, pass, trouble } = world()
    began()
    pass(119)
    expect(trouble()).toBeUndefined()
    pass(2)
    expect(trouble()).toBe("its current iteration has not finished")
    expect(figures()).toMatchObject([{ loop: "outbox", seconds_since_good: 121, failures: 0 }])
  })

  it("is troubled after three failures in a row, until it succeeds", () => {
    const { began, failed, figures, pass, trouble, turned } = world()
    for (let turn = 1; turn <= 3; turn++) {
      expect(trouble()).toBeUndefined()
      began()
      failed()
      pass(1)
    }
    expect(trouble()).toBe("its last 3 iterations failed")
    began()
    turned()
    expect(trouble()).toBeUndefined()
    expect(figures()).toMatchObject([{ seconds_since_good: 0, failures: 3 }])
  })

  it("is troubled if it stopped; it is forgotten if its scope was closed", () => {
    const { began, ended, figures, stopped, trouble, turned } = world()
    began()
    turned()
    stopped()
    expect(trouble()).toBe("it has stopped")
    ended()
    stopped()
    expect(figures()).toEqual([])
  })
})
