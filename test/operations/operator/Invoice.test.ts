/** Vendors' invoices: recognized columns, sums, and unreadable lines. */
import { describe, expect, it } from "vitest"
import { linesMax, read } from "../../../src/operations/operator/Invoice.ts"

const refusal = async (text: string): Promise<string> =>
  read(text).then(
    () => "none",
    (error: Error) => error.message
  )

describe("an invoice", () => {
  it("is summed by day and model, with all digits of its amounts", async () => {
    const invoice = await read(
      [
        "\uFEFFDate,Model,Quantity,Cost (USD)",
        "2026-03-01,gpt-5,1000,0.1",
        '2026-03-01,gpt-5,"2,000",0.2',
        "2026-03-01,gpt-5-mini,3,0.0000000004",
        "2026-03-01,gpt-5-mini,4,0.0000000004",
        '2026-03-02T23:30:00-01:00,gpt-5,1.5,"$1,234.567890123"',
        "20260304,gpt-5,,-2.50",
        "1772668800,gpt-5,1,1e-9",
        ""
      ].join("\r\n")
    )
    expect(invoice.columns).toEqual({ day: "Date", model: "Model", amount: "Cost (USD)", quantity: "Quantity" })
    expect(invoice.bad_lines).toEqual([])
    expect(invoice.lines).toEqual([
      { day: "2026-03-01", model: "gpt-5", amount: 300_000_000n, quantity: "3000" },
      // Twice 0.4 nano-USD is 0.8, rounded once.
      { day: "2026-03-01", model: "gpt-5-mini", amount: 1n, quantity: "7" },
      { day: "2026-03-03", model: "gpt-5", amount: 1_234_567_890_123n, quantity: "1.5" },
      { day: "2026-03-04", model: "gpt-5", amount: -2_500_000_000n, quantity: null },
      { day: "2026-03-05", model: "gpt-5", amount: 1n, quantity: "1" }
    ])
  })

  it.each([
    ["usage_date;model_name;amount_usd\n2026-03-01;m;1", ["usage_date", "model_name", "amount_usd"]],
    [
      "start_time_iso\tmodel\tamount_value\tamount_currency\n2026-03-01T00:00:00Z\tm\t1\tusd",
      ["start_time_iso", "model", "amount_value"]
    ],
    ["total_cost,extra,model,usage_date\n1,,m,2026-03-01", ["usage_date", "model", "total_cost"]]
  ])("has its columns found by their names: %j", async (text, [day, model, amount]) => {
    const { columns, lines } = await read(text as string)
    expect(columns).toMatchObject({ day, model, amount })
    expect(lines).toEqual([expect.objectContaining({ day: "2026-03-01", model: "m", amount: 1_000_000_000n })])
  })

  it("reports unreadable lines and reads the others", async () => {
    const invoice = await read(
      [
        "date,model,cost,currency",
        "2026-03-01,m,1,USD",
        "yesterday,m,1,USD",
        "2026-02-30,m,1,USD",
        "2026-03-01,,1,USD",
        "2026-03-01,m,one,USD",
        '2026-03-01,"m, the second",1,USD',
        "2026-03-01,m,1,EUR",
        "2026-03-01",
        "2026-03-01,m,0x10,USD",
        "2026-03-01,m,1e999,USD",
        '2026-03-01,a "quoted" name,1,USD',
        "2026-03-01,m,1,usd,more,than,there,are",
        "2026-03-01,m,,USD",
        "2026-03-01,m,1,USD"
      ].join("\n")
    )
    expect(invoice.bad_lines.map(({ line }) => line)).toEqual([3, 4, 5, 6, 8, 9, 10, 11, 14])
    expect(invoice.bad_lines_total).toBe(9)
    expect(invoice.bad_lines[0]!.why).toBe('"yesterday" is not a date such as 2026-03-01')
    expect(invoice.lines.map(({ amount, model }) => [model, amount])).toEqual([
      ["m", 3_000_000_000n],
      ["m, the second", 1_000_000_000n],
      ['a "quoted" name', 1_000_000_000n]
    ])
  })

  it("is refused if it is not an invoice", async () => {
    expect(await refusal("")).toContain("column names")
    expect(await refusal("\n\n")).toContain("column names")
    expect(await refusal("date,cost\n2026-03-01,1")).toContain("no column for the model")
    expect(await refusal("model,cost\nm,1")).toContain("no column for the day")
    expect(await refusal("date,model\n2026-03-01,m")).toContain("no column for the amount")
    expect(await refusal('date,model,cost\n2026-03-01,"m,1\n2026-03-01,m,1')).toContain("cannot be read as CSV")
    expect(await refusal("\0\u0001\u0002")).toContain("no column")
    expect(await refusal(`date,model,cost${",x".repeat(300)}`)).toContain("at most 200 columns")
    expect(await refusal(`date,model,cost\n2026-03-01,"${"x".repeat(100_000)}",1`)).toContain("cannot be read as CSV")
  })

  it("has limits", async () => {
    const line = "2026-03-01,m,1\n"
    expect(await refusal(`date,model,cost\n${line.repeat(linesMax + 1)}`)).toContain(`at most ${linesMax} lines`)
    const models = Array.from({ length: 20_001 }, (_, i) => `2026-03-01,m${i},1`).join("\n")
    expect(await refusal(`date,model,cost\n${models}`)).toContain("pairs of day and model")
    const bad = await read(`date,model,cost\n${"x,m,1\n".repeat(1_000)}`)
    expect([bad.bad_lines.length, bad.bad_lines_total, bad.lines]).toEqual([100, 1_000, []])
  })
})
