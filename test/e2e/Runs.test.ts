/** Runs of an API key with real calls: which limit refuses, what is charged, and what ends with a run. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
let people = 0

beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

interface Run {
  readonly id: string
  readonly api_key: string
}

/** A key of a person of its own who has 6 USD. */
const keyed = async (): Promise<{ readonly who: Person; readonly key: string }> => {
  const who = await service.signIn(`runs${people++}@example.com`)
  return { who, key: await service.key(who) }
}

const run = async (key: string, limit: object, more: object = {}): Promise<Run> => {
  const { body, status } = await service.call("/v1/runs", { token: key, json: { limit, ...more } })
  expect([status, body]).toEqual([201, expect.anything()])
  return body.result
}

const shown = async (token: string, { id }: Run) => (await service.call(`/v1/runs/${id}`, { token })).body.result

/** 0.005 USD. */
const search = ({ api_key }: Run) => service.call("/v1/search?query=tides", { token: api_key })
const chat = ({ api_key }: Run, body: object = {}) =>
  service.call("/v1/chat/completions", {
    token: api_key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], max_tokens: 10, ...body }
  })

const count = (answers: ReadonlyArray<Answer>, status: number) =>
  answers.filter((answer) => answer.status === status).length

/** The refusal by the limit of a run. */
const exceeded = ({ id }: Run, unit: string, limit: string, left: string, name = id) => ({
  error: "a budget has too little left for this call",
  code: "budget_exceeded",
  details: { budget_id: id, budget_name: name, unit, limit, left }
})

describe("the limit of a run", () => {
  it("refuses its calls, and those of all runs below it", async () => {
    const { key, who } = await keyed()
    const one = await run(key, { usd: 0.012 }, { name: "nightly" })
    const two = await run(one.api_key, { usd: 0.006 })
    expect((await search(two)).status).toBe(200)
    const own = await search(two)
    expect([own.status, own.body]).toEqual([402, exceeded(two, "usd", "0.006", "0.001")])
    expect((await search(one)).status).toBe(200)
    const grandchild = await run((await run(one.api_key, { usd: 0.01 })).api_key, { usd: 0.01 })
    const above = await search(grandchild)
    expect([above.status, above.body]).toEqual([402, exceeded(one, "usd", "0.012", "0.002", "nightly")])
    // Its API key has no limit.
    expect((await service.call("/v1/search?query=tides", { token: key })).status).toBe(200)
    expect(await service.balance(who)).toBe(5.985)
    expect((await shown(key, one)).spent).toEqual({ usd: 0.01, tokens: 0, requests: 2 })
  })

  it("admits exactly 3 of 60 calls at once, of children at once too", async () => {
    const { key } = await keyed()
    const one = await run(key, { usd: 0.017 })
    const children = await Promise.all(Array.from({ length: 6 }, () => run(one.api_key, { usd: 0.017, requests: 10 })))
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => search(children[i % 6]!)))
    expect([count(answers, 200), count(answers, 402)]).toEqual([3, 57])
    const { open_calls, reserved, spent } = await shown(key, one)
    expect([spent.usd, spent.requests, reserved.usd, open_calls]).toEqual([0.015, 3, 0, 0])
  })

  it("counts requests and tokens, and open calls while they are open", async () => {
    const { key } = await keyed()
    const two = await run(key, { requests: 2 })
    expect([(await search(two)).status, (await search(two)).status]).toEqual([200, 200])
    expect((await search(two)).body).toEqual(exceeded(two, "requests", "2", "0"))
    const none = await run(key, { tokens: 0 })
    expect((await chat(none)).body).toEqual(exceeded(none, "tokens", "0", "0"))
    const one = await run(key, { concurrent: 1 })
    const below = await run(one.api_key, { concurrent: 1 })
    await service.control("/faults", { service: "chat", delay_ms: 600_000 })
    const open = chat(one)
    await expect.poll(async () => (await shown(key, one)).open_calls, { timeout: 20_000 }).toBe(1)
    const refused = await chat(below)
    expect([refused.status, refused.body.code, refused.body.details]).toEqual([
      429,
      "rate_limited",
      { budget_id: one.id, budget_name: one.id, unit: "concurrent", limit: "1", left: "0" }
    ])
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    await service.control("/faults", undefined, "DELETE")
    await open
    await expect.poll(async () => (await chat(below)).status, { timeout: 20_000 }).toBe(200)
  })
})

describe("what a run spent", () => {
  it("is shown by model, and stands on the records of its API key", async () => {
    const { key, who } = await keyed()
    const one = await run(key, { usd: 1 })
    const two = await run(one.api_key, { usd: 1 }, { models: ["sandbox-small"] })
    const answers = [await chat(one), await chat(two), await search(one)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const charges = answers.map(({ headers }) => Number(headers.get("x-charge-usd")))
    const barred = await search(two)
    expect([barred.status, barred.body.code]).toEqual([403, "model_not_allowed"])
    const { by_model, children, spent } = await shown(key, one)
    const usages = answers.slice(0, 2).map(({ body }) => body.usage)
    const sum = (name: string) => usages.reduce((total, usage) => total + usage[name], 0)
    expect(by_model).toEqual([
      { model: expect.any(String), requests: 1, cost_usd: 0.005, prompt_tokens: 0, completion_tokens: 0 },
      {
        model: "sandbox-small",
        requests: 2,
        cost_usd: expect.closeTo(charges[0]! + charges[1]!, 9),
        prompt_tokens: sum("prompt_tokens"),
        completion_tokens: sum("completion_tokens")
      }
    ])
    expect(spent).toEqual({
      usd: expect.closeTo(charges[0]! + charges[1]! + charges[2]!, 9),
      tokens: sum("prompt_tokens") + sum("completion_tokens"),
      requests: 3
    })
    expect(children).toMatchObject([{ id: two.id, spent: { requests: 1, usd: charges[1] } }])
    expect((await service.call("/v1/key", { token: two.api_key })).body.result).toEqual({
      id: two.id,
      name: "",
      key_prefix: two.api_key.slice(0, two.api_key.lastIndexOf("-") + 6),
      tenant_id: who.tenant_id,
      account_id: who.account_id,
      created_at: children[0].created_at,
      spending_limit_usd: 1,
      spending_limit_period: "total",
      spent_usd: charges[1],
      reserved_usd: 0,
      remaining_usd: expect.closeTo(1 - charges[1]!, 9),
      allowed_models: ["sandbox-small"],
      expires_at: children[0].expires_at,
      usage: {
        total_requests: 1,
        total_tokens: usages[1].prompt_tokens + usages[1].completion_tokens,
        total_cost: charges[1]
      }
    })
    expect((await shown(two.api_key, two)).by_model).toMatchObject([{ model: "sandbox-small", requests: 1 }])
    const records = await service.usage(who)
    expect(new Set(records.map(({ application_id }) => application_id))).toEqual(new Set([children[0].application_id]))
  })
})

describe("the end of a run", () => {
  it("settles and charges a call that is open, and refuses the next one", async () => {
    const { key, who } = await keyed()
    const one = await run(key, { usd: 1 })
    const two = await run(one.api_key, { usd: 1 })
    await service.control("/faults", { service: "chat", delay_ms: 600_000 })
    const open = chat(two)
    await expect.poll(async () => (await shown(key, two)).open_calls, { timeout: 20_000 }).toBe(1)
    const ended = await service.call(`/v1/runs/${one.id}`, { token: key, method: "DELETE" })
    expect([ended.status, ended.body.result.open_calls]).toEqual([200, 1])
    for (const { api_key } of [one, two]) {
      const refused = await service.call("/v1/search?query=tides", { token: api_key })
      expect([refused.status, refused.body.error]).toEqual([401, "invalid API key"])
    }
    await service.control("/faults", undefined, "DELETE")
    const answer = await open
    expect(answer.status).toBe(200)
    const charge = Number(answer.headers.get("x-charge-usd"))
    expect(charge).toBeGreaterThan(0)
    for (const each of [one, two]) {
      const { by_model, open_calls, reserved, spent } = await shown(who.token, each)
      expect([spent.usd, reserved.usd, open_calls]).toEqual([charge, 0, 0])
      expect(by_model).toMatchObject([{ model: "sandbox-small", requests: 1, cost_usd: charge }])
    }
    expect(await service.balance(who)).toBeCloseTo(6 - charge, 9)
  })
})
