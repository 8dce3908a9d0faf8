/** The sandbox's vendor keeps its own bill. A faithful bill has no difference; each planted mistake is found with its cause. */
import { Effect, Redacted } from "effect"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { day as dayMillis, hour as hourMillis, parse, toDay } from "../../../src/kernel/Moment.ts"
import type { Cause, ReconciledDifference } from "../../../src/operations/reconciliation/Reconciliation.ts"
import type { BillingVendor } from "../../../src/operations/reconciliation/Settings.ts"
import type { Mistake } from "../../../src/sandbox/Bills.ts"
import { billingApiNames } from "../../../src/upstream/billing/Vendors.ts"
import type { BillingApiName } from "../../../src/upstream/billing/Vendors.ts"
import { InProcess } from "../../support/InProcess.ts"

let running: InProcess
let key: string
let window: { readonly first: string; readonly last: string }
let origin: string

const control = (path: string, body: object) =>
  fetch(`${origin}/control${path}`, { method: "POST", body: JSON.stringify(body) })

const advance = async (millis: number): Promise<number> => {
  const { now } = (await (await control("/clock", { advance_ms: millis })).json()) as { now: string }
  return parse(now)!
}

const words = (count: number): string => Array.from({ length: count }, (_, i) => `w${i}`).join(" ")

const chat = async (model: string, count: number, stream = false): Promise<number> => {
  const messages = [{ role: "user", content: words(count) }]
  const { status } = await running.service.call("/v1/chat/completions", {
    token: key,
    json: { model, messages, stream }
  })
  return status
}

/** Nine days of calls at several hours, of two models, whole and streamed. */
beforeAll(async () => {
  running = await InProcess.start({ steered: true })
  origin = running.origin
  key = await running.service.key(await running.service.signIn("ada@example.com"))
  let now = await advance(0)
  now = await advance(dayMillis - (now % dayMillis) + 10 * hourMillis)
  const first = toDay(now)
  const hours = [1, 9, 14, 22]
  for (let i = 0; i < 9; i++) {
    for (const [j, at] of hours.entries()) {
      now = await advance((i + 1) * dayMillis + at * hourMillis - (now - parse(first)!))
      expect(await chat("sandbox-small", 40 + 7 * i + j)).toBe(200)
      expect(await chat("sandbox-large", 30 + 3 * i + 2 * j, true)).toBe(200)
    }
  }
  window = { first: toDay(parse(first)! + dayMillis), last: toDay(parse(first)! + 9 * dayMillis) }
  await advance(3 * dayMillis)
}, 120_000)
afterAll(() => running?.stop())
beforeEach(() => control("/bill", { mistake: null }))

const vendorOf = (api: BillingApiName): BillingVendor => ({
  name: api,
  api,
  key: Redacted.make("admin"),
  base_url: `${origin}/billing/${api}`,
  upstreams: new Set(["sandbox-a"]),
  models: {}
})

const reconciled = (api: BillingApiName, days = window) =>
  running.reconciling([vendorOf(api)], ({ reconcile }) => reconcile(api, days))

const sumOf = (amounts: ReadonlyArray<bigint>): bigint => amounts.reduce((sum, amount) => sum + amount, 0n)

const causesIn = (lines: Awaited<ReturnType<typeof reconciled>>): ReadonlyArray<Cause> =>
  [...new Set(lines.flatMap(({ causes }) => causes.map(({ cause }) => cause)))]
    .filter((cause) => cause !== "rounding")
    .toSorted()

describe("a faithful bill", () => {
  it.each(billingApiNames)("of %s differs by less than 0.01 %%", async (api) => {
    const lines = await reconciled(api)
    expect(lines.map(({ day }) => day)).toHaveLength(9)
    const [billed, drift] = [sumOf(lines.map((one) => one.billed)), sumOf(lines.map((one) => one.drift))]
    expect(billed).toBeGreaterThan(1_000_000n)
    expect((drift < 0n ? -drift : drift) * 10_000n).toBeLessThan(billed)
    expect(causesIn(lines)).toEqual([])
    expect(lines.map(({ coverage }) => coverage)).toEqual(Array.from({ length: 9 }, () => 1))
  })
})

/** The causes of a mistake; for Anthropic, which counts no requests, if they differ. */
const planted: Readonly<Record<Mistake, readonly [Cause, Cause?]>> = {
  unknown_model: ["coverage"],
  unknown_calls: ["coverage", "quantity"],
  unbilled_calls: ["not_billed", "quantity"],
  unbilled_model: ["not_billed"],
  more_input: ["quantity"],
  fewer_input: ["quantity"],
  more_output: ["quantity"],
  fewer_output: ["quantity"],
  input_price: ["price"],
  lower_input_price: ["price"],
  output_price: ["price"],
  lower_output_price: ["price"],
  doubled_price: ["price"],
  batch: ["kind"],
  priority: ["price", "kind"],
  uncached: ["kind"],
  behind: ["time_zone"],
  ahead: ["time_zone"],
  cents: ["rounding"],
  tax: ["not_usage"],
  credit: ["not_usage"]
}

describe("a planted mistake", () => {
  it.each(Object.entries(planted) as ReadonlyArray<[Mistake, readonly [Cause, Cause?]]>)(
    "%s is found with its cause",
    async (mistake, [cause, atAnthropic = cause]) => {
      await control("/bill", { mistake })
      for (const [api, expected] of [
        ["openai", cause],
        ["anthropic", atAnthropic]
      ] as const) {
        const lines = await reconciled(api)
        const found =
          expected === "rounding" ? lines.flatMap(({ causes }) => causes.map((one) => one.cause)) : causesIn(lines)
        expect([api, [...new Set(found)]]).toEqual([api, [expected]])
        for (const { causes, drift } of lines) expect(sumOf(causes.map(({ amount }) => amount))).toBe(drift)
        expect(lines.some(({ drift }) => drift !== 0n)).toBe(true)
      }
    }
  )

  it("names a call that the vendor billed and that failed here", async () => {
    await control("/faults", { service: "chat", times: 1, drop: true })
    const now = await advance(0)
    expect(await chat("sandbox-small", 50)).toBe(500)
    await advance(3 * dayMillis)
    const lines = await reconciled("openai", { first: toDay(now), last: toDay(now) })
    expect(causesIn(lines)).toEqual(["failed_here"])
  })
})

describe("a bill without calls whose vendor describes single calls", () => {
  const differences = async (days = window) => {
    const lines = await reconciled("openrouter", days)
    for (const { causes, drift } of lines) expect(sumOf(causes.map(({ amount }) => amount))).toBe(drift)
    return running.reconciling([vendorOf("openrouter")], ({ find }) =>
      Effect.map(
        Effect.forEach(lines, ({ day }) => find("openrouter", day)),
        (details) => details.flatMap((detail) => detail.differences).filter(({ cause }) => cause !== "rounding")
      )
    )
  }

  it.each([
    ["more_output", "quantity", 18],
    ["uncached", "kind", 18],
    ["input_price", "price", 72],
    ["unbilled_calls", "not_billed", 1]
  ] as const)("names the calls behind %s", async (mistake, cause, count) => {
    await control("/bill", { mistake })
    const found = await differences()
    expect(found).toHaveLength(count)
    expect(new Set(found.map((one) => one.cause))).toEqual(new Set([cause]))
    for (const { usage_id, vendor_request } of found) {
      expect(usage_id).toMatch(/^use_/)
      expect(vendor_request).not.toBeNull()
    }
  })

  it("has calls that the service does not know, if all known calls are billed as metered", async () => {
    await control("/bill", { mistake: "unknown_calls" })
    const found = await differences()
    const note = "7 billed requests, 4 described calls"
    expect(found).toMatchObject([{ cause: "coverage", kind: "all", usage_id: null, quantity: 3 * 440, note }])
    expect((await reconciled("openrouter")).filter(({ coverage }) => coverage < 1)).toHaveLength(1)
  })

  it("knows a call that failed here and has no id", async () => {
    expect(await chat("sandbox-small", 50)).toBe(200)
    await control("/faults", { service: "chat", times: 1, drop: true })
    const now = await advance(0)
    expect(await chat("sandbox-small", 50)).toBe(500)
    await advance(3 * dayMillis)
    const days = { first: toDay(now), last: toDay(now) }
    expect(await differences(days)).toMatchObject([{ cause: "failed_here", quantity: 100 }])
    expect((await reconciled("openrouter", days)).map(({ coverage }) => coverage)).toEqual([1])
  })

  it("keeps the differences of its days and models if a call cannot be read", async () => {
    await control("/bill", { mistake: "more_output" })
    let refused = 0
    const server = createServer((request, response) => {
      if (request.url!.includes("/generation")) {
        refused++
        return response.writeHead(403).end()
      }
      void fetch(`${origin}${request.url}`, { headers: { authorization: "admin" } })
        .then((answer) => answer.text())
        .then((text) => response.writeHead(200, { "content-type": "application/json" }).end(text))
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/billing/openrouter`
    const { details, lines } = await running.reconciling(
      [{ ...vendorOf("openrouter"), base_url }],
      ({ find, reconcile }) =>
        Effect.gen(function* () {
          const lines = yield* reconcile("openrouter", window)
          return { lines, details: yield* Effect.forEach(lines, ({ day }) => find("openrouter", day)) }
        })
    )
    server.close()
    for (const { cause, note } of details.flatMap((detail) => detail.differences))
      if (cause === "quantity")
        expect(note).toMatch(/^\d+ billed requests, .*; the vendor failed to describe its calls$/)
    expect(refused).toBeGreaterThan(0)
    expect(causesIn(lines)).toEqual(["quantity"])
    for (const { causes, drift } of lines) expect(sumOf(causes.map(({ amount }) => amount))).toBe(drift)
  })
})

describe("the differences of a period", () => {
  it("are on pages of any length once each, in the order of the days, and add up to the drift", async () => {
    await control("/bill", { mistake: "more_output" })
    await reconciled("openai")
    const found = await running.reconciling([vendorOf("openai")], ({ differences, find, period }) =>
      Effect.gen(function* () {
        const asked = { vendor: "openai", ...dates() }
        const pages = (limit: number, more: object = {}) =>
          Effect.gen(function* () {
            const records: Array<ReconciledDifference> = []
            let before: string | undefined
            do {
              const page = yield* differences({ ...asked, ...more, limit, before })
              expect(page.records.length).toBeLessThanOrEqual(limit)
              records.push(...page.records)
              before = page.next ?? undefined
            } while (before !== undefined)
            return records
          })
        const { days, rows } = yield* period(asked)
        const stored = yield* Effect.forEach(days, ({ day }) =>
          Effect.map(find("openai", day), (detail) => detail.differences.map((one) => ({ day, ...one })))
        )
        return {
          days,
          rows,
          stored: stored.flat(),
          pages: yield* Effect.all([pages(1), pages(7), pages(200)]),
          ofOne: yield* pages(3, { model: "sandbox-small", cause: "quantity" })
        }
      })
    )
    expect(found.stored.length).toBeGreaterThan(9)
    for (const records of found.pages) expect(records).toEqual(found.stored)
    expect(found.ofOne).toEqual(
      found.stored.filter(({ cause, model }) => cause === "quantity" && model === "sandbox-small")
    )
    expect(found.ofOne.length).toBeGreaterThan(0)
    const difference = sumOf(found.stored.map(({ amount }) => amount))
    expect(sumOf(found.rows.map(({ billed, expected }) => billed - expected))).toBe(difference)
    expect(sumOf(found.days.map(({ drift }) => drift))).toBe(difference)
  })
})

describe("a repeated comparison", () => {
  it("replaces its days, and is read by day", async () => {
    await control("/bill", { mistake: "tax" })
    await reconciled("openai")
    await control("/bill", { mistake: null })
    await reconciled("openai")
    const { detail, list } = await running.reconciling([vendorOf("openai")], ({ find, list }) =>
      Effect.all({ detail: find("openai", window.first), list: list({ vendor: "openai", ...dates() }) })
    )
    expect(list.reconciliations.map(({ day }) => day)).toHaveLength(9)
    expect(list.reconciliations.every(({ drift }) => drift < 100n && drift > -100n)).toBe(true)
    expect(detail.models.map(({ model }) => model)).toEqual(["sandbox-large", "sandbox-small"])
  })

  it("refuses a day that is not closed", async () => {
    const now = await advance(0)
    await expect(reconciled("openai", { first: toDay(now), last: toDay(now) })).rejects.toThrow("is not closed")
  })
})

const dates = () => ({ from: window.first, to: window.last })
