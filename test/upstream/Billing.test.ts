/** Vendors' bills in their recorded formats: pages, buckets, minor units, admin keys, and files. */
import { Redacted } from "effect"
import { Readable } from "node:stream"
import { describe, expect, it } from "vitest"
import { amountIn } from "../../src/upstream/billing/Bill.ts"
import { readBill } from "../../src/upstream/billing/Files.ts"
import { billingApis } from "../../src/upstream/billing/Vendors.ts"

const window = { first: "2026-03-01", last: "2026-03-02" }
const { anthropic, openai, openrouter } = billingApis

describe("an amount", () => {
  it.each([
    [0.06, 0, 60_000_000n, 10_000_000n],
    ["123.78912", 2, 1_237_891_200n, 100n],
    ["0.0000000004", 0, 0n, 1n],
    [1.5e-7, 0, 150n, 10n],
    ["-2.50", 0, -2_500_000_000n, 10_000_000n]
  ])("%s in 10^-%i USD is exact", (value, minor, amount, resolution) => {
    expect(amountIn(value, minor)).toEqual({ amount, resolution })
  })

  it.each(["", "1,5", null, Number.NaN])("%s is refused", (value) => {
    expect(() => amountIn(value)).toThrow("is not an amount")
  })
})

describe("OpenAI's bill", () => {
  it("is asked for whole UTC days, with the admin key only in a header", () => {
    const path = openai.path("costs", window, "page_2")
    expect(path).toContain("start_time=1772323200&end_time=1772496000")
    expect(path).toContain("group_by=line_item&page=page_2")
    expect(openai.headers(Redacted.make("sk-admin"))).toEqual({ authorization: "Bearer sk-admin" })
  })

  const bucket = (results: ReadonlyArray<object>, more: object = {}) => ({
    data: [{ start_time: 1_772_323_200, end_time: 1_772_409_600, results }],
    has_more: false,
    next_page: null,
    ...more
  })
  const cost = { amount: { value: 0.06, currency: "usd" }, line_item: "gpt-5, cached input" }

  it("has amounts by line item, and tokens by model", () => {
    expect(openai.read("costs", window, null, bucket([cost], { has_more: true, next_page: "p2" }))).toEqual({
      lines: [
        {
          day: "2026-03-01",
          model: "gpt-5",
          kind: "cached_input",
          quantity: null,
          amount: 60_000_000n,
          resolution: 10_000_000n
        }
      ],
      next: "p2"
    })
    const usage = { model: "gpt-5", input_tokens: 10, input_cached_tokens: 4, output_tokens: 3, num_model_requests: 2 }
    const { lines } = openai.read("usage/completions", window, null, bucket([usage]))
    expect(lines.map(({ kind, quantity, requests }) => [kind, quantity, requests])).toEqual([
      ["input", 6, 2],
      ["cached_input", 4, undefined],
      ["output", 3, undefined]
    ])
  })

  it.each([
    ["another currency", bucket([{ ...cost, amount: { value: 1, currency: "eur" } }]), "is not USD"],
    ["half a day", { data: [{ start_time: 1_772_323_200, end_time: 1_772_366_400, results: [] }] }, "not a UTC day"],
    ["a day outside", { data: [{ start_time: 1_772_496_000, end_time: 1_772_582_400, results: [] }] }, "is outside"],
    ["a lost cursor", bucket([], { has_more: true }), "does not identify the next one"],
    ["no list", {}, "contains no list data"]
  ])("is refused for %s", (_, body, message) => {
    expect(() => openai.read("costs", window, null, body)).toThrow(message)
  })
})

describe("Anthropic's bill", () => {
  const bucket = (result: object) => ({
    data: [{ starting_at: "2026-03-02T00:00:00Z", ending_at: "2026-03-03T00:00:00Z", results: [result] }],
    has_more: false,
    next_page: null
  })

  it("has cents as decimal strings, by type of token", () => {
    const result = {
      currency: "USD",
      amount: "123.78912",
      model: "claude-sonnet-5",
      token_type: "cache_creation.ephemeral_1h_input_tokens",
      service_tier: "batch"
    }
    expect(anthropic.read("cost_report", window, null, bucket(result)).lines).toEqual([
      {
        day: "2026-03-02",
        model: "claude-sonnet-5",
        kind: "cache_write_1h",
        quantity: null,
        amount: 1_237_891_200n,
        resolution: 100n,
        tier: "batch"
      }
    ])
  })

  it("has searches as charges of no model", () => {
    const search = {
      currency: "USD",
      amount: "10",
      cost_type: "web_search",
      description: "Web Search Usage",
      model: null
    }
    const [line] = anthropic.read("cost_report", window, null, bucket(search)).lines
    expect([line!.kind, line!.model, line!.amount]).toEqual(["other", "Web Search Usage", 100_000_000n])
  })

  it("is asked for with the admin key and a version", () => {
    expect(anthropic.headers(Redacted.make("sk-ant-admin"))["x-api-key"]).toBe("sk-ant-admin")
    expect(decodeURIComponent(anthropic.path("cost_report", window, null))).toContain(
      "starting_at=2026-03-01T00:00:00.000Z&ending_at=2026-03-03T00:00:00.000Z"
    )
  })
})

describe("OpenRouter's bill", () => {
  it("is read day by day", () => {
    const item = {
      date: "2026-03-01",
      model: "openai/gpt-5",
      usage: 0.015,
      requests: 5,
      prompt_tokens: 50,
      completion_tokens: 125
    }
    const page = openrouter.read("activity", window, null, { data: [item] })
    expect(page.next).toBe("2026-03-02")
    expect(page.lines.map(({ amount, kind, quantity }) => [kind, quantity, amount])).toEqual([
      ["input", 50, null],
      ["output", 125, null],
      ["all", null, 15_000_000n]
    ])
    expect(openrouter.read("activity", window, "2026-03-02", { data: [] }).next).toBeNull()
    expect(() => openrouter.read("activity", window, "2026-03-02", { data: [item] })).toThrow(
      "does not belong to 2026-03-02"
    )
  })

  it("describes one call by its id", () => {
    const data = {
      id: "gen-1",
      model: "openai/gpt-5",
      created_at: "2026-03-01T23:59:59Z",
      native_tokens_prompt: 10,
      native_tokens_cached: 4,
      native_tokens_completion: 3,
      total_cost: 0.00012
    }
    expect(
      openrouter.call!.read({ data }).map(({ amount, call, kind, quantity }) => [call, kind, quantity, amount])
    ).toEqual([
      ["gen-1", "input", 6, null],
      ["gen-1", "cached_input", 4, null],
      ["gen-1", "output", 3, null],
      ["gen-1", "all", null, 120_000n]
    ])
  })
})

const read = (...lines: ReadonlyArray<string>) => readBill(Readable.from([lines.join("\n")]))

describe("a bill in a file", () => {
  it("may be AWS's Cost and Usage Report 2.0", async () => {
    const { format, lines } = await read(
      "line_item_usage_start_date,line_item_usage_type,line_item_unblended_cost,line_item_line_item_type,line_item_product_code,line_item_usage_amount,pricing_unit,line_item_currency_code",
      "2026-03-01T00:00:00.000Z,USE1-ClaudeSonnet5-input-tokens,0.003,Usage,AmazonBedrock,1,1K tokens,USD",
      "2026-03-01T05:00:00.000Z,USE1-ClaudeSonnet5-input-tokens,0.006,Usage,AmazonBedrock,2,1K tokens,USD",
      "2026-03-01T05:00:00.000Z,USE1-ClaudeSonnet5-cache-read-input-token-count,0.0003,Usage,AmazonBedrock,1,1K tokens,USD",
      "2026-03-01T05:00:00.000Z,,-0.001,Credit,AmazonBedrock,,,USD",
      "2026-03-01T05:00:00.000Z,BoxUsage,9,Usage,AmazonEC2,1,Hrs,USD"
    )
    expect([format, lines.map(({ amount, kind, model, quantity }) => [model, kind, quantity, amount])]).toEqual([
      "cur",
      [
        ["ClaudeSonnet5", "input", 3_000, 9_000_000n],
        ["ClaudeSonnet5", "cached_input", 1_000, 300_000n],
        ["Credit", "other", null, -1_000_000n]
      ]
    ])
  })

  it("may be FOCUS", async () => {
    const { format, lines } = await read(
      "BilledCost,BillingCurrency,ChargePeriodStart,ChargeCategory,ChargeDescription,ConsumedQuantity,ConsumedUnit,ResourceName",
      "0.5,USD,2026-03-01T00:00:00Z,Usage,gpt-5 output tokens,20000,Tokens,gpt-5",
      "0.1,USD,2026-03-01T00:00:00Z,Tax,VAT,,,"
    )
    expect([format, lines.map(({ amount, kind, model, quantity }) => [model, kind, quantity, amount])]).toEqual([
      "focus",
      [
        ["gpt-5", "output", 20_000, 500_000_000n],
        ["Tax: VAT", "other", null, 100_000_000n]
      ]
    ])
  })

  it("may be Google's billing export, with credits as a column", async () => {
    const { format, lines } = await read(
      "usage_start_time,cost,currency,sku.description,service.description,usage.amount,usage.unit,cost_type,credits.amount",
      "2026-03-01 23:30:00 UTC,0.2,USD,Gemini 3 Pro Input Text,Vertex AI,1000,count,regular,-0.05"
    )
    expect([format, lines.map(({ amount, day, kind, model }) => [day, model, kind, amount])]).toEqual([
      "google",
      [
        ["2026-03-01", "Gemini 3 Pro", "input", 200_000_000n],
        ["2026-03-01", "credit: Gemini 3 Pro Input Text", "other", -50_000_000n]
      ]
    ])
  })

  it.each([
    ["an unknown header", ["a,b", "1,2"], "the header must be"],
    ["an empty file", [], "a header line"],
    [
      "another currency",
      ["BilledCost,BillingCurrency,ChargePeriodStart,ChargeCategory", "1,EUR,2026-03-01T00:00:00Z,Usage"],
      'line 2: "EUR" is not USD'
    ]
  ])("is refused for %s", async (_, lines, message) => {
    await expect(read(...lines)).rejects.toThrow(message)
  })
})
