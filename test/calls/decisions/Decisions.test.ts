/** Decisions as a program asks for them, without HTTP: values, receipts, and refusals by their tags. */
import { expect, layer, vi } from "@effect/vitest"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import { ConfiguredDecisionModel } from "../../../src/calls/decisions/Settings.ts"
import type { DecisionModel } from "../../../src/calls/decisions/Settings.ts"
import { Decisions } from "../../../src/calls/decisions/Decisions.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { statement } from "../../../src/books/ledger/rules/Transaction.ts"
import { UnknownModel } from "../../../src/upstream/models/Provider.ts"
import { booksOf, fault, holds, interruptedAtWork, over, person, received } from "../../support/Called.ts"

const model: DecisionModel = {
  upstream: "vendor",
  path: "/v1/systemone",
  model: "jev-1.13.0",
  spellings: ["jev-1.13", "jev-latest"],
  input_price: 42_000_000_000n as UnitPrice
}

const request = {
  state: "I was charged twice for billing",
  questions: { about: { type: "choice", instructions: "What is it about?", criteria: { billing: "a", other: "b" } } }
}

const rooms = (configured: DecisionModel | undefined) =>
  over(Decisions.layer.pipe(Layer.provide(Layer.succeed(ConfiguredDecisionModel, configured))), "decisions")

layer(rooms(model), { excludeTestServices: true })("a decision", (it) => {
  it.effect("is a value with its receipt, and costs 42 nano-USD an input token", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      const { answers, id, provider, receipt, usage, ...decision } = yield* decide({ caller, request })
      expect(answers).toMatchObject({ about: { type: "choice", choice: "billing" } })
      expect([id, decision.model, provider]).toEqual([expect.stringMatching(/^dec_/), "jev-1.13.0", "vendor"])
      const cost = 42n * BigInt(usage.input_tokens)
      expect([usage.cost, receipt.charged, receipt.balance]).toEqual([cost, cost, usd - cost])
      expect(receipt.payer.billing_account_id).toBe(billingAccountOf(caller.tenant_id))
      expect(yield* booksOf(caller)).toMatchObject({
        balance: receipt.balance,
        reserved: 0n,
        calls: [{ id: receipt.usage_id, cost, success: true, units: usage.input_tokens }],
        findings: []
      })
    })
  )

  it.effect("with a long response is read on another thread", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      const answers = Object.fromEntries(
        Array.from({ length: 8_000 }, (_, i) => [`answer${i}`, { value: i % 2 === 0 }])
      )
      const body = { answers, model: "jev-2", trace: ["x".repeat(100_000)], usage: { input_tokens: 3, cached: 1 } }
      yield* fault("decisions", { status: 200, body })
      const parsing = vi.spyOn(JSON, "parse")
      const decision = yield* decide({ caller, request })
      const longest = Math.max(...parsing.mock.calls.map(([text]) => text.length))
      parsing.mockRestore()
      expect(longest).toBeLessThan(100_000)
      expect([decision.model, decision.usage.cost, decision.upstream.long?.own.usage]).toEqual([
        "jev-2",
        126n,
        body.usage
      ])
      expect(JSON.parse(decision.upstream.long!.rest.toString())).toEqual({ answers, trace: body.trace })
      expect([decision.answers, decision.upstream.body]).toEqual([answers, body])
    })
  )

  it.effect("carries members that are not known here, in both directions", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      const body = { answers: {}, trace: ["a"], usage: { input_tokens: 3, cached: 1 } }
      yield* fault("decisions", { status: 201, body })
      const { upstream, usage } = yield* decide({ caller, request: { ...request, model: "jev-latest", verbose: true } })
      expect([upstream, usage.cost]).toEqual([{ status: 201, retry_after: undefined, body }, 126n])
      const [call] = yield* received("decisions")
      expect(call?.body).toEqual({ ...request, model: "jev-1.13.0", verbose: true })
    })
  )

  it.effect("that cannot be paid is refused with amounts, and reaches no vendor", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd / 4n)
      const { decide } = yield* Decisions
      const before = (yield* received("decisions")).length
      const refused = yield* Effect.catchTag(decide({ caller, request }), "InsufficientCredits", Effect.succeed)
      expect(refused).toMatchObject({
        available: usd / 4n,
        required: 300_000_000n,
        payer: billingAccountOf(caller.tenant_id),
        reason: "balance"
      })
      expect(yield* received("decisions")).toHaveLength(before)
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd / 4n, calls: [], findings: [] })
    })
  )

  it.effect.each([
    { status: 422, error_type: "upstream_rejected" },
    { status: 429, error_type: "upstream_rate_limited" },
    { status: 529, error_type: "upstream_overloaded" }
  ] as const)("that the model refuses with $status is a failure with the model's bytes, and costs nothing", (refusal) =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      const headers = { "content-type": "application/problem+json", "retry-after": "7" }
      yield* fault("decisions", { status: refusal.status, body: '{ "slow":"down" }', headers })
      const refused = yield* Effect.flip(decide({ caller, request }))
      if (refused._tag !== "DecisionRefused") return expect.unreachable(refused._tag)
      expect(refused).toMatchObject({ ...refusal, content_type: headers["content-type"], retry_after: "7" })
      expect(Buffer.from(refused.body).toString()).toBe('{ "slow":"down" }')
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd,
        reserved: 0n,
        calls: [{ success: false, cost: 0n, error_type: refusal.error_type }]
      })
    })
  )

  it.effect("costs what an answer reports that is no JSON", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      for (const body of ['{"answers":{"a":1,},"usage":{"input_tokens":3}}', '{"answers":{"a":1,}}']) {
        yield* fault("decisions", { status: 200, body })
        expect((yield* Effect.flip(decide({ caller, request })))._tag).toBe("DecisionUpstreamFailed")
      }
      const calls = [
        { success: false, cost: 126n, units: 3 },
        { success: false, cost: 0n }
      ]
      expect(yield* booksOf(caller)).toMatchObject({ calls, reserved: 0n, findings: [] })
    })
  )

  it.effect("has null for numbers that JSON does not have", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      yield* fault("decisions", { status: 200, body: '{"answers":{"a":NaN},"usage":{"input_tokens":3}}' })
      const { answers, receipt } = yield* decide({ caller, request })
      expect([answers, receipt.charged]).toEqual([{ a: null }, 126n])
    })
  )

  it.effect("of which the model answers with another status, or not at all, fails and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      yield* fault("decisions", { status: 503 })
      const failed = yield* Effect.catchTag(decide({ caller, request }), "DecisionUpstreamFailed", Effect.succeed)
      expect(failed).toMatchObject({ upstream: "vendor", upstream_status: 503 })
      yield* fault("decisions", { drop: true })
      expect((yield* Effect.flip(decide({ caller, request })))._tag).toBe("DecisionUpstreamUnreachable")
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd,
        calls: [
          { success: false, cost: 0n, error_type: "DecisionUpstreamFailed" },
          { success: false, cost: 0n, error_type: "DecisionUpstreamUnreachable" }
        ],
        findings: []
      })
    })
  )

  it.effect("of a model that there is not is refused with those that there are", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      const refused = yield* Effect.flip(decide({ caller, request: { ...request, model: "gpt" } }))
      expect(refused).toBeInstanceOf(UnknownModel)
      expect(refused).toMatchObject({ _tag: "InvalidRequest", model: "gpt", models: model.spellings })
    })
  )

  it.effect("writes the statements of its caller with its admission, or not at all", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { decide } = yield* Decisions
      yield* sql`CREATE TABLE orders (call TEXT)`
      const ask = (caller: Parameters<typeof decide>[0]["caller"]) =>
        decide({ caller, request, beside: (call) => [statement(sql`INSERT INTO orders (call) VALUES (${call})`)] })
      const { receipt } = yield* ask(yield* person(usd))
      yield* Effect.flip(ask(yield* person(usd / 4n)))
      const orders = yield* sql<{ call: string }>`SELECT call FROM orders`
      expect(orders.map(({ call }) => call.replace("call_", "use_"))).toEqual([receipt.usage_id])
    })
  )

  it.effect("whose caller leaves is charged for what the model still answers", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      yield* fault("decisions", holds)
      const { interrupted } = yield* interruptedAtWork("decisions", decide({ caller, request }))
      expect(interrupted).toBe(true)
      const { balance, calls, findings, reserved } = yield* booksOf(caller)
      expect(calls).toMatchObject([{ success: true, error_type: null }])
      expect([balance, reserved, findings]).toEqual([usd - calls[0]!.cost, 0n, []])
      expect(calls[0]!.cost).toBeGreaterThan(0n)
    })
  )

  it.effect("whose caller leaves costs nothing where the model then fails", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide } = yield* Decisions
      yield* fault("decisions", { ...holds, drop: true })
      yield* interruptedAtWork("decisions", decide({ caller, request }))
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd,
        reserved: 0n,
        calls: [{ success: false, cost: 0n, error_type: "client_disconnected" }]
      })
    })
  )
})

layer(rooms(undefined), { excludeTestServices: true })("without a decision model", (it) => {
  it.effect("there are no decisions, and nothing is metered", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { decide, ...decisions } = yield* Decisions
      expect((yield* Effect.flip(decide({ caller, request })))._tag).toBe("DecisionsUnavailable")
      expect((yield* Effect.flip(decisions.model))._tag).toBe("DecisionsUnavailable")
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd, calls: [] })
    })
  )
})
