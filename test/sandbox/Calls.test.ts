/** The bounds of the list of calls. */
import { expect, it } from "vitest"
import * as Calls from "../../src/sandbox/Calls.ts"

const all = (calls: Calls.Calls): ReadonlyArray<{ readonly path: string; readonly body: unknown }> =>
  JSON.parse(calls.list(undefined, Number.POSITIVE_INFINITY))

it("the latest calls are kept", () => {
  const calls = Calls.make()
  for (let i = 0; i < Calls.callsMax + 5; i++) calls.note("chat", `/${i}`, Buffer.from("{}"))
  const kept = all(calls)
  expect(kept).toHaveLength(Calls.callsMax)
  expect(kept[0]?.path).toBe(`/${Calls.callsMax + 4}`)
  expect(kept.at(-1)?.path).toBe("/5")
  expect(calls.clear()).toBe(Calls.callsMax)
  expect(all(calls)).toEqual([])
})

it("each body, and all bodies together, are kept up to a limit", () => {
  const calls = Calls.make()
  const body = Buffer.alloc(Calls.bodyBytesMax + 1, "1")
  for (let i = 0; i < 100; i++) calls.note("chat", `/${i}`, body)
  expect(JSON.parse(calls.list("chat", 1))[0].path).toBe("/99")
  expect(all(calls).length).toBe(Calls.bytesMax / Calls.bodyBytesMax)
  // Numbers keep all digits.
  calls.note("chat", "/", Buffer.from(`{"a":1.10000000000000000001}`))
  expect(calls.list("chat", 1)).toContain(`{"a":1.10000000000000000001}`)
})
