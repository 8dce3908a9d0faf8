/** Runs over HTTP: what they may be, who sees them, how they end, and when their rows go. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect } from "@effect/vitest"
import { Effect, Option, TestClock } from "effect"
import { application, ask, beginning, join, person, refresh, scene, sql } from "../auth/World.ts"
import type { Person } from "../auth/World.ts"
import { describeSqlite } from "../../support/database.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { toIso } from "../../../src/kernel/Moment.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Credentials } from "../../../src/people/auth/Credentials.ts"
import { BudgetedRuns } from "../../../src/people/runs/BudgetedRuns.ts"
import { hasRoom } from "../../../src/people/runs/RunRow.ts"

const make = (key: string, json: object) => ask("POST", "/v1/runs", { token: key, json })

interface Made {
  readonly id: string
  readonly api_key: string
}

/** A run with these fields. */
const run = (key: string, json: object = {}) =>
  Effect.map(make(key, { limit: { usd: 1 }, ...json }), ({ body, status }) => {
    expect([status, body]).toEqual([201, expect.anything()])
    return body.result as Made
  })

const read = (token: string, id: string) => ask("GET", `/v1/runs/${id}`, { token })
const end = (token: string, id: string) => ask("DELETE", `/v1/runs/${id}`, { token })
const list = (token: string, query = "") =>
  Effect.map(ask("GET", `/v1/runs${query}`, { token }), ({ body }) =>
    (body.result.records as ReadonlyArray<{ readonly id: string }>).map(({ id }) => id)
  )

const callerOf = (key: string) => Effect.flatMap(Credentials, ({ apiKey }) => apiKey(`Bearer ${key}`))
const refusalOf = (key: string) => Effect.map(Effect.flip(callerOf(key)), ({ _tag }) => _tag)

let calls = 0

/** Reserves an amount for a call with this key. */
const reserve = (of: Person, key: string, amount: bigint, model = "m") =>
  Effect.gen(function* () {
    const { reserve } = yield* Ledger
    const { account_id, application_id, runs, tenant_id } = yield* callerOf(key)
    const call = `call_${calls++}`
    yield* reserve({
      call,
      sources: [
        { billing_account_id: billingAccountOf(of.tenant_id), tenant_id: of.tenant_id, kind: "own", why: "own" }
      ],
      least: amount,
      most: amount,
      run: "run",
      tokens: { least: 1, most: 100 },
      facts: {
        account_id,
        tenant_id,
        application_id,
        runs,
        run_id: runs?.[0],
        usage_type: "inference",
        endpoint: "chat/completions",
        model,
        provider: "p",
        capability: "chat"
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
        prompt_tokens: 2,
        completion_tokens: 3,
        units: 1,
        success: true,
        error_type: null,
        usage_source: "provider",
        latency_ms: 1
      }
    })
  )

const spend = (of: Person, key: string, amount: bigint, model?: string) =>
  Effect.flatMap(reserve(of, key, amount, model), (call) => settle(call, amount))

const invalid = (field: string, rule: string) => ({
  error: `${field === "" ? "the request" : field}: ${rule}`,
  code: "invalid_request",
  details: { field, rule }
})

describe("a run", () => {
  scene(
    "with an unknown field is refused: it would be wider than was meant",
    Effect.gen(function* () {
      const { api_key } = yield* application(yield* person("ada@example.com"))
      for (const [json, field] of [
        [{ limit: { usd: 1 }, model: ["m"] }, "model"],
        [{ limit: { usd: 1, request: 5 } }, "limit.request"]
      ] as const) {
        const { body, status } = yield* make(api_key, json)
        expect([status, body.code, body.details.field]).toEqual([400, "invalid_request", field])
      }
    })
  )

  scene(
    "is made with a key, and shown without its own key from then on",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key, id: application_id } = yield* application(ada)
      const made = yield* make(api_key, {
        name: "nightly",
        limit: { usd: 0.5, tokens: 1_000, requests: 10, concurrent: 2 },
        expires_in: 60,
        tags: { project: "atlas" }
      })
      const shown = {
        id: expect.stringMatching(/^run_/),
        name: "nightly",
        application_id,
        parent: null,
        level: 1,
        key_prefix: expect.stringMatching(/^svc-run-[0-9a-f]{5}$/),
        limit: { usd: 0.5, tokens: 1_000, requests: 10, concurrent: 2 },
        spent: { usd: 0, tokens: 0, requests: 0 },
        reserved: { usd: 0, tokens: 0 },
        open_calls: 0,
        tags: { project: "atlas" },
        created_at: toIso(beginning),
        expires_at: toIso(beginning + 60_000),
        ended_at: null
      }
      expect([made.status, made.body.result]).toEqual([
        201,
        { ...shown, api_key: expect.stringMatching(/^svc-run-[0-9a-f]{64}$/) }
      ])
      const { api_key: key, id } = made.body.result as Made
      expect((yield* read(ada.token, id)).body.result).toEqual({ ...shown, by_model: [], children: [] })
      expect(yield* callerOf(key)).toEqual({
        account_id: ada.account_id,
        tenant_id: ada.tenant_id,
        application_id,
        credential: "api_key",
        team_first: false,
        runs: [id],
        labels: { tags: "project=atlas" }
      })
      const stored = JSON.stringify(yield* sql("SELECT * FROM tollgate_runs"))
      expect(stored.includes(id) && !stored.includes(key)).toBe(true)
    })
  )

  scene(
    "is made with no user token, and its key is none",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const refused = yield* make(ada.token, { limit: { usd: 1 } })
      expect([refused.status, refused.body]).toEqual([
        403,
        { error: "create a run with an API key or a run's key", code: "api_key_required" }
      ])
      const { api_key } = yield* run((yield* application(ada)).api_key)
      for (const path of ["/v1/me", `/v1/tenants/${ada.tenant_id}/applications`]) {
        const answer = yield* ask("GET", path, { token: api_key })
        expect([path, answer.status, answer.body.error]).toEqual([path, 401, "invalid or expired token"])
      }
      expect((yield* ask("GET", "/v1/runs", { token: "svc-run-00" })).body.error).toBe("invalid API key")
    })
  )

  scene(
    "is refused by field",
    Effect.gen(function* () {
      const { api_key } = yield* application(yield* person("ada@example.com"))
      for (const [json, field] of [
        [{}, "limit"],
        [{ limit: {} }, "limit"],
        [{ limit: { usd: -1 } }, "limit.usd"],
        [{ limit: { usd: "1" } }, "limit.usd"],
        [{ limit: { tokens: 1.5 } }, "limit.tokens"],
        [{ limit: { requests: -1 } }, "limit.requests"],
        [{ limit: { concurrent: null } }, "limit.concurrent"],
        [{ limit: { usd: 1 }, expires_in: 0 }, "expires_in"],
        [{ limit: { usd: 1 }, expires_in: 2_592_001 }, "expires_in"],
        [{ limit: { usd: 1 }, models: [] }, "models"],
        [{ limit: { usd: 1 }, name: "x".repeat(101) }, "name"],
        [{ limit: { usd: 1 }, tags: { a: "x".repeat(200) } }, "tags"],
        [{ limit: { usd: 1 }, tags: { "a b": "x" } }, "tags"],
        [{ limit: { usd: 1 }, tags: Object.fromEntries([..."abcdefghi"].map((name) => [name, "x"])) }, "tags"]
      ] as const) {
        const { body, status } = yield* make(api_key, json)
        expect([json, status, body.details?.field]).toEqual([json, 400, field])
      }
      const zero = yield* make(api_key, { limit: { usd: 0, requests: 0 } })
      expect([zero.status, zero.body.result.limit]).toEqual([201, { usd: 0, requests: 0 }])
    })
  )
})

describe("a child", () => {
  scene(
    "is not wider than anything above it",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const key = yield* application(ada)
      yield* ask("PATCH", `/v1/tenants/${ada.tenant_id}/applications/${key.id}`, {
        token: ada.token,
        json: { spending_limit_usd: 2, allowed_models: ["m", "n", "o"] }
      })
      const wider = yield* make(key.api_key, { limit: { usd: 2.000000001 } })
      expect([wider.status, wider.body]).toEqual([
        400,
        invalid("limit.usd", "must be at most 2 USD, the limit of the API key")
      ])
      const one = yield* run(key.api_key, {
        limit: { usd: 1, tokens: 100, concurrent: 3 },
        models: ["m", "n"],
        tags: { a: "1", b: "2" }
      })
      // The child limits requests alone; the limits above it hold for the third level too.
      const two = yield* run(one.api_key, { limit: { requests: 5 }, tags: { b: "2", c: "3" } })
      for (const [json, field, rule] of [
        [{ limit: { usd: 1.5 } }, "limit.usd", `must be at most 1 USD, the limit of the run ${one.id}`],
        [{ limit: { usd: 3 } }, "limit.usd", `must be at most 1 USD, the limit of the run ${one.id}`],
        [{ limit: { tokens: 101 } }, "limit.tokens", `must be at most 100 tokens, the limit of the run ${one.id}`],
        [{ limit: { requests: 6 } }, "limit.requests", `must be at most 5 requests, the limit of the run ${two.id}`],
        [
          { limit: { concurrent: 4 } },
          "limit.concurrent",
          `must be at most 3 open calls, the limit of the run ${one.id}`
        ],
        [
          { limit: { usd: 1 }, models: ["m", "o"] },
          "models",
          'must be models that the parent may call; the parent may not call "o"'
        ],
        [{ limit: { usd: 1 }, tags: { a: "2" } }, "tags.a", `must be "1", the value that the parent's key has set`],
        [
          { limit: { usd: 1 }, tags: Object.fromEntries([..."defghi"].map((name) => [name, "x"])) },
          "tags",
          "must contain at most 8 tags, including those of the parent"
        ]
      ] as const) {
        const { body, status } = yield* make(two.api_key, json)
        expect([status, body]).toEqual([400, invalid(field, rule)])
      }
      const long = (names: string) => Object.fromEntries([...names].map((name) => [name.repeat(60), "x".repeat(128)]))
      const wordy = yield* run(key.api_key, { tags: long("pqr") })
      const more = yield* make(wordy.api_key, { limit: { usd: 1 }, tags: long("stu") })
      expect([more.status, more.body]).toEqual([
        400,
        invalid("tags", "must be shorter; the limit includes the tags of the parent")
      ])
      const three = yield* run(two.api_key, {
        limit: { usd: 1, tokens: 100, requests: 5, concurrent: 3 },
        models: ["n"]
      })
      expect(yield* callerOf(three.api_key)).toMatchObject({
        application_id: key.id,
        runs: [three.id, two.id, one.id],
        allowed_models: ["n"],
        labels: { tags: "a=1\nb=2\nc=3" }
      })
      expect((yield* callerOf(two.api_key)).allowed_models).toEqual(["m", "n"])
      // The key's list is tightened for its runs too.
      yield* ask("PATCH", `/v1/tenants/${ada.tenant_id}/applications/${key.id}`, {
        token: ada.token,
        json: { allowed_models: ["n", "o"] }
      })
      expect((yield* callerOf(two.api_key)).allowed_models).toEqual(["n"])
    })
  )

  scene(
    "ends with its parent at the latest, and has at most eight levels",
    Effect.gen(function* () {
      const { api_key } = yield* application(yield* person("ada@example.com"))
      let one = yield* run(api_key, { expires_in: 600 })
      for (let level = 2; level <= 8; level++) {
        const made = yield* make(one.api_key, { limit: { usd: 1 }, expires_in: 86_400 })
        expect([made.status, made.body.result.level, made.body.result.expires_at]).toEqual([
          201,
          level,
          toIso(beginning + 600_000)
        ])
        one = made.body.result
      }
      const ninth = yield* make(one.api_key, { limit: { usd: 1 } })
      expect([ninth.status, ninth.body]).toEqual([
        400,
        invalid("", "runs may be at most 8 levels deep; this run would be at level 9")
      ])
    })
  )

  scene(
    "and all above it admit a call, and count what it came to",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* application(ada)
      const one = yield* run(api_key, { limit: { usd: 1, requests: 4 } })
      const two = yield* run(one.api_key, { limit: { tokens: 1_000 } })
      const three = yield* run(two.api_key, { limit: { usd: 0.5 } })
      yield* spend(ada, three.api_key, usd / 4n)
      yield* spend(ada, two.api_key, usd / 2n, "n")
      const open = yield* reserve(ada, three.api_key, usd / 8n)
      const standing = (id: string) =>
        Effect.map(read(api_key, id), ({ body: { result } }) => ({
          ...result.spent,
          reserved: result.reserved.usd,
          open: result.open_calls,
          by_model: result.by_model,
          children: result.children.map((child: Made) => child.id)
        }))
      const m = { model: "m", requests: 1, cost_usd: 0.25, prompt_tokens: 2, completion_tokens: 3 }
      const n = { model: "n", requests: 1, cost_usd: 0.5, prompt_tokens: 2, completion_tokens: 3 }
      const above = { usd: 0.75, tokens: 10, requests: 3, reserved: 0.125, open: 1, by_model: [n, m] }
      expect(yield* standing(one.id)).toEqual({ ...above, children: [two.id] })
      expect(yield* standing(two.id)).toEqual({ ...above, children: [three.id] })
      expect(yield* standing(three.id)).toEqual({
        usd: 0.25,
        tokens: 5,
        requests: 2,
        reserved: 0.125,
        open: 1,
        by_model: [m],
        children: []
      })
      // 0.125 are left of the child, and as much of the first run.
      for (const [key, amount, budget] of [
        [three.api_key, usd / 4n, three.id],
        [two.api_key, usd / 4n, one.id]
      ] as const) {
        expect(yield* Effect.flip(reserve(ada, key, amount))).toMatchObject({
          _tag: "BudgetReached",
          budget,
          unit: "usd"
        })
      }
      yield* settle(open, 0n)
      yield* spend(ada, two.api_key, 0n)
      expect(yield* Effect.flip(reserve(ada, three.api_key, 0n))).toMatchObject({
        _tag: "BudgetReached",
        budget: one.id,
        unit: "requests"
      })
      expect(yield* verify).toEqual([])
    })
  )
})

describe("who sees a run", () => {
  scene(
    "is its key, the runs above it and the person, and no other",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const [key, otherKey] = [(yield* application(ada)).api_key, (yield* application(ada)).api_key]
      const one = yield* run(key)
      const two = yield* run(one.api_key)
      const beside = yield* run(key)
      const elsewhere = yield* run(otherKey)
      const bob = yield* person("bob@example.com")
      const theirs = yield* run((yield* application(bob)).api_key)
      for (const [token, seen] of [
        [ada.token, [elsewhere, beside, two, one]],
        [key, [beside, two, one]],
        [one.api_key, [two, one]],
        [two.api_key, [two]],
        [bob.token, [theirs]]
      ] as const) {
        const ids = seen.map(({ id }) => id)
        expect((yield* list(token)).toSorted()).toEqual(ids.toSorted())
        for (const { id } of [one, two, beside, elsewhere, theirs]) {
          const status = ids.includes(id) ? 200 : 404
          expect((yield* read(token, id)).status).toBe(status)
          if (status === 404) expect((yield* end(token, id)).body.code).toBe("run_not_found")
        }
      }
      expect(yield* list(key, `?parent=${one.id}`)).toEqual([two.id])
      expect(yield* list(key, "?per_page=1&page=3")).toHaveLength(1)
    })
  )
})

describe("who sees the runs of a team", () => {
  scene(
    "its owners and admins see those of all keys; a member sees those of own keys, and one who left sees none",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const grace = yield* person("grace@example.com")
      const alan = yield* person("alan@example.com")
      yield* join(grace.account_id, ada.tenant_id)
      yield* join(alan.account_id, ada.tenant_id, "active", "admin")
      const inTeam = (of: Person) =>
        Effect.map(refresh(of.refresh_token, { tenant_id: ada.tenant_id }), ({ body }) => ({
          ...of,
          token: body.result.access_token as string,
          tenant_id: ada.tenant_id
        }))
      const [graceThere, alanThere] = [yield* inTeam(grace), yield* inTeam(alan)]
      const adas = yield* run((yield* application(ada)).api_key)
      const graces = yield* run((yield* application(graceThere)).api_key)
      const elsewhere = yield* run((yield* application(grace)).api_key)
      for (const [token, seen] of [
        [ada.token, [adas, graces]],
        [alanThere.token, [adas, graces]],
        [graceThere.token, [graces]],
        [grace.token, [elsewhere]]
      ] as const) {
        const ids = seen.map(({ id }) => id)
        expect((yield* list(token)).toSorted()).toEqual(ids.toSorted())
        for (const { id } of [adas, graces, elsewhere])
          expect((yield* read(token, id)).status).toBe(ids.includes(id) ? 200 : 404)
      }
      expect((yield* end(graceThere.token, adas.id)).status).toBe(404)
      expect((yield* end(alanThere.token, graces.id)).body.result.ended_at).not.toBeNull()
      yield* sql("UPDATE tollgate_tenants_memberships SET role = 'member' WHERE account_id = ?", [alan.account_id])
      expect(yield* list(alanThere.token)).toEqual([])
      expect((yield* end(alanThere.token, adas.id)).status).toBe(404)
    })
  )
})

describe("the end of a run", () => {
  scene(
    "ends the runs below it and their keys, once, and charges open calls",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* application(ada)
      const one = yield* run(api_key)
      const two = yield* run(one.api_key)
      const three = yield* run(two.api_key)
      const open = yield* reserve(ada, three.api_key, usd / 2n)
      yield* TestClock.setTime(beginning + 1_000)
      const ended = yield* end(api_key, two.id)
      expect([ended.status, ended.body.result.ended_at]).toEqual([200, toIso(beginning + 1_000)])
      expect(yield* refusalOf(two.api_key)).toBe("InvalidKey")
      expect(yield* refusalOf(three.api_key)).toBe("InvalidKey")
      expect((yield* callerOf(one.api_key)).runs).toEqual([one.id])
      expect((yield* read(api_key, three.id)).body.result.ended_at).toBe(toIso(beginning + 1_000))
      yield* TestClock.setTime(beginning + 2_000)
      expect((yield* end(ada.token, two.id)).body.result.ended_at).toBe(toIso(beginning + 1_000))
      yield* settle(open, usd / 4n)
      for (const { id } of [one, two, three]) {
        const { open_calls, reserved, spent } = (yield* read(ada.token, id)).body.result
        expect([spent.usd, reserved.usd, open_calls]).toEqual([0.25, 0, 0])
      }
      // A run may end itself.
      expect((yield* end(one.api_key, one.id)).status).toBe(200)
      expect(yield* refusalOf(one.api_key)).toBe("InvalidKey")
      expect(yield* verify).toEqual([])
    })
  )

  scene(
    "comes with the end of its API key, and at its time",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const key = yield* application(ada)
      const one = yield* run(key.api_key, { expires_in: 60 })
      const two = yield* run(key.api_key)
      yield* callerOf(one.api_key)
      yield* TestClock.setTime(beginning + 60_000)
      expect(yield* refusalOf(one.api_key)).toBe("ExpiredKey")
      expect((yield* read(ada.token, one.id)).body.result.ended_at).toBe(toIso(beginning + 60_000))
      const three = yield* run(two.api_key)
      yield* join(ada.account_id, ada.tenant_id, "suspended")
      expect(yield* refusalOf(three.api_key)).toBe("InvalidKey")
      yield* join(ada.account_id, ada.tenant_id)
      yield* callerOf(two.api_key)
      yield* ask("DELETE", `/v1/tenants/${ada.tenant_id}/applications/${key.id}`, { token: ada.token })
      expect(yield* refusalOf(two.api_key)).toBe("InvalidKey")
      yield* Effect.flatMap(BudgetedRuns, ({ job }) => job.turn)
      expect((yield* read(ada.token, two.id)).body.result.ended_at).toBe(toIso(beginning + 60_000))
    })
  )

  scene(
    "is marked by the loop, which deletes a tree 30 days later unless a call is open",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* application(ada)
      const one = yield* run(api_key, { expires_in: 60 })
      const two = yield* run(one.api_key)
      const open = yield* reserve(ada, two.api_key, usd / 2n)
      const later = yield* run(api_key, { expires_in: 2_592_000 })
      const { job } = yield* BudgetedRuns
      const rows = sql<{ id: string; ended_at: number | null }>("SELECT id, ended_at FROM tollgate_runs ORDER BY id")
      yield* job.turn
      expect((yield* rows).map(({ ended_at }) => ended_at)).toEqual([null, null, null])
      yield* TestClock.setTime(beginning + 60_000)
      yield* job.turn
      expect(new Map((yield* rows).map(({ ended_at, id }) => [id, ended_at]))).toEqual(
        new Map([
          [one.id, beginning + 60_000],
          [two.id, beginning + 60_000],
          [later.id, null]
        ])
      )
      expect(yield* refusalOf(two.api_key)).toBe("ExpiredKey")
      yield* TestClock.setTime(beginning + 60_001 + 30 * 86_400_000)
      yield* job.turn
      expect(yield* rows).toHaveLength(3)
      yield* settle(open, usd / 4n)
      for (let turns = 0; turns < 3; turns++) yield* job.turn
      expect((yield* rows).map(({ id }) => id)).toEqual([later.id])
      const budgets = yield* sql<{ id: string }>("SELECT id FROM tollgate_ledger_budgets WHERE kind = 'run'")
      expect(budgets.map(({ id }) => id)).toEqual([later.id])
      expect((yield* read(api_key, one.id)).status).toBe(404)
      expect(yield* verify).toEqual([])
    })
  )

  scene(
    "deletes a tree without calls after an hour",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* application(ada)
      const used = yield* run(api_key, { expires_in: 60 })
      const below = yield* run(used.api_key)
      yield* settle(yield* reserve(ada, below.api_key, usd / 2n), usd / 4n)
      const unused = yield* run(api_key, { expires_in: 60 })
      yield* run(unused.api_key)
      const open = yield* run(api_key, { expires_in: 86_400 })
      const { job } = yield* BudgetedRuns
      const ids = Effect.map(sql<{ id: string }>("SELECT id FROM tollgate_runs ORDER BY id"), (rows) =>
        rows.map(({ id }) => id)
      )
      yield* TestClock.setTime(beginning + 60_000 + 3_600_000)
      yield* job.turn
      expect(yield* ids).toHaveLength(5)
      yield* TestClock.setTime(beginning + 60_001 + 3_600_000)
      yield* job.turn
      expect(yield* ids).toEqual([used.id, below.id, open.id].toSorted())
      const budgets = yield* sql<{ id: string }>(
        "SELECT id FROM tollgate_ledger_budgets WHERE kind = 'run' ORDER BY id"
      )
      expect(budgets.map(({ id }) => id)).toEqual([used.id, below.id, open.id].toSorted())
      expect(yield* verify).toEqual([])
    })
  )

  scene(
    "reaches a child that was made meanwhile",
    Effect.gen(function* () {
      const { api_key } = yield* application(yield* person("ada@example.com"))
      const one = yield* run(api_key)
      const two = yield* run(one.api_key)
      yield* sql("UPDATE tollgate_runs SET ended_at = ? WHERE id = ?", [beginning, one.id])
      expect(yield* refusalOf(two.api_key)).toBe("InvalidKey")
      yield* Effect.flatMap(BudgetedRuns, ({ job }) => job.turn)
      const [row] = yield* sql<{ ended_at: number }>("SELECT ended_at FROM tollgate_runs WHERE id = ?", [two.id])
      expect(Option.fromNullable(row?.ended_at)).toEqual(Option.some(beginning))
    })
  )
})

describe("tags that the API key receives later", () => {
  scene(
    "are on the calls of its runs, before those of the runs",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const key = yield* application(ada)
      const tag = (tags: object) =>
        Effect.map(
          ask("PATCH", `/v1/tenants/${ada.tenant_id}/applications/${key.id}`, { token: ada.token, json: { tags } }),
          ({ status }) => expect(status).toBe(200)
        )
      const tagsOf = (token: string) => Effect.map(callerOf(token), ({ labels }) => labels?.tags?.split("\n"))
      const one = yield* run(key.api_key, { tags: { run: "9" } })
      const eight = Object.fromEntries([..."bcdefghi"].map((name) => [name, "x"]))
      const full = yield* run(key.api_key, { tags: eight })
      expect(yield* tagsOf(one.api_key)).toEqual(["run=9"])
      yield* tag({ a: "1", run: "key" })
      expect(yield* tagsOf(one.api_key)).toEqual(["a=1", "run=key"])
      // Two of the run's eight find no room.
      expect(yield* tagsOf(full.api_key)).toEqual(["a=1", "b=x", "c=x", "d=x", "e=x", "f=x", "g=x", "run=key"])
      const child = yield* make(one.api_key, { limit: { usd: 1 }, tags: { a: "2" } })
      expect([child.status, child.body.details.field]).toEqual([400, "tags.a"])
    })
  )
})

// PostgreSQL chooses plans by statistics, which a small test does not have.
describeSqlite("the room for another run", () => {
  scene(
    "is counted from an index alone",
    Effect.gen(function* () {
      const client = yield* SqlClient
      const ada = yield* person("ada@example.com")
      const [text, params] = hasRoom(client, ada.tenant_id, beginning).compile()
      const plan = yield* client.unsafe<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`, params)
      expect(plan.map(({ detail }) => detail)).toContainEqual(
        expect.stringContaining("USING COVERING INDEX tollgate_runs_open")
      )
    })
  )
})

describe("the open runs of a tenant", () => {
  scene(
    "are at most 10,000",
    Effect.gen(function* () {
      const ada = yield* person("ada@example.com")
      const { api_key } = yield* application(ada)
      const one = yield* run(api_key)
      yield* sql(
        `INSERT INTO tollgate_runs (id, tenant_id, account_id, application_id, parent, path, level, name, key_hash, key_prefix, models, tags,
            end_user, created_at, expires_at, ended_at)
          SELECT id || n.value, tenant_id, account_id, application_id, parent, path || n.value, level, name, key_hash || n.value, key_prefix,
            models, tags, end_user, created_at, expires_at, ended_at
          FROM tollgate_runs, (WITH RECURSIVE numbers (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < 9999)
            SELECT value FROM numbers) n`
      )
      const refused = yield* make(api_key, { limit: { usd: 1 } })
      expect([refused.status, refused.body]).toEqual([
        409,
        {
          error: "this tenant has too many open runs; end one first",
          code: "too_many_runs",
          details: { open_max: 10_000 }
        }
      ])
      yield* end(api_key, one.id)
      yield* run(api_key)
    })
  )
})
