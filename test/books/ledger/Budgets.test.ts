/** Budgets as the books keep them: admission, settlement, periods, ways and raises. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import type { Layer } from "effect"
import { usd } from "../../../src/kernel/Money.ts"
import { budgetsOf } from "../../../src/books/ledger/Budgets.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import type { AskedOf } from "../../../src/books/ledger/Ledger.ts"
import { everyone } from "../../../src/books/ledger/rules/Budget.ts"
import type { BudgetTerms } from "../../../src/books/ledger/rules/Budget.ts"
import type { CallOutcome, ClaimedFacts } from "../../../src/books/ledger/rules/Transaction.ts"
import { SqlClient } from "@effect/sql/SqlClient"
import { verify } from "../../../src/app/Checks.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, ada, bob } from "../../money/usage/Scene.ts"

const terms = (more: Partial<BudgetTerms>): BudgetTerms => ({
  name: "test",
  limit: {},
  period: "total",
  applies_to: {},
  mode: "refuse",
  notify_at: [],
  raises: [],
  by_operator: false,
  created_by: ada,
  created_at: 0,
  ...more
})

const set = (id: string, more: Partial<BudgetTerms>, anchor: string = acme) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.setBudget({
      id,
      kind: "budget",
      anchor,
      ...(anchor !== everyone && { tenant: acme, account: "bil_acme" }),
      terms: terms(more)
    })
  )

const facts: ClaimedFacts = {
  account_id: ada,
  tenant_id: acme,
  application_id: null,
  usage_type: "inference",
  endpoint: "chat/completions",
  model: "m",
  provider: "p",
  capability: "chat"
}
const source = { billing_account_id: "bil_acme", tenant_id: acme, kind: "own", why: "own" } as const

const reserve = (call: string, amount: bigint, more: Partial<AskedOf<"Reserve">> & { facts?: ClaimedFacts } = {}) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.reserve({ call, sources: [source], least: amount, most: amount, run: "run", facts, ...more })
  )

const outcome: CallOutcome = {
  cost: 0n,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  success: true,
  error_type: null,
  usage_source: "provider",
  latency_ms: 1
}
const settle = (call: string, more: Partial<CallOutcome>) =>
  Effect.flatMap(Ledger, (ledger) => ledger.settle({ call, outcome: { ...outcome, ...more } }))

const standing = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [budget] = yield* budgetsOf(sql, [id], yield* Clock.currentTimeMillis)
    const { crossed, open, requests, reserved, spent, tokens, tokens_reserved } = budget!
    return { crossed, open, requests, reserved, spent, tokens, tokens_reserved }
  })

const inScene = (name: string, test: Effect.Effect<void, unknown, Layer.Layer.Success<typeof Scene.layer>>) =>
  it.effect(name, () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:30Z")
      yield* Scene.tenant(acme, 10n * usd)
      yield* test
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

describe("a budget", () => {
  inScene(
    "reserves the bound of a call and is corrected when the call is settled",
    Effect.gen(function* () {
      yield* set("bud", { limit: { usd: 3n * usd, tokens: 100, requests: 5, concurrent: 2 } })
      const reserved = yield* reserve("call_1", 2n * usd, { tokens: { least: 10, most: 60 } })
      expect(reserved.within).toEqual({
        tokens: 60,
        barred: [],
        rates: {
          requests: { limit: 5, remaining: 4, resets_at: 0 },
          tokens: { limit: 100, remaining: 40, resets_at: 0 }
        }
      })
      expect(yield* standing("bud")).toMatchObject({ open: 1, requests: 1, reserved: 2n * usd, tokens_reserved: 60 })
      yield* settle("call_1", { cost: usd, prompt_tokens: 5, completion_tokens: 7 })
      expect(yield* standing("bud")).toMatchObject({ open: 0, requests: 1, reserved: 0n, spent: usd, tokens: 12 })
    })
  )

  inScene(
    "refuses in each unit, and names what is left",
    Effect.gen(function* () {
      for (const [unit, limit] of [
        ["usd", { usd }],
        ["tokens", { tokens: 9 }],
        ["requests", { requests: 0 }],
        ["concurrent", { concurrent: 0 }]
      ] as const) {
        yield* set(`bud_${unit}`, { limit, name: unit })
        const refused = yield* Effect.flip(reserve(`call_${unit}`, 2n * usd, { tokens: { least: 10, most: 60 } }))
        expect(refused).toMatchObject({ _tag: "BudgetReached", budget: `bud_${unit}`, unit, name: unit })
        yield* Effect.flatMap(Ledger, (ledger) =>
          ledger.setBudget({
            id: `bud_${unit}`,
            kind: "budget",
            anchor: acme,
            tenant: acme,
            account: "bil_acme",
            terms: null
          })
        )
      }
      yield* reserve("call_after", 2n * usd)
      yield* settle("call_after", {})
    })
  )

  inScene(
    "renews at the begin of its period, and keeps what open calls have reserved",
    Effect.gen(function* () {
      yield* set("bud", { limit: { usd: 2n * usd, requests: 2 }, period: "minute" })
      yield* reserve("call_1", usd)
      yield* reserve("call_2", usd)
      expect(yield* Effect.flip(reserve("call_3", 0n))).toMatchObject({ unit: "requests" })
      yield* settle("call_1", { cost: usd })
      yield* Scene.now("2026-03-01T10:01:00Z")
      expect(yield* standing("bud")).toMatchObject({ open: 1, requests: 0, reserved: usd, spent: 0n })
      expect(yield* Effect.flip(reserve("call_3", 2n * usd))).toMatchObject({ unit: "usd", left: usd })
      yield* settle("call_2", { cost: usd })
      expect(yield* standing("bud")).toMatchObject({ open: 0, requests: 0, reserved: 0n, spent: usd })
    })
  )

  inScene(
    "of a member, a tag, an end user or a capability counts their calls alone",
    Effect.gen(function* () {
      yield* set("member", { limit: { requests: 0 }, applies_to: { member: bob } })
      yield* set("tag", { limit: { requests: 0 }, applies_to: { tag: "project=atlas" } })
      yield* set("name", { limit: { requests: 0 }, applies_to: { tag: "team" } })
      yield* set("user", { limit: { requests: 0 }, applies_to: { end_user: "eve" } })
      yield* set("capability", { limit: { requests: 0 }, applies_to: { capability: "search" } })
      yield* reserve("call_1", usd, { facts: { ...facts, tags: "project=atlas2\nteamwork=x", end_user: "evelyn" } })
      yield* settle("call_1", {})
      for (const [budget, more] of [
        ["member", { account_id: bob }],
        ["tag", { tags: "a=b\nproject=atlas" }],
        ["name", { tags: "team=red" }],
        ["user", { end_user: "eve" }],
        ["capability", { capability: "search" }]
      ] as const)
        expect(yield* Effect.flip(reserve("call_2", 0n, { facts: { ...facts, ...more } }))).toMatchObject({ budget })
    })
  )

  inScene(
    "of a provider takes that provider away, and counts what it served",
    Effect.gen(function* () {
      yield* set("p", { limit: { usd: 3n * usd }, applies_to: { provider: "p" } }, everyone)
      yield* set("q", { limit: { usd: 2n * usd }, applies_to: { provider: "q" } }, everyone)
      const ways = [
        { model: "m", provider: "p" },
        { model: "m", provider: "q" }
      ]
      const both = { facts: { ...facts, ways } }
      expect((yield* reserve("call_1", 2n * usd, both)).within?.barred).toEqual([])
      yield* settle("call_1", { cost: 2n * usd, provider: "q" })
      expect(yield* standing("p")).toMatchObject({ spent: 0n, reserved: 0n })
      expect(yield* standing("q")).toMatchObject({ spent: 2n * usd, reserved: 0n })
      expect((yield* reserve("call_2", 2n * usd, both)).within?.barred).toEqual([1])
      expect(yield* Effect.flip(reserve("call_3", 2n * usd, both))).toMatchObject({ budget: "p" })
      yield* settle("call_2", { cost: usd, provider: "p" })
      expect(yield* standing("p")).toMatchObject({ spent: usd, open: 0 })
    })
  )

  inScene(
    "never charges more than its limit, and says what it could not collect",
    Effect.gen(function* () {
      yield* set("bud", { limit: { usd: 2n * usd } })
      yield* reserve("call_1", usd)
      yield* reserve("call_2", usd)
      expect(yield* settle("call_1", { cost: 5n * usd })).toMatchObject({ collected: usd })
      yield* settle("call_2", { cost: usd })
      expect(yield* standing("bud")).toMatchObject({ spent: 2n * usd })
    })
  )

  inScene(
    "is raised until an instant, notes the parts of its limit that are reached, and may only notify",
    Effect.gen(function* () {
      const until = Date.parse("2026-03-01T11:00:00Z")
      yield* set("bud", { limit: { usd }, raises: [{ usd, until }], notify_at: [0.5, 0.8, 1] })
      yield* set("notify", { limit: { requests: 0, usd: 0n }, mode: "notify" })
      yield* reserve("call_1", 2n * usd)
      yield* settle("call_1", { cost: (6n * usd) / 10n })
      expect(yield* standing("bud")).toMatchObject({ crossed: 1 })
      yield* reserve("call_2", usd)
      yield* settle("call_2", { cost: usd })
      expect(yield* standing("bud")).toMatchObject({ crossed: 3 })
      expect(yield* standing("notify")).toMatchObject({ requests: 2, spent: (16n * usd) / 10n })
      yield* Scene.now("2026-03-01T11:00:00Z")
      expect(yield* Effect.flip(reserve("call_3", usd / 10n))).toMatchObject({ budget: "bud", left: 0n })
    })
  )
})
