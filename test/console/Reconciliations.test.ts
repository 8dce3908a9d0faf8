/** The operator compares a vendor's bill with the books: sums, causes, days, models and calls. In a real browser. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { modelOf, Routed } from "../support/Routed.ts"
import { command } from "../support/Service.ts"
import { Desk, screens } from "./Browser.ts"
import type { Tab } from "./Browser.ts"

const dayLong = 86_400_000
const dayAgo = (days: number): string => new Date(Date.now() - days * dayLong).toISOString().slice(0, 10)
const [first, last] = [dayAgo(3), dayAgo(2)]

let routed: Routed
let desk: Desk
let usage_id: string

const reconciliation = { aws: { upstreams: ["a"] }, azure: { upstreams: ["a"] } }

/** Thirty models on the first day, one on the last, and a tax. */
const bill = (): string =>
  [
    "BilledCost,BillingCurrency,ChargePeriodStart,ChargeCategory,ChargeDescription,ConsumedQuantity,ConsumedUnit,ResourceName",
    ...Array.from({ length: 30 }, (_, i) => {
      const model = `model-${String(i + 1).padStart(2, "0")}`
      return `${i + 1},USD,${first}T00:00:00Z,Usage,${model} output tokens,1000,Tokens,${model}`
    }),
    `0.5,USD,${last}T00:00:00Z,Usage,one output tokens,20000,Tokens,one`,
    `0.1,USD,${last}T00:00:00Z,Tax,VAT,,,`
  ].join("\n")

beforeAll(async () => {
  routed = await Routed.start({ a: {} }, { models: [modelOf("one", ["a"])], reconciliation })
  desk = await Desk.open({ service: routed.service })
  expect((await routed.chat("one")).status).toBe(200)
  usage_id = (await routed.service.usage(routed.who))[0]!.id
})
afterAll(async () => {
  await desk?.close()
  await routed?.stop()
})

const reconcile = async (): Promise<void> => {
  const { folder } = routed.service
  const [config, file] = [join(folder, "reconcile.json"), join(folder, "bill.csv")]
  const upstreams = { a: { base_url: "http://127.0.0.1:9/v1", api_key: "k" } }
  writeFileSync(config, JSON.stringify({ upstreams, models: [modelOf("one", ["a"])], reconciliation }))
  writeFileSync(file, bill())
  const days = ["--from", first, "--to", last]
  const { code, stderr } = await command(
    ["reconcile", "--config", config, "--vendor", "aws", ...days, "--file", file],
    { DATA_DIR: folder }
  )
  expect([code, stderr]).toEqual([0, ""])
}

const enter = async (): Promise<Tab> => {
  const tab = await desk.tab()
  await tab.page.goto(await desk.operatorLink("grace"))
  await tab.page.getByRole("link", { name: "Reconciliations" }).click()
  await tab.page.getByRole("heading", { name: "Reconciliations", level: 1 }).waitFor()
  return tab
}

const isSound = async (tab: Tab): Promise<void> => {
  for (const colorScheme of ["light", "dark"] as const) {
    await tab.page.emulateMedia({ colorScheme })
    expect([colorScheme, await tab.axe()]).toEqual([colorScheme, []])
  }
  for (const { viewport } of [{ viewport: { width: 320, height: 640 } }, screens.phone, screens.desktop]) {
    await tab.page.setViewportSize(viewport)
    expect([viewport.width, await tab.overflow()]).toEqual([viewport.width, 0])
  }
}

const figure = (page: Page, name: string) =>
  page.locator(".operator-figure", { has: page.getByText(name, { exact: true }) }).locator(".operator-figure-value")

/** Changes what the service answers on a path. */
const changed = (page: Page, path: string, change: (result: never) => object) =>
  page.route(path, async (route) => {
    const response = await route.fetch()
    const { result } = await response.json()
    await route.fulfill({ response, json: { msg: "", result: change(result as never) } })
  })

describe("a vendor without a comparison", () => {
  it("says so, with the command that compares its bill", async () => {
    const tab = await enter()
    await tab.page.getByText("No day was compared in this period").waitFor()
    expect(await tab.page.locator("pre").textContent()).toContain("tollgate reconcile --vendor aws")
    await isSound(tab)
    tab.done()
  })
})

describe("a compared bill", () => {
  it("shows its sums, causes, days and models, and its differences page by page", async () => {
    await reconcile()
    const tab = await enter()
    const { page } = tab
    await page.getByRole("region", { name: "Causes" }).waitFor()
    expect(await page.getByLabel("Vendor").inputValue()).toBe("aws")
    expect(await page.getByLabel("Last day").inputValue()).toBe(last)
    for (const [name, amount] of [
      ["Billed", "$465.60"],
      ["Charged", "$0.00"],
      ["Drift", "+$465.60"]
    ] as const)
      expect([name, await figure(page, name).locator(".sr-only").textContent()]).toEqual([name, amount])
    expect(await figure(page, "Coverage").textContent()).toBe("0%")
    await page.getByText("Every difference has a cause.").waitFor()
    await page
      .getByRole("region", { name: "Causes" })
      .getByRole("row", { name: /Not usage.*\$0\.10/ })
      .waitFor()
    await isSound(tab)

    const differences = page.getByRole("region", { name: "Differences" })
    await differences.getByText("model-30", { exact: true }).waitFor()
    await differences.getByRole("button", { name: "Next page" }).click()
    await differences.getByText("model-01", { exact: true }).waitFor()
    await differences.getByRole("button", { name: "Previous page" }).click()
    await differences.getByText("model-30", { exact: true }).waitFor()

    await page.getByRole("link", { name: "Show differences: Not usage" }).click()
    await differences.getByText("Tax: VAT", { exact: true }).waitFor()
    await differences.getByText("model-30", { exact: true }).waitFor({ state: "detached" })
    await differences.getByText("All", { exact: true }).click()

    const table = page.getByRole("region", { name: "By day and model" })
    await table.getByText("Model", { exact: true }).first().click()
    await table.getByRole("link", { name: "model-17" }).click()
    await differences.getByRole("button", { name: "Remove Model: model-17" }).waitFor()
    await differences.getByText("model-30", { exact: true }).waitFor({ state: "detached" })
    expect(new URL(page.url()).searchParams.get("model")).toBe("model-17")
    await page.reload()
    await differences.getByRole("button", { name: "Remove Model: model-17" }).press("Enter")
    await differences.getByText("model-30", { exact: true }).waitFor()

    await page.getByLabel("First day").fill(last)
    await expect.poll(() => figure(page, "Billed").locator(".sr-only").textContent()).toBe("$0.60")
    await page.getByLabel("Vendor").selectOption("azure")
    await page.getByText("No day was compared in this period").waitFor()
    tab.done()
  })

  it("says what has no cause, and leads down to the call", async () => {
    const tab = await desk.tab()
    const { page } = tab
    const unexplained = { cause: "unexplained", amount: 0.25, lines: 1 }
    await changed(
      page,
      "**/v1/operator/reconciliations/aws?*",
      ({ days, ...more }: { days: ReadonlyArray<object> }) => ({
        ...more,
        days: days.map((day, i) => (i === 0 ? { ...day, causes: [unexplained] } : day))
      })
    )
    await changed(
      page,
      "**/v1/operator/reconciliations/aws/differences?*",
      ({ records }: { records: ReadonlyArray<object> }) => ({
        records: records.map((one, i) => (i === 0 ? { ...one, usage_id, vendor_request: "gen-17" } : one)),
        next: null
      })
    )
    await page.goto(await desk.operatorLink("grace"))
    await page.getByRole("link", { name: "Reconciliations" }).click()
    await page.getByText(/^No cause was found for differences of \$0\.25\./).waitFor()
    const differences = page.getByRole("region", { name: "Differences" })
    await differences.getByText("gen-17").waitFor()
    await isSound(tab)
    await differences.getByRole("button", { name: `Open call ${usage_id}` }).press("Enter")
    const dialog = page.getByRole("dialog")
    await dialog.getByText("Charged", { exact: true }).waitFor()
    await dialog.getByText(usage_id).waitFor()
    // The receipt is for the tenant.
    expect(await dialog.getByRole("button", { name: "Verify the receipt" }).count()).toBe(0)
    tab.done()
  })
})
