/** The gate and budgets: what a refusal shows and logs, and what an admission says. */
import { expect, it } from "@effect/vitest"
import { Effect, HashMap, Layer, Logger } from "effect"
import { Gate } from "../../../src/books/gate/Gate.ts"
import type { Claim } from "../../../src/books/gate/Gate.ts"
import { Payers } from "../../../src/books/gate/Payers.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { everyone } from "../../../src/books/ledger/rules/Budget.ts"
import type { BudgetTerms } from "../../../src/books/ledger/rules/Budget.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { measuredOf } from "../../../src/calls/metered/Measured.ts"
import { ofProblem } from "../../../src/http/transport/Reply.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, ada } from "../../money/usage/Scene.ts"

/** The annotations of each logged line. */
const lines: Array<Record<string, unknown>> = []
const collecting = Logger.replace(
  Logger.defaultLogger,
  Logger.make(({ annotations, message }) => {
    lines.push({ message: [message].flat().join(" "), ...Object.fromEntries(HashMap.toEntries(annotations)) })
  })
)

const layer = Gate.layer.pipe(
  Layer.provide(Payers.layerOwnOnly),
  Layer.provideMerge(Scene.layer),
  Layer.provideMerge(collecting)
)

const caller: Caller = {
  account_id: ada as AccountId,
  tenant_id: acme as TenantId,
  application_id: null,
  credential: "user_token",
  team_first: false
}

const claim: Claim = {
  caller,
  usage_type: "inference",
  capability: "chat",
  endpoint: "chat/completions",
  model: "m",
  provider: "p",
  least: 1n,
  most: 1n,
  tokens: { least: 10, most: 40 },
  request_id: "req_1"
}

const set = (id: string, more: Partial<BudgetTerms>, anchor: string = acme) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.setBudget({
      id,
      kind: "budget",
      anchor,
      ...(anchor !== everyone && { tenant: acme, account: "bil_acme" }),
      terms: {
        name: "test",
        limit: {},
        period: "minute",
        applies_to: {},
        mode: "refuse",
        notify_at: [],
        raises: [],
        by_operator: false,
        created_by: ada,
        created_at: 0,
        ...more
      }
    })
  )

const meter = (more: Partial<Claim> = {}) =>
  Effect.flatMap(Gate, (gate) =>
    gate.meter({ ...claim, ...more }, (admission) =>
      admission.answer(measuredOf(0n, 1, "p"), ({ rates }) => ({
        rates,
        tokens: admission.tokens,
        open: [0, 1].map((place) => admission.mayServe(place)),
        barred: admission.barred
      }))
    )
  )

const inScene = (name: string, test: Effect.Effect<void, unknown, Layer.Layer.Success<typeof layer>>) =>
  it.effect(name, () =>
    Effect.gen(function* () {
      lines.length = 0
      yield* Scene.now("2026-03-01T10:00:30Z")
      yield* Scene.tenant(acme, 10n * usd)
      yield* test
    }).pipe(Effect.provide(layer))
  )

inScene(
  "a refusal shows the budget, counts seconds from its own time, and has a line in the log",
  Effect.gen(function* () {
    yield* set("bud", { limit: { requests: 1 } })
    expect((yield* meter()).rates).toMatchObject({ requests: { limit: 1, remaining: 0 }, tokens: undefined })
    const refused = yield* Effect.flip(meter())
    expect(refused).toMatchObject({ _tag: "RateLimitReached", retry_after: 30 })
    const { body, headers, status } = ofProblem(refused, "req_1", undefined)
    expect([status, JSON.parse(String(body))]).toEqual([
      429,
      {
        error: "a budget currently admits no more calls",
        code: "rate_limited",
        details: {
          budget_id: "bud",
          budget_name: "test",
          unit: "requests",
          limit: "1",
          left: "0",
          renews_at: "2026-03-01T10:01:00.000Z"
        }
      }
    ])
    expect(headers).toMatchObject({ "retry-after": "30", "x-ratelimit-reset-requests": "30s" })
    const facts = { message: "a call was refused", tenant: acme, model: "m", upstream: "p", request_id: "req_1" }
    expect(lines).toMatchObject([{ ...facts, status: 429, code: "rate_limited" }])
    yield* set("bud", { limit: { requests: 9 } })
    yield* set("bud_usd", { limit: { usd: 0n } })
    expect(yield* Effect.flip(meter())).toMatchObject({ _tag: "BudgetExceeded", unit: "usd" })
    expect(lines.at(-1)).toMatchObject({ ...facts, status: 402, code: "budget_exceeded" })
  })
)

inScene(
  "an admission says the tokens that are left, and the ways that a budget has taken away, even if no budget counts the call",
  Effect.gen(function* () {
    const ways = [
      { model: "m", provider: "p" },
      { model: "m", provider: "q" }
    ]
    expect(yield* meter({ ways })).toEqual({
      rates: undefined,
      tokens: undefined,
      open: [true, true],
      barred: undefined
    })
    yield* set("bud_p", { limit: { usd: 0n }, applies_to: { provider: "p" } }, everyone)
    const { barred, open } = yield* meter({ ways })
    expect([open, barred]).toMatchObject([[false, true], { _tag: "BudgetExceeded", budget_id: "bud_p" }])
    yield* set("bud_t", { limit: { tokens: 30 } })
    expect(yield* meter({ ways })).toMatchObject({
      tokens: 30,
      open: [false, true],
      rates: { tokens: { limit: 30, remaining: 0 } }
    })
  })
)
