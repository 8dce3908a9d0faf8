/** A caller that leaves: its upstream is read on, what came is charged, nothing further is asked. Over a real upstream and real books. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { failure, Gate } from "../../../src/books/gate/Gate.ts"
import { Payers } from "../../../src/books/gate/Payers.ts"
import type { Admission } from "../../../src/books/gate/Gate.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { Upstreams } from "../../../src/upstream/models/Upstreams.ts"
import type { Whole } from "../../../src/upstream/wire/Wire.ts"
import * as TestDatabase from "../../support/database.ts"

const caller: Caller = {
  account_id: "acc_ada" as AccountId,
  tenant_id: "ten_ada" as TenantId,
  application_id: null,
  credential: "user_token",
  team_first: false
}

const credit = 1_000n
const price = 7n
const claim = {
  caller,
  usage_type: "inference",
  endpoint: "chat/completions",
  model: "m",
  provider: "p",
  least: 100n,
  most: 100n
} as const

const books = Gate.layer.pipe(
  Layer.provide(Payers.layerOwnOnly),
  Layer.provideMerge(TestDatabase.writer),
  Layer.provideMerge(TestDatabase.sql)
)

interface Outside {
  readonly url: string
  /** Requests that have come, each to be answered by hand. */
  readonly came: Array<{ readonly response: ServerResponse; readonly left: Promise<void> }>
  /** The next request. */
  readonly next: Effect.Effect<ServerResponse>
}

const outside = Effect.gen(function* () {
  const came: Outside["came"] = []
  let arrived = yield* Deferred.make<ServerResponse>()
  const server = createServer((request: IncomingMessage, response) => {
    request.resume()
    came.push({ response, left: new Promise((resolve) => response.once("close", resolve)) })
    Deferred.unsafeDone(arrived, Effect.succeed(response))
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  const next = Effect.gen(function* () {
    const response = yield* Deferred.await(arrived)
    arrived = yield* Deferred.make<ServerResponse>()
    return response
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, came, next }
})

const request = { method: "POST", path: "/chat", headers: {}, body: "{}" } as const

/** Books with credit, and two upstreams; runs the story and looks at what it left. */
const story = <A>(
  tell: (parts: {
    readonly gate: Gate["Type"]
    readonly outside: Outside
    readonly ask: (
      upstream: "a" | "b",
      admission: Admission,
      timeout?: number
    ) => Effect.Effect<Whole, { readonly reason: string }>
  }) => Effect.Effect<A, unknown>
) =>
  Effect.gen(function* () {
    const world = yield* outside
    const upstream = { base_url: world.url, api_key: Redacted.make("k"), silence_ms_max: 60_000 }
    return yield* Effect.gen(function* () {
      const gate = yield* Gate
      const sql = yield* SqlClient
      const writer = yield* Writer
      const upstreams = yield* Upstreams
      yield* writer.submit({
        postings: [
          { _tag: "Open", account: "bil_ada", tenant: "ten_ada" },
          { _tag: "Credit", account: "bil_ada", amount: credit, source: "purchase", reference: "r", description: "d" }
        ],
        statements: []
      })
      const told = yield* tell({
        gate,
        outside: world,
        ask: (name, admission, timeout) =>
          upstreams
            .get(name)!
            .wire(admission)
            .exchange(request, { limit: 1_000, ...(timeout !== undefined && { timeout }) })
      })
      const records = yield* sql<{ cost: number; success: number; error_type: string | null }>`
        SELECT cost, success, error_type FROM tollgate_usage_records u
          JOIN tollgate_usage_dimensions d ON d.number = u.dimensions`
      const open = yield* sql`SELECT 1 FROM tollgate_ledger_reservations`
      return { told, records, open: open.length, came: world.came.length, findings: yield* verify }
    }).pipe(Effect.provide(Upstreams.layer({ a: upstream, b: upstream }).pipe(Layer.provideMerge(books))))
  })

/** What an answer costs. */
const charged = (admission: Admission) => (answer: Whole) =>
  admission.answer({ ...failure(""), cost: price, success: true, error_type: null }, () => answer.body.toString())

const soon = { records: [{ cost: 0, success: 0, error_type: "client_disconnected" }], open: 0, findings: [] }

describe("a caller that is interrupted", () => {
  it.scopedLive("while the upstream works has what came in time charged, by one upstream", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ ask, gate, outside }) =>
        Effect.gen(function* () {
          const call = yield* Effect.fork(
            gate.meter(claim, (admission) => Effect.flatMap(ask("a", admission), charged(admission)))
          )
          const response = yield* outside.next
          const left = yield* Effect.fork(Fiber.interrupt(call))
          yield* Effect.sleep(50)
          response.end("an answer")
          return Exit.isInterrupted(yield* Fiber.join(left))
        })
      )
      expect(seen).toMatchObject({ told: true, came: 1, open: 0, findings: [] })
      expect(seen.records).toMatchObject([{ cost: Number(price), success: 1 }])
    })
  )

  it.scopedLive("in an uninterruptible region has its answer all the same", () =>
    Effect.gen(function* () {
      const { records, told } = yield* story(({ ask, gate, outside }) =>
        Effect.gen(function* () {
          const answer = yield* Deferred.make<string>()
          const call = yield* Effect.fork(
            Effect.uninterruptible(
              Effect.tap(
                gate.meter(claim, (admission) => Effect.flatMap(ask("a", admission), charged(admission))),
                (text) => Deferred.succeed(answer, text)
              )
            )
          )
          const response = yield* outside.next
          call.unsafeInterruptAsFork(call.id())
          yield* Effect.sleep(20)
          response.end("an answer")
          return yield* Deferred.await(answer)
        })
      )
      expect(told).toBe("an answer")
      expect(records).toMatchObject([{ cost: Number(price), success: 1 }])
    })
  )

  it.scopedLive("before its request is sent has none sent", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ ask, gate }) =>
        Effect.gen(function* () {
          const call = yield* Effect.fork(
            gate.meter(claim, (admission) =>
              Effect.gen(function* () {
                yield* Effect.sleep(100)
                return yield* Effect.flatMap(ask("a", admission), charged(admission))
              })
            )
          )
          yield* Effect.sleep(30)
          return yield* Fiber.interrupt(call)
        })
      )
      expect(seen).toMatchObject({ ...soon, came: 0 })
    })
  )

  it.scopedLive("is not failed over for", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ ask, gate, outside }) =>
        Effect.gen(function* () {
          const call = yield* Effect.fork(
            gate.meter(claim, (admission) =>
              Effect.flatMap(
                Effect.catchAll(
                  Effect.filterOrFail(
                    ask("a", admission),
                    ({ status }) => status === 200,
                    () => ({ reason: "down" })
                  ),
                  () => ask("b", admission)
                ),
                charged(admission)
              )
            )
          )
          const response = yield* outside.next
          const left = yield* Effect.fork(Fiber.interrupt(call))
          yield* Effect.sleep(20)
          response.writeHead(503).end()
          return yield* Fiber.join(left)
        })
      )
      expect(seen).toMatchObject({ ...soon, came: 1 })
    })
  )

  it.scopedLive("hears nothing of an upstream that breaks off", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ ask, gate, outside }) =>
        Effect.gen(function* () {
          const call = yield* Effect.fork(
            gate.meter(claim, (admission) =>
              Effect.flatMap(
                Effect.catchAll(ask("a", admission), () => ask("b", admission)),
                charged(admission)
              )
            )
          )
          const response = yield* outside.next
          const left = yield* Effect.fork(Fiber.interrupt(call))
          yield* Effect.sleep(20)
          response.destroy()
          return Exit.isInterrupted(yield* Fiber.join(left))
        })
      )
      expect(seen).toMatchObject({ ...soon, told: true, came: 1 })
    })
  )

  it.scopedLive("waits ten seconds at most, then the upstream is let go; disconnected it does not wait", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ ask, gate, outside }) =>
        Effect.gen(function* () {
          const begun = performance.now()
          const call = yield* Effect.fork(
            Effect.disconnect(gate.meter(claim, (admission) => Effect.flatMap(ask("a", admission), charged(admission))))
          )
          yield* outside.next
          yield* Fiber.interrupt(call)
          const waited = performance.now() - begun
          yield* Effect.promise(() => outside.came[0]!.left)
          const until = performance.now() - begun
          // Until the end of the call is in the books.
          yield* Effect.sleep(100)
          return { waited, until }
        })
      )
      expect(seen).toMatchObject({ ...soon, came: 1 })
      expect(seen.told.waited).toBeLessThan(5_000)
      expect(seen.told.until).toBeGreaterThan(9_900)
    })
  )
})

describe("a call with a time limit", () => {
  it.scopedLive("is aborted at its end", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ ask, gate, outside }) =>
        Effect.gen(function* () {
          const refused = yield* Effect.flip(
            gate.meter(claim, (admission) => Effect.flatMap(ask("a", admission, 50), charged(admission)))
          )
          yield* Effect.promise(() => outside.came[0]!.left)
          return refused
        })
      )
      expect(seen).toMatchObject({
        told: { _tag: "Unreachable", reason: "no response within 50 ms" },
        records: [{ cost: 0, success: 0 }],
        came: 1
      })
    })
  )
})

describe("a call whose function throws before it gives an effect", () => {
  it.scopedLive("is ended as a failure", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ gate }) =>
        Effect.exit(
          gate.meter(claim, () => {
            throw new Error("of the host")
          })
        )
      )
      expect(Exit.isFailure(seen.told)).toBe(true)
      expect(seen).toMatchObject({ records: [{ cost: 0, success: 0, error_type: "internal_error" }], open: 0 })
    })
  )
})

describe("a call whose figures the database does not take", () => {
  it.scopedLive("is ended as a failure, and keeps no credit set aside", () =>
    Effect.gen(function* () {
      const seen = yield* story(({ gate }) =>
        Effect.exit(
          gate.meter(claim, (admission) =>
            admission.answer({ ...failure(""), cost: price, prompt_tokens: Number.NaN, success: true }, () => "never")
          )
        )
      )
      expect(Exit.isFailure(seen.told)).toBe(true)
      expect(seen).toMatchObject({ records: [{ cost: 0, success: 0, error_type: "internal_error" }], open: 0 })
    })
  )
})
