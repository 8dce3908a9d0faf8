/** The rows of both formats as text: what CSV and FOCUS 1.2 require of them, for any call. */
import { parse } from "csv-parse/sync"
import fc from "fast-check"
import { Readable } from "node:stream"
import { describe, expect, it } from "vitest"
import { billed } from "../../../src/books/prices/Lines.ts"
import type { PriceLine } from "../../../src/books/prices/Lines.ts"
import { times } from "../../../src/books/prices/PriceFactors.ts"
import { isText, textOf, tagsOf } from "../../../src/kernel/Labels.ts"
import { fromDecimal } from "../../../src/kernel/Money.ts"
import { charge } from "../../../src/kernel/Price.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { detailNames } from "../../../src/kernel/TokenDetails.ts"
import { partsOf } from "../../../src/money/exports/Billed.ts"
import { csvFormat } from "../../../src/money/exports/Csv.ts"
import type { ExportedCall, ExportHead, RowFormat } from "../../../src/money/exports/Export.ts"
import { focusFormat } from "../../../src/money/exports/Focus.ts"
import { readBill } from "../../../src/upstream/billing/Files.ts"
import { datasetFaults, headerFaults, rowFaults } from "./FocusRules.ts"
import type { FocusRow } from "./FocusRules.ts"

const head: ExportHead = { billing_account_id: "bil_acme", tenant_name: "Acme, Inc.", service_name: "Tollgate" }

const price = (text: string): UnitPrice => fromDecimal(text, 18) as UnitPrice

const plain: ExportedCall = {
  entry_id: "led_acme_000000000002",
  at: Date.UTC(2026, 0, 31, 23, 59, 59, 999),
  charge: 1_050n,
  uncollected: 0n,
  usage_id: "use_1",
  account_id: "acc_ada",
  account_name: "Ada",
  account_email: "ada@example.com",
  tenant_id: "ten_acme",
  application_id: "",
  application_name: "",
  usage_type: "inference",
  endpoint: "chat/completions",
  model: "small",
  provider: "here",
  price: "v1",
  billing_source_kind: "own",
  prompt_tokens: 3,
  completion_tokens: 1,
  units: 4,
  token_details: undefined,
  usage_source: "provider",
  latency_ms: 100,
  success: true,
  request_id: "",
  run_id: "",
  tags: "",
  end_user: "",
  lines: [
    { quantity: "prompt_tokens", unit: "token", price: price("0.00000015") },
    { quantity: "completion_tokens", unit: "token", price: price("0.0000006") }
  ]
}

const rowsIn = (format: RowFormat, calls: ReadonlyArray<ExportedCall>): ReadonlyArray<FocusRow> =>
  parse(format.header + calls.map(format.rows).join(""), { columns: true, record_delimiter: "\r\n" }) as never

// ---- any calls ----------------------------------------------------------------------------------------------------------

/** Texts that members and their clients choose, hostile ones among them. */
const chosen = fc.oneof(
  fc.constantFrom("", "=1+2", "+49 30", "-x", "@SUM(A1)", "\tx", 'a "b"', "a,b", "a\r\nb", "＝1", "x", "'=1"),
  fc.string({ unit: "grapheme", maxLength: 20 })
)

const priceLines = fc
  .record({
    prompt: fc.bigInt({ min: 0n, max: 10n ** 15n }),
    completion: fc.bigInt({ min: 0n, max: 10n ** 15n }),
    cached: fc.option(fc.bigInt({ min: 0n, max: 10n ** 13n })),
    above: fc.option(fc.bigInt({ min: 1n, max: 10n ** 15n })),
    request: fc.option(fc.bigInt({ min: 1n, max: 10n ** 18n })),
    millionths: fc.option(fc.bigInt({ min: 1n, max: 3_000_000n }))
  })
  .map(({ above, cached, completion, millionths, prompt, request }): ReadonlyArray<PriceLine> => {
    const lines: ReadonlyArray<PriceLine> = [
      { quantity: "prompt_tokens", unit: "token", price: prompt as UnitPrice },
      { quantity: "completion_tokens", unit: "token", price: completion as UnitPrice },
      ...(cached === null ? [] : [{ quantity: "cached_tokens", unit: "token", price: cached as UnitPrice } as const]),
      ...(request === null ? [] : [{ quantity: "requests", unit: "request", price: request as UnitPrice } as const]),
      ...(above === null
        ? []
        : [{ quantity: "prompt_tokens", unit: "token", price: above as UnitPrice, above: 5_000 } as const])
    ]
    if (millionths === null) return lines
    const text = `0.${millionths.toString().padStart(6, "0")}`
    const factor = { text, millionths: fromDecimal(text, 6)! }
    return factor.millionths === 0n || millionths >= 1_000_000n
      ? lines
      : lines.map((line) => ({ ...line, price: times(line.price, factor), factors: [text] }))
  })

const toolLines = fc
  .record({
    unit: fc.constantFrom("second", "image", "character", "search", "query", "letter", "edited image", "request"),
    price: fc.bigInt({ min: 1n, max: 10n ** 17n })
  })
  .map(({ price, unit }): ReadonlyArray<PriceLine> => [{ quantity: "units", unit, price: price as UnitPrice }])

const tags = fc
  .dictionary(fc.stringMatching(/^[a-z][a-z0-9_.-]{0,9}$/), fc.string({ minLength: 1, maxLength: 12 }).filter(isText), {
    maxKeys: 4
  })
  .map((all) => (Object.keys(all).length === 0 ? "" : JSON.stringify(tagsOf(textOf(Object.entries(all))))))

const calls = fc
  .record({
    at: fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2099, 11, 31) }),
    isTool: fc.boolean(),
    lines: fc.oneof(
      { weight: 8, arbitrary: priceLines },
      { weight: 3, arbitrary: toolLines },
      { weight: 1, arbitrary: fc.constant([]) }
    ),
    prompt_tokens: fc.nat(20_000),
    completion_tokens: fc.nat(5_000),
    units: fc.integer({ min: 1, max: 10_000 }),
    cached: fc.nat(20_000),
    /** Thousandths of the cost that the balance covered, and whether the charge is another amount than the lines give. */
    covered: fc.integer({ min: 0, max: 1_000 }),
    odd: fc.integer({ min: 0, max: 9 }),
    account_name: fc.oneof(chosen, fc.constant(" ")),
    account_email: chosen,
    application_name: chosen,
    end_user: chosen,
    request_id: chosen,
    run_id: fc.constantFrom("", "run_1"),
    tags
  })
  .map(({ cached, covered, isTool, odd, ...one }): ExportedCall => {
    const token_details = { cached_tokens: Math.min(cached, one.prompt_tokens) }
    const figures = { ...one, requests: 1, token_details }
    const cost = charge(billed(one.lines, figures)) + (odd === 0 ? 7n : 0n)
    const paid = (cost * BigInt(covered)) / 1_000n
    return {
      ...plain,
      ...one,
      token_details,
      model: isTool ? "voice" : "small",
      usage_type: isTool ? "tool" : "inference",
      charge: paid === 0n ? 1n : paid,
      uncollected: paid === 0n ? 0n : cost - paid
    }
  })

const sumOf = (amounts: ReadonlyArray<string | undefined>): bigint =>
  amounts.reduce((sum, text) => sum + fromDecimal(text!, 9)!, 0n)

describe("rows of FOCUS", () => {
  it("meet the requirements of FOCUS 1.2, and add up to the charge", () => {
    expect(headerFaults(focusFormat(head).header.trim().split(","))).toEqual([])
    fc.assert(
      fc.property(calls, (call) => {
        const rows = rowsIn(focusFormat(head), [call])
        expect(rows.flatMap(rowFaults)).toEqual([])
        expect(sumOf(rows.map(({ BilledCost }) => BilledCost))).toBe(call.charge)
        expect(rows.every(({ x_UsageId }) => x_UsageId === call.usage_id)).toBe(true)
      }),
      { numRuns: 1_000 }
    )
  })

  it("use one SKU, service and price consistently", () => {
    fc.assert(
      fc.property(fc.array(calls, { maxLength: 30 }), (some) => {
        expect(datasetFaults(rowsIn(focusFormat(head), some))).toEqual([])
      })
    )
  })

  it("break the table of rules if a cell is wrong", () => {
    const [row] = rowsIn(focusFormat(head), [plain])
    for (const [name, text, fault] of [
      ["BilledCost", "", "BilledCost is null"],
      ["ListCost", "0.0000005", "not so: list cost = list price × quantity"],
      ["ContractedCost", "+1", "ContractedCost is no decimal: +1"],
      ["ChargePeriodStart", "2026-01-31T23:59:59.999Z", "ChargePeriodStart is no time"],
      ["ChargeCategory", "Use", "ChargeCategory must not be Use"],
      ["InvoiceIssuerName", "Other", "not so: the provider issues the invoice"],
      ["PricingUnit", "tokens", "PricingUnit is no unit: tokens"],
      ["Tags", '{"a":{}}', "Tags is no object"]
    ] as const) {
      expect(rowFaults({ ...row!, [name]: text }).join("; ")).toContain(fault)
    }
  })

  it("show the quantities and prices of each line", () => {
    const cached = { quantity: "cached_tokens", unit: "token", price: price("0.000000086"), factors: ["1.15"] } as const
    const call: ExportedCall = {
      ...plain,
      prompt_tokens: 10,
      token_details: { cached_tokens: 4 },
      lines: [
        ...plain.lines.map((line) => ({
          ...line,
          price: times(line.price, { text: "1.15", millionths: 1_150_000n }),
          factors: ["1.15"]
        })),
        cached
      ],
      // 6 × 172.5 + 1 × 690 + 4 × 86 = 2,069 nano-USD
      charge: 2_069n
    }
    const rows = rowsIn(focusFormat(head), [call])
    expect(
      rows.map((row) => [
        row["SkuId"],
        row["PricingQuantity"],
        row["PricingUnit"],
        row["ListUnitPrice"],
        row["ContractedUnitPrice"],
        row["BilledCost"]
      ])
    ).toEqual([
      ["small/prompt_tokens", "6.0", "Tokens", "0.00000015", "0.0000001725", "0.000001035"],
      ["small/completion_tokens", "1.0", "Tokens", "0.0000006", "0.00000069", "0.00000069"],
      ["small/cached_tokens", "4.0", "Tokens", "0.000000074782608696", "0.000000086", "0.000000344"]
    ])
    expect(rows[2]).toMatchObject({
      SkuMeter: "Cached Prompt Tokens",
      SkuPriceId: "small/cached_tokens/0.000000074782608696",
      ChargeDescription: "small: cached prompt tokens (chat/completions)",
      BillingPeriodStart: "2026-01-01T00:00:00Z",
      BillingPeriodEnd: "2026-02-01T00:00:00Z",
      ChargePeriodStart: "2026-01-31T23:59:59Z",
      ChargePeriodEnd: "2026-02-01T00:00:00Z",
      ServiceName: "Model inference",
      ServiceSubcategory: "Generative AI",
      SubAccountName: "Ada",
      BillingAccountName: "Acme, Inc."
    })
  })

  it("divide a charge that the balance did not cover in proportion, to the nano-USD", () => {
    const parts = partsOf({ ...plain, charge: 100n, uncollected: 950n })
    expect(parts.map(({ charge }) => charge)).toEqual([42n, 58n])
    expect(parts.map(({ price, quantity }) => BigInt(quantity) * price)).toEqual([450_000_000_000n, 600_000_000_000n])
  })

  it("have one line per call if its price does not explain the charge", () => {
    for (const [call, cost] of [
      [{ ...plain, lines: [] }, "0.00000105"],
      [{ ...plain, charge: 1_051n }, "0.000001051"]
    ] as const) {
      expect(rowsIn(focusFormat(head), [call])).toMatchObject([
        { SkuId: "small/call", PricingQuantity: "1.0", PricingUnit: "Requests", ListCost: cost, BilledCost: cost }
      ])
    }
  })

  it("can be read as a bill by this service's own reader", async () => {
    const format = focusFormat(head)
    const file = format.header + format.rows(plain) + format.rows({ ...plain, usage_id: "use_2" })
    const { format: read, lines } = await readBill(Readable.from([file]))
    expect(read).toBe("focus")
    expect(lines.map(({ amount, day, kind, model, quantity }) => ({ amount, day, kind, model, quantity }))).toEqual([
      { amount: 900n, day: "2026-01-31", kind: "input", model: "small", quantity: 6 },
      { amount: 1_200n, day: "2026-01-31", kind: "output", model: "small", quantity: 2 }
    ])
  })
})

describe("rows of our own format", () => {
  it("contain each value of a call", () => {
    const tagged = {
      ...plain,
      tags: '{"project":"a,b"}',
      end_user: "user-7",
      application_id: "app_1",
      application_name: "key"
    }
    const [row] = rowsIn(csvFormat(head), [{ ...tagged, token_details: { cached_tokens: 2 }, uncollected: 1n }])
    expect(row).toEqual({
      time: "2026-01-31T23:59:59.999Z",
      usage_id: "use_1",
      ledger_entry_id: "led_acme_000000000002",
      usage_type: "inference",
      endpoint: "chat/completions",
      model: "small",
      provider: "here",
      charge_usd: "0.000001050",
      uncollected_usd: "0.000000001",
      prompt_tokens: "3",
      completion_tokens: "1",
      total_tokens: "4",
      ...Object.fromEntries(detailNames.map((name) => [name, name === "cached_tokens" ? "2" : "0"])),
      units: "4",
      usage_source: "provider",
      success: "true",
      latency_ms: "100",
      account_id: "acc_ada",
      account_name: "Ada",
      account_email: "ada@example.com",
      tenant_id: "ten_acme",
      application_id: "app_1",
      application_name: "key",
      run_id: "",
      end_user: "user-7",
      tags: '{"project":"a,b"}',
      request_id: "",
      billing_account_id: "bil_acme",
      billing_source_kind: "own"
    })
  })

  it("are read back by a CSV parser, with an apostrophe before each formula", () => {
    const names = ["account_name", "account_email", "application_name", "end_user", "request_id"] as const
    fc.assert(
      fc.property(calls, (call) => {
        const [row, ...others] = rowsIn(csvFormat(head), [call])
        expect(others).toEqual([])
        for (const name of names) {
          const isFormula = /^[=+\-@\t\r\n＝＋－＠]/.test(call[name])
          expect(row![name]).toBe(isFormula ? `'${call[name]}` : call[name])
        }
        expect(row!["tags"]).toBe(call.tags)
        expect(fromDecimal(row!["charge_usd"]!, 9)).toBe(call.charge)
        for (const text of Object.values(row!)) expect(text).not.toMatch(/^[=+\-@\t\r\n＝＋－＠]/)
      }),
      { numRuns: 500 }
    )
  })
})
