/** How many log lines refused calls may cause. */
import { Effect, Logger } from "effect"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { refusedCall, logProblem } from "../../src/books/gate/CallLog.ts"
import { InvalidRequest } from "../../src/kernel/InvalidRequest.ts"
import { linesMax, make } from "../../src/http/lanes/RefusedCalls.ts"

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout"] })
})
afterEach(() => {
  vi.useRealTimers()
})

const problem = () => new InvalidRequest({ message: "m", field: "f", rule: "r" })
const refused = () => ({ route: "POST /v1/x", began: 0, caller: undefined, problem: problem() })

/** Runs it, and has the message and annotations of each line. */
const logging = () => {
  const lines: Array<readonly [unknown, Record<string, unknown>]> = []
  const logger = Logger.make(({ annotations, message }) => {
    lines.push([Array.isArray(message) ? message[0] : message, Object.fromEntries(annotations)])
  })
  const run = (effect: Effect.Effect<void>) =>
    Effect.runSync(
      effect.pipe(
        Effect.annotateLogs("request_id", "req_1"),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger))
      )
    )
  return { lines, run }
}

it("is bounded in a second, and the number of those left out is logged at its end", () => {
  const { lines, run } = logging()
  const log = make()
  for (let index = 0; index < linesMax + 7; index++) run(log(refused()))
  expect(lines).toHaveLength(linesMax)
  expect(lines[0]).toEqual([
    refusedCall,
    {
      route: "POST /v1/x",
      status: 400,
      code: "invalid_request",
      milliseconds: expect.any(Number),
      request_id: "req_1"
    }
  ])
  vi.advanceTimersByTime(1_000)
  expect(lines.slice(linesMax)).toEqual([["refused calls were omitted from the log", { count: 7 }]])
  run(log(refused()))
  vi.advanceTimersByTime(1_000)
  expect(lines).toHaveLength(linesMax + 2)
  expect(lines.at(-1)![0]).toBe(refusedCall)
})

it("is none for a problem that the gate has logged", () => {
  const { lines, run } = logging()
  const log = make()
  const one = problem()
  const facts = { account_id: "a", tenant_id: "t", application_id: null, usage_type: "tool" } as const
  run(logProblem("a call failed", { ...facts, endpoint: "e", model: "m", provider: "p" }, undefined, 0, one))
  run(log({ ...refused(), problem: one }))
  const within = Effect.runSync(Effect.flip(Effect.withSpan(Effect.fail(one), "a span")))
  expect(within).not.toBe(one)
  run(log({ ...refused(), problem: within }))
  expect(lines.map(([message]) => message)).toEqual(["a call failed"])
})
