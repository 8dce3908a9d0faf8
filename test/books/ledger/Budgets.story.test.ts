/**
 * Stories of budgets: calls are admitted and settled while budgets are made, changed, raised and ended and periods go by. A notebook that
 * keeps every admission and every charge, and adds them up anew for each question, must agree with the books.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "vitest"
import { Clock, Effect, Either, Layer, TestClock, TestContext } from "effect"
import * as fc from "fast-check"
import { verify } from "../../../src/app/Checks.ts"
import { budgetsOf } from "../../../src/books/ledger/Budgets.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { everyone, periodStart } from "../../../src/books/ledger/rules/Budget.ts"
import type { BudgetPeriod, BudgetTerms } from "../../../src/books/ledger/rules/Budget.ts"
import type { CallOutcome, ClaimedFacts } from "../../../src/books/ledger/rules/Transaction.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, ada, bob } from "../../money/usage/Scene.ts"

interface Admitted {
  readonly call: string
  readonly at: number
  readonly amount: bigint
  readonly tokens: number
}
interface Settled {
  readonly call: string
  readonly at: number
  readonly cost: bigint
  readonly tokens: number
}
interface Noted {
  readonly anchor: string
  terms: BudgetTerms
  readonly admitted: Array<Admitted>
  readonly settled: Array<Settled>
}
interface OpenCall {
  readonly call: string
  readonly amount: bigint
  readonly tokens: number
  readonly member: string
  readonly budgets: ReadonlyArray<Noted>
}

/** Adds up what counts in the present period. */
const usedOf = ({ admitted, settled, terms }: Noted, now: number) => {
  const start = periodStart(terms.period, now)
  const ended = new Set(settled.map(({ call }) => call))
  const open = admitted.filter(({ call }) => !ended.has(call))
  const counted = settled.filter(({ at }) => at >= start)
  return {
    open: open.length,
    reserved: open.reduce((sum, { amount }) => sum + amount, 0n),
    tokens_reserved: open.reduce((sum, { tokens }) => sum + tokens, 0),
    requests: admitted.filter(({ at }) => at >= start).length,
    spent: counted.reduce((sum, { cost }) => sum + cost, 0n),
    tokens: counted.reduce((sum, { tokens }) => sum + tokens, 0)
  }
}

const limitAt = ({ limit, raises }: BudgetTerms, now: number): bigint | undefined =>
  limit.usd === undefined
    ? undefined
    : raises.filter(({ until }) => until > now).reduce((sum, { usd }) => sum + usd, limit.usd)

/** What is left in each unit; `undefined` without a limit. */
const leftOf = (noted: Noted, now: number) => {
  const used = usedOf(noted, now)
  const { limit } = noted.terms
  const usd = limitAt(noted.terms, now)
  const positive = (left: bigint) => (left > 0n ? left : 0n)
  return {
    usd: usd === undefined ? undefined : positive(usd - used.spent - used.reserved),
    tokens: limit.tokens === undefined ? undefined : Math.max(0, limit.tokens - used.tokens - used.tokens_reserved),
    requests: limit.requests === undefined ? undefined : Math.max(0, limit.requests - used.requests),
    concurrent: limit.concurrent === undefined ? undefined : Math.max(0, limit.concurrent - used.open),
    isZero: usd === 0n || limit.tokens === 0
  }
}

const isRefused = (noted: Noted, least: bigint, leastTokens: number, now: number): boolean => {
  if (noted.terms.mode === "notify") return false
  const { concurrent, isZero, requests, tokens, usd } = leftOf(noted, now)
  return isZero || (usd ?? least) < least || (tokens ?? leastTokens) < leastTokens || requests === 0 || concurrent === 0
}

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

const limitOf = fc.record(
  {
    usd: fc.bigInt({ min: 0n, max: 60n }),
    tokens: fc.integer({ min: 0, max: 60 }),
    requests: fc.integer({ min: 0, max: 8 }),
    concurrent: fc.integer({ min: 0, max: 4 })
  },
  { requiredKeys: [] }
)

const step = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("set" as const),
      id: fc.constantFrom("bud_1", "bud_2", "bud_3", "bud_4"),
      anchor: fc.constantFrom<string>(acme, everyone, "app_1", "run_2", "run_1"),
      limit: limitOf,
      period: fc.constantFrom<BudgetPeriod>("minute", "hour", "day", "week", "month", "total"),
      member: fc.constantFrom(undefined, undefined, ada, bob),
      mode: fc.constantFrom("refuse" as const, "refuse" as const, "notify" as const),
      raise: fc.bigInt({ min: 0n, max: 20n })
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("end" as const), id: fc.constantFrom("bud_1", "bud_2", "bud_3", "bud_4") })
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("reserve" as const),
      least: fc.bigInt({ min: 0n, max: 9n }),
      more: fc.bigInt({ min: 0n, max: 9n }),
      tokens: fc.integer({ min: 0, max: 9 }),
      moreTokens: fc.integer({ min: 0, max: 9 }),
      member: fc.constantFrom(ada, bob)
    })
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      which: fc.nat(9),
      cost: fc.bigInt({ min: 0n, max: 25n }),
      tokens: fc.integer({ min: 0, max: 12 })
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      millis: fc.constantFrom(1_000, 61_000, 3_600_000, 90_000_000, 2_700_000_000)
    })
  }
)
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

const facts = (member: string): ClaimedFacts => ({
  account_id: member,
  tenant_id: acme,
  application_id: "app_1",
  usage_type: "inference",
  endpoint: "chat/completions",
  model: "m",
  provider: "p",
  runs: ["run_2", "run_1"],
  run_id: "run_2"
})
const source = { billing_account_id: "bil_acme", tenant_id: acme, kind: "own", why: "own" } as const
const plenty = 1_000_000n

class Story {
  /** How often the budget of each name has ended. */
  private readonly ended = new Map<string, number>()

  /** The service never uses the id of an ended budget again, because its records name it. */
  private idOf(name: string): string {
    return `${name}_${this.ended.get(name) ?? 0}`
  }

  readonly budgets = new Map<string, Noted>()
  readonly open: Array<OpenCall> = []
  calls = 0

  readonly tell = Effect.fn(function* (this: Story, step: Step) {
    const ledger = yield* Ledger
    const now = yield* Clock.currentTimeMillis
    switch (step.do) {
      case "wait":
        return yield* TestClock.adjust(step.millis)
      case "set": {
        const id = this.idOf(step.id)
        const before = this.budgets.get(id)
        const terms: BudgetTerms = {
          name: id,
          limit: step.limit,
          period: before?.terms.period ?? step.period,
          applies_to: before?.terms.applies_to ?? { member: step.member },
          mode: step.mode,
          notify_at: [0.5, 1],
          raises: step.raise === 0n ? [] : [{ usd: step.raise, until: now + 3_600_000 }],
          by_operator: false,
          created_by: ada,
          created_at: now
        }
        const anchor = before?.anchor ?? step.anchor
        if (before === undefined) this.budgets.set(id, { anchor, terms, admitted: [], settled: [] })
        else before.terms = terms
        const owner = anchor === everyone ? {} : { tenant: acme, account: "bil_acme" }
        return yield* ledger.setBudget({ id, kind: "budget", anchor, ...owner, terms })
      }
      case "end": {
        const id = this.idOf(step.id)
        const before = this.budgets.get(id)
        this.budgets.delete(id)
        this.ended.set(step.id, (this.ended.get(step.id) ?? 0) + 1)
        return yield* ledger.setBudget({ id, kind: "budget", anchor: before?.anchor ?? acme, terms: null })
      }
      case "reserve":
        return yield* this.reserve(step, now)
      case "settle":
        return yield* this.settle(step, now)
    }
  }).bind(this)

  reserve(step: Extract<Step, { do: "reserve" }>, now: number) {
    return Effect.gen(this, function* () {
      const call = `call_${++this.calls}`
      const most = step.least + step.more
      const tokens = { least: step.tokens, most: step.tokens + step.moreTokens }
      const counting = [...this.budgets.values()].filter(
        ({ terms }) => (terms.applies_to.member ?? step.member) === step.member
      )
      const refusing = counting.filter((noted) => isRefused(noted, step.least, tokens.least, now))
      const ledger = yield* Ledger
      const done = yield* Effect.either(
        ledger.reserve({
          call,
          sources: [source],
          least: step.least,
          most,
          run: "run",
          facts: facts(step.member),
          tokens
        })
      )
      if (refusing.length > 0) {
        expect(Either.isLeft(done) && done.left).toMatchObject({ _tag: "BudgetReached" })
        expect(refusing.map(({ terms }) => terms.name)).toContain(
          (Either.flip(done) as { right: { budget: string } }).right.budget
        )
        return
      }
      const binding = counting.filter(({ terms }) => terms.mode === "refuse").map((noted) => leftOf(noted, now))
      const amount = binding.reduce((sum, { usd }) => (usd !== undefined && usd < sum ? usd : sum), most)
      const granted = binding.reduce((sum, { tokens }) => Math.min(sum, tokens ?? sum), tokens.most)
      expect(done).toEqual(
        Either.right(
          expect.objectContaining({
            amount,
            within: counting.length === 0 ? undefined : expect.objectContaining({ barred: [] })
          })
        )
      )
      for (const noted of counting) noted.admitted.push({ call, at: now, amount, tokens: granted })
      this.open.push({ call, amount, tokens: granted, member: step.member, budgets: counting })
    })
  }

  settle(step: Extract<Step, { do: "settle" }>, now: number) {
    return Effect.gen(this, function* () {
      if (this.open.length === 0) return
      const [open] = this.open.splice(step.which % this.open.length, 1)
      const ledger = yield* Ledger
      const stillCounting = open!.budgets.filter((noted) => [...this.budgets.values()].includes(noted))
      const left = stillCounting
        .filter(({ terms }) => terms.mode === "refuse")
        .map((noted) => leftOf(noted, now).usd)
        .reduce((sum: bigint, usd) => (usd !== undefined && usd < sum ? usd : sum), plenty)
      const collected = step.cost < open!.amount + left ? step.cost : open!.amount + left
      const done = yield* ledger.settle({
        call: open!.call,
        outcome: { ...outcome, cost: step.cost, prompt_tokens: step.tokens }
      })
      expect(done).toMatchObject({ _tag: "Settled", collected })
      for (const noted of stillCounting)
        noted.settled.push({ call: open!.call, at: now, cost: collected, tokens: step.tokens })
    })
  }

  compare() {
    return Effect.gen(this, function* () {
      const now = yield* Clock.currentTimeMillis
      const found = yield* budgetsOf(yield* SqlClient, [...this.budgets.keys()], now)
      const shown = found.map(({ id, open, requests, reserved, spent, tokens, tokens_reserved }) => [
        id,
        { open, requests, reserved, spent, tokens, tokens_reserved }
      ])
      expect(Object.fromEntries(shown)).toEqual(
        Object.fromEntries([...this.budgets].map(([id, noted]) => [id, usedOf(noted, now)]))
      )
    })
  }
}

describe("budgets", () => {
  it("agree with a notebook in every story", () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) =>
        Effect.gen(function* () {
          yield* Scene.now("2026-03-01T10:00:30Z")
          yield* Scene.tenant(acme, plenty * 1_000n)
          const story = new Story()
          for (const step of steps) {
            yield* story.tell(step)
            yield* story.compare()
          }
          expect(yield* verify).toEqual([])
        }).pipe(Effect.provide(Layer.provideMerge(Scene.layer, TestContext.TestContext)), Effect.runPromise)
      ),
      { numRuns: 60 * Number(process.env.FC_RUNS ?? 1) }
    ))
})
