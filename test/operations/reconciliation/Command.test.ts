/** `tollgate reconcile` with a file, and the operator's routes and metrics that show its result. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { modelOf, Routed } from "../../support/Routed.ts"
import { command } from "../../support/Service.ts"

const day = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10)

let routed: Routed
let token: string
let env: { readonly DATA_DIR: string }
beforeAll(async () => {
  routed = await Routed.start(
    { a: {} },
    { models: [modelOf("one", ["a"])], reconciliation: { aws: { upstreams: ["a"], models: { "gpt-5": "one" } } } }
  )
  env = { DATA_DIR: routed.service.folder }
  token = (await command(["operator", "--token", "--name", "grace"], env)).stdout.trim()
})
afterAll(() => routed?.stop())

const reconcile = (...more: ReadonlyArray<string>) => {
  const config = join(routed.service.folder, "reconcile.json")
  const upstreams = { a: { base_url: "http://127.0.0.1:9/v1", api_key: "k" } }
  const reconciliation = { aws: { upstreams: ["a"], models: { "gpt-5": "one" } } }
  writeFileSync(config, JSON.stringify({ upstreams, models: [modelOf("one", ["a"])], reconciliation }))
  return command(["reconcile", "--config", config, "--from", day, "--to", day, ...more], env)
}

const bill = (): string => {
  const path = join(routed.service.folder, "bill.csv")
  writeFileSync(
    path,
    [
      "BilledCost,BillingCurrency,ChargePeriodStart,ChargeCategory,ChargeDescription,ConsumedQuantity,ConsumedUnit,ResourceName",
      `0.5,USD,${day}T00:00:00Z,Usage,gpt-5 output tokens,20000,Tokens,gpt-5`,
      `0.1,USD,${day}T00:00:00Z,Tax,VAT,,,`
    ].join("\n")
  )
  return path
}

const reconciliations = async (path = "") =>
  (await routed.service.call(`/v1/operator/reconciliations${path}`, { token })).body

describe("tollgate reconcile", () => {
  it("compares a file, names the causes, and shows the result to the operator", async () => {
    const { code, stdout } = await reconcile("--vendor", "aws", "--file", bill(), "--json")
    expect(code).toBe(0)
    expect(JSON.parse(stdout).reconciliations[0]).toMatchObject({
      day,
      billed: "0.6",
      expected: "0",
      drift: "0.6",
      causes: [
        { cause: "coverage", amount: "0.5" },
        { cause: "not_usage", amount: "0.1" }
      ]
    })
    expect((await reconciliations("?vendor=aws")).result.reconciliations).toMatchObject([
      { vendor: "aws", day, billed: 0.6, drift: 0.6 }
    ])
    expect((await reconciliations(`/aws/${day}`)).result.differences).toMatchObject([
      { model: "one", kind: "output", cause: "coverage", amount: 0.5, quantity: 20_000 },
      { model: "Tax: VAT", cause: "not_usage", amount: 0.1 }
    ])
    const metrics = await (await fetch(`${routed.service.url}/metrics`)).text()
    expect(metrics).toContain('tollgate_reconciliation_drift_usd{vendor="aws"} 0.6')
    expect(metrics).toMatch(/tollgate_reconciliation_coverage\{vendor="aws"\} 0\.1666/)
  })

  it("shows the operator the period's days and models, and the differences page by page", async () => {
    expect((await reconciliations("?from=2020-01-01&to=2020-01-02")).result).toEqual({
      vendors: [{ vendor: "aws", api: null, first_day: day, last_day: day }],
      reconciliations: [],
      truncated: false
    })
    const { days, rows, truncated } = (await reconciliations(`/aws?from=${day}`)).result
    expect([days.length, truncated]).toEqual([1, false])
    expect(rows).toMatchObject([
      { day, model: "Tax: VAT", billed: 0.1 },
      { day, model: "one", billed: 0.5, expected: 0, charged: 0, requests: 0 }
    ])
    expect((await reconciliations(`/aws?to=2020-01-01`)).result).toEqual({ days: [], rows: [], truncated: false })
    const first = (await reconciliations("/aws/differences?limit=1")).result
    expect(first.records).toMatchObject([{ day, model: "one", kind: "output", cause: "coverage", amount: 0.5 }])
    const second = (await reconciliations(`/aws/differences?limit=1&before=${first.next}`)).result
    expect(second).toMatchObject({ records: [{ day, model: "Tax: VAT", cause: "not_usage" }], next: null })
    const only = (await reconciliations("/aws/differences?cause=not_usage")).result
    expect([only.records.length, only.next]).toEqual([1, null])
    expect((await reconciliations("/aws/differences?model=two")).result).toEqual({ records: [], next: null })
    expect((await reconciliations("/nobody/differences")).result).toEqual({ records: [], next: null })
    expect((await reconciliations("/aws/differences?cause=magic")).details).toMatchObject({ field: "cause" })
    expect((await reconciliations("/aws?from=yesterday")).details).toMatchObject({ field: "from" })
  })

  it("refuses what it cannot compare", async () => {
    const unknown = await reconcile("--vendor", "azure")
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('there is no vendor "azure"')])
    const without = await reconcile("--vendor", "aws")
    expect([without.code, without.stderr]).toEqual([1, expect.stringContaining("has no billing API")])
    expect((await reconciliations("/aws/2020-01-01")).code).toBe("reconciliation_not_found")
  })
})
