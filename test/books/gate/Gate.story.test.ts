/**
 * The gate over the real books: calls that answer, fail, die, go on after their answer, or whose caller leaves, in any mixture at
 * once. Whatever they do, each admitted call ends once in the books, and nothing stays reserved.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Either, Fiber, Layer } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { failure, Gate } from "../../../src/books/gate/Gate.ts"
import type { Measured } from "../../../src/books/gate/Gate.ts"
import { Payers } from "../../../src/books/gate/Payers.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { UpstreamFailed } from "../../../src/upstream/wire/Problems.ts"
import * as TestDatabase from "../../support/database.ts"

const endings = [
  "answers",
  "fails",
  "dies",
  "goes on and settles",
  "goes on and fails",
  "goes on and dies",
  "settles twice",
  "is left by its caller"
] as const
type Ending = (typeof endings)[number]

interface Call {
  readonly bound: bigint
  readonly cost: bigint
  readonly ending: Ending
  readonly pauses: number
}

const caller: Caller = {
  account_id: "acc_ada" as AccountId,
  tenant_id: "ten_ada" as TenantId,
  application_id: null,
  credential: "user_token",
  team_first: false
}

const layer = Gate.layer.pipe(
  Layer.provide(Payers.layerOwnOnly),
  Layer.provideMerge(TestDatabase.writer),
  Layer.provideMerge(TestDatabase.sql)
)

const measured = (cost: bigint): Measured => ({ ...failure(""), cost, success: true, error_type: null })

/** One call, told to the gate; answers whether it was admitted. */
const make = Effect.fnUntraced(function* ({ bound, cost, ending, pauses }: Call) {
  const gate = yield* Gate
  let admitted = false
  const call = gate.meter(
    {
      caller,
      usage_type: "inference",
      endpoint: "chat/completions",
      model: "m",
      provider: "p",
      least: bound,
      most: bound
    },
    (admission) =>
      Effect.gen(function* () {
        admitted = true
        for (let i = 0; i < pauses; i++) yield* Effect.yieldNow()
        switch (ending) {
          case "answers":
          case "is left by its caller":
            return yield* admission.answer(measured(cost), () => "answer")
          case "fails":
            return yield* new UpstreamFailed()
          case "dies":
            return yield* Effect.dieMessage("a fault of ours")
          case "settles twice":
            yield* admission.settle(measured(cost))
            return yield* admission.answer(measured(cost + 1n), () => "answer")
          case "goes on and settles":
            return yield* admission.goOn("answer", Effect.asVoid(admission.settle(measured(cost))))
          case "goes on and fails":
            return yield* admission.goOn("answer", Effect.void)
          case "goes on and dies":
            return yield* admission.goOn("answer", Effect.die("a fault of ours"))
        }
      })
  )
  if (ending === "is left by its caller") {
    const fiber = yield* Effect.fork(call)
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(fiber)
  } else {
    yield* Effect.exit(call)
  }
  return admitted
})

const costs = (ending: Ending): boolean =>
  ending === "answers" ||
  ending === "settles twice" ||
  ending === "goes on and settles" ||
  ending === "is left by its caller"

const tell = (credit: bigint, calls: ReadonlyArray<Call>) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const sql = yield* SqlClient
    yield* writer.submit({
      postings: [
        { _tag: "Open", account: "bil_ada", tenant: "ten_ada" },
        { _tag: "Credit", account: "bil_ada", amount: credit, source: "purchase", reference: "r", description: "d" }
      ],
      statements: []
    })
    const admitted = yield* Effect.forEach(calls, make, { concurrency: "unbounded" })
    // Those that go on are done when nothing is reserved any more; `verify` would name what is left.
    for (;;) {
      const [open] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_ledger_reservations`
      if (open!.n === 0) break
      yield* Effect.sleep(1)
    }
    const [account] = yield* sql<{ balance: number; reserved: number }>`
      SELECT giftable + granted AS balance, reserved FROM tollgate_ledger_amounts`
    const records = yield* sql<{ cost: number; success: number; uncollected: number }>`
      SELECT cost, success, uncollected FROM tollgate_usage_records`
    return { admitted, account: account!, records, findings: yield* verify }
  })

const call = fc.record({
  bound: fc.bigInt(0n, 40n),
  cost: fc.bigInt(0n, 60n),
  ending: fc.constantFrom(...endings),
  pauses: fc.nat(4)
})

describe("the gate", () => {
  it("ends every admitted call once, whatever happens to it", () =>
    fc.assert(
      fc.asyncProperty(fc.bigInt(1n, 100n), fc.array(call, { minLength: 1, maxLength: 25 }), async (credit, calls) => {
        const { account, admitted, findings, records } = await Effect.runPromise(
          Effect.provide(tell(credit, calls), layer)
        )
        const made = calls.filter((_, i) => admitted[i])
        expect(findings.map(({ message }) => message)).toEqual([])
        expect(account.reserved).toBe(0)
        expect(records).toHaveLength(made.length)
        expect(records.filter(({ success }) => success === 1)).toHaveLength(
          made.filter((one) => costs(one.ending)).length
        )
        // What each cost is charged or shown as uncollected; a call that came to nothing costs nothing.
        const cost = made.reduce((sum, one) => (costs(one.ending) ? sum + Number(one.cost) : sum), 0)
        expect(records.reduce((sum, one) => sum + one.cost + one.uncollected, 0)).toBe(cost)
        expect(account.balance).toBe(Number(credit) - records.reduce((sum, one) => sum + one.cost, 0))
        expect(account.balance).toBeGreaterThanOrEqual(0)
      }),
      { numRuns: 100 * Number(process.env.FC_RUNS ?? 1) }
    ))

  it("refuses without a trace what cannot be paid", async () => {
    const result = await Effect.runPromise(
      Effect.provide(
        Effect.gen(function* () {
          const gate = yield* Gate
          const claim = {
            caller,
            usage_type: "tool",
            endpoint: "search",
            model: "m",
            provider: "p",
            least: 1n,
            most: 1n
          } as const
          const refused = yield* Effect.either(gate.meter(claim, () => Effect.dieMessage("was called")))
          return { refused, findings: yield* verify }
        }),
        layer
      )
    )
    expect(Either.isLeft(result.refused) && result.refused.left.body).toMatchObject({
      error: "insufficient credits",
      code: "insufficient_credits"
    })
    expect(result.findings).toEqual([])
  })
})
