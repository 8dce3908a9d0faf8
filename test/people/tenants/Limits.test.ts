/** Limits of API keys over HTTP: setting, showing and counting them. */
import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { application, ask, beginning, person, scene, sql } from "../auth/World.ts"
import type { Person } from "../auth/World.ts"
import { verify } from "../../../src/app/Checks.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { parse } from "../../../src/kernel/Moment.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { Credentials } from "../../../src/people/auth/Credentials.ts"

let calls = 0

/** Reserves an amount for a call by a key of the person; answers the call's id. */
const reserve = (of: Person, application_id: string, amount: bigint) =>
  Effect.gen(function* () {
    const { reserve } = yield* Ledger
    const call = `call_${calls++}`
    yield* reserve({
      call,
      sources: [
        { billing_account_id: billingAccountOf(of.tenant_id), tenant_id: of.tenant_id, kind: "own", why: "own" }
      ],
      least: amount,
      most: amount,
      run: "run",
      facts: {
        account_id: of.account_id,
        tenant_id: of.tenant_id,
        application_id,
        usage_type: "tool",
        endpoint: "search",
        model: "search",
        provider: "search"
      }
    })
    return call
  })

const settle = (call: string, cost: bigint) =>
  Effect.flatMap(Ledger, ({ settle }) =>
    settle({
      call,
      outcome: {
        cost,
        prompt_tokens: 0,
        completion_tokens: 0,
        units: 1,
        success: true,
        error_type: null,
        usage_source: "provider",
        latency_ms: 1
      }
    })
  )

const spend = (of: Person, application_id: string, amount: bigint) =>
  Effect.flatMap(reserve(of, application_id, amount), (call) => settle(call, amount))

const at = ({ tenant_id }: Person, id?: string) =>
  `/v1/tenants/${tenant_id}/applications${id === undefined ? "" : `/${id}`}`

const plain = [
  "account_id",
  "created_at",
  "description",
  "id",
  "key_hash",
  "key_prefix",
  "last_used_at",
  "name",
  "updated_at"
]

describe("an application", () => {
  scene(
    "shows its limits, and no fields for missing limits",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { token } = ada
      const limits = {
        spending_limit_usd: 2.5,
        spending_limit_period: "month",
        expires_at: "2026-04-01T00:00:00.000Z",
        allowed_models: ["small", "large"]
      }
      const made = yield* ask("POST", at(ada), {
        token,
        json: { name: "Robot", ...limits, allowed_models: ["small", "large", "small"] }
      })
      expect(made.status).toBe(201)
      const { api_key: _, ...shown } = made.body.result
      expect(shown).toMatchObject({ ...limits, spent_usd: 0, reserved_usd: 0 })
      const { id } = shown
      yield* spend(ada, id, usd)
      yield* reserve(ada, id, usd / 2n)
      const now = { ...shown, spent_usd: 1, reserved_usd: 0.5 }
      expect((yield* ask("GET", at(ada, id), { token })).body.result).toEqual(now)
      expect((yield* ask("GET", at(ada), { token })).body.result.records).toEqual([now])

      const change = (json: object) =>
        Effect.map(ask("PATCH", at(ada, id), { token, json }), ({ body }) => body.result ?? body)
      expect(yield* change({ name: "Golem" })).toEqual({ ...now, name: "Golem" })
      expect(yield* change({ spending_limit_usd: 0.1 })).toMatchObject({
        spending_limit_usd: 0.1,
        spending_limit_period: "month",
        spent_usd: 1
      })
      expect(yield* change({ spending_limit_period: "total" })).toMatchObject({
        spending_limit_usd: 0.1,
        spending_limit_period: "total",
        spent_usd: 1,
        reserved_usd: 0.5
      })
      const none = yield* change({ spending_limit_usd: null, expires_at: null, allowed_models: null })
      expect(Object.keys(none).toSorted()).toEqual(plain)
      const other = yield* application(ada)
      expect(Object.keys(other).toSorted()).toEqual(["api_key", ...plain].toSorted())
      expect(yield* verify).toEqual([])
    })
  )

  scene(
    "may be limited by valid values only",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { token } = ada
      const { id } = yield* application(ada)
      const bad: ReadonlyArray<readonly [object, string]> = [
        [{ spending_limit_usd: -0.01 }, "spending_limit_usd"],
        [{ spending_limit_usd: 1_000_000_001 }, "spending_limit_usd"],
        [{ spending_limit_usd: "1" }, "spending_limit_usd"],
        [{ spending_limit_usd: 1, spending_limit_period: "day" }, "spending_limit_period"],
        [{ spending_limit_period: "month" }, "spending_limit_period"],
        [{ expires_at: "2026-03-01T10:00:00Z" }, "expires_at"],
        [{ expires_at: "tomorrow" }, "expires_at"],
        [{ expires_at: 5 }, "expires_at"],
        [{ allowed_models: [] }, "allowed_models"],
        [{ allowed_models: [""] }, "allowed_models"],
        [{ allowed_models: "small" }, "allowed_models"],
        [{ allowed_models: Array.from({ length: 201 }, (_, i) => `${i}`) }, "allowed_models"]
      ]
      for (const [json, field] of bad) {
        const refused = {
          status: 400,
          body: { error: expect.any(String), code: "invalid_request", details: { field, rule: expect.any(String) } }
        }
        expect([json, yield* ask("POST", at(ada), { token, json: { name: "x", ...json } })]).toEqual([json, refused])
        expect([json, yield* ask("PATCH", at(ada, id), { token, json })]).toEqual([json, refused])
      }
      expect((yield* ask("GET", at(ada), { token })).body.result.total_records).toBe(1)
      const nothing = yield* ask("POST", at(ada), { token, json: { name: "x", spending_limit_usd: 0 } })
      expect(nothing.body.result).toMatchObject({ spending_limit_usd: 0, spending_limit_period: "total" })
    })
  )

  scene(
    "counts earlier charges against a new limit, of this month or of all time",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const [{ id }, another] = [yield* application(ada), yield* application(ada)]
      yield* spend(ada, id, usd)
      yield* TestClock.setTime(parse("2026-04-01T00:00:00Z")!)
      yield* spend(ada, another.id, usd)
      yield* spend(ada, id, usd / 10n)
      const open = yield* reserve(ada, id, usd / 5n)
      const limited = (period: string) =>
        Effect.map(
          ask("PATCH", at(ada, id), { token, json: { spending_limit_usd: 2, spending_limit_period: period } }),
          ({ body }) => [body.result.spent_usd, body.result.reserved_usd]
        )
      const { token } = yield* again
      expect(yield* limited("month")).toEqual([0.1, 0.2])
      expect(yield* limited("total")).toEqual([1.1, 0.2])
      expect(yield* limited("month")).toEqual([0.1, 0.2])
      // An open call at the end of a month counts in the next month.
      yield* TestClock.setTime(parse("2026-05-01T00:00:00Z")!)
      const shown = Effect.flatMap(again, (one) =>
        Effect.map(ask("GET", at(ada, id), { token: one.token }), ({ body }) => [
          body.result.spent_usd,
          body.result.reserved_usd
        ])
      )
      expect(yield* shown).toEqual([0, 0.2])
      expect(yield* verify).toEqual([])
      yield* settle(open, usd / 20n)
      expect(yield* shown).toEqual([0.05, 0])
      expect(yield* verify).toEqual([])
      expect(yield* Effect.flip(reserve(ada, id, 2n * usd))).toMatchObject({
        _tag: "LimitReached",
        application: id,
        available: (2n * usd * 39n) / 40n
      })
    })
  )

  scene(
    "that is deleted leaves no limit, and its open calls settle",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { token } = ada
      const made = yield* ask("POST", at(ada), { token, json: { name: "x", spending_limit_usd: 1 } })
      const { id } = made.body.result
      const open = yield* reserve(ada, id, usd)
      const gone = yield* ask("DELETE", at(ada, id), { token })
      expect(gone).toMatchObject({ status: 200, body: { result: { spending_limit_usd: 1, reserved_usd: 1 } } })
      expect(yield* settle(open, usd)).toMatchObject({ _tag: "Settled", collected: usd })
      expect(yield* sql("SELECT * FROM tollgate_ledger_budgets")).toEqual([])
      expect(yield* verify).toEqual([])
    })
  )
})

/** Signs in again, because a token expires within a month. */
const again = person("ada@example.com")

describe("a key that expires", () => {
  scene(
    "is refused from that instant, even if it was used just before",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { token } = ada
      const expires_at = "2026-03-01T10:00:30.000Z"
      const made = yield* ask("POST", at(ada), { token, json: { name: "x", expires_at } })
      const { api_key, id } = made.body.result
      const { apiKey } = yield* Credentials
      const use = apiKey(`Bearer ${api_key}`)
      yield* TestClock.setTime(beginning + 29_999)
      expect(yield* use).toMatchObject({ application_id: id })
      yield* TestClock.setTime(beginning + 30_000)
      const refused = yield* Effect.flip(use)
      expect([refused.status, refused.body]).toEqual([
        401,
        { error: "invalid API key", code: "api_key_expired", details: { expired_at: expires_at } }
      ])
      expect((yield* ask("GET", at(ada), { token })).body.result.records).toMatchObject([{ id, expires_at }])
      yield* ask("PATCH", at(ada, id), { token, json: { expires_at: "2026-03-01T11:00:00Z" } })
      expect(yield* use).toMatchObject({ application_id: id })
      // An earlier expiry takes effect at once, although the key is cached.
      yield* ask("PATCH", at(ada, id), { token, json: { expires_at: "2026-03-01T10:00:31Z" } })
      yield* TestClock.setTime(beginning + 31_000)
      expect(yield* Effect.flip(use)).toMatchObject({ _tag: "ExpiredKey" })
      yield* ask("PATCH", at(ada, id), { token, json: { expires_at: null } })
      expect(yield* use).toMatchObject({ application_id: id })
    })
  )
})

describe("a key with a list of models", () => {
  scene(
    "is passed on with the caller from the next call",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { token } = ada
      const { api_key, id } = yield* application(ada)
      const { keyOrToken } = yield* Credentials
      const use = keyOrToken(`Bearer ${api_key}`)
      expect(yield* use).not.toHaveProperty("allowed_models")
      yield* ask("PATCH", at(ada, id), { token, json: { allowed_models: ["small"] } })
      expect(yield* use).toMatchObject({ allowed_models: ["small"] })
      yield* ask("PATCH", at(ada, id), { token, json: { allowed_models: null } })
      expect(yield* use).not.toHaveProperty("allowed_models")
    })
  )
})
