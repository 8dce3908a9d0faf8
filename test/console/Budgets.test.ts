/** Budgets, runs and tags of keys in the console: for the tenant's people and for the operator. In a real browser. */
import type { Locator, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Person } from "../support/Service.ts"
import { Desk, screens } from "./Browser.ts"
import type { Tab } from "./Browser.ts"

let desk: Desk
let ada: Person
let key: string

beforeAll(async () => {
  desk = await Desk.open()
  ada = await desk.service.signIn("ada@example.com", { name: "Ada Lovelace" })
  key = await desk.service.key(ada)
  await desk.service.control("/credit", { tenant_id: ada.tenant_id, amount: 5, source: "purchase" })
})
afterAll(() => desk.close())

const call = async (token: string): Promise<void> => {
  const { status } = await desk.service.call("/v1/chat/completions", {
    token,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "one two three" }] }
  })
  expect(status).toBe(200)
}

const isSound = async (tab: Tab): Promise<void> => {
  for (const colorScheme of ["light", "dark"] as const) {
    await tab.page.emulateMedia({ colorScheme })
    expect([colorScheme, await tab.axe()]).toEqual([colorScheme, []])
  }
  for (const { viewport } of [screens.phone, screens.desktop]) {
    await tab.page.setViewportSize(viewport)
    expect([viewport.width, await tab.overflow()]).toEqual([viewport.width, 0])
  }
}

/** Creates a budget of ten requests and two dollars in the open view. */
const make = async (page: Page, name: string, more?: (dialog: Locator) => Promise<void>): Promise<void> => {
  await page.getByRole("button", { name: "Create a budget" }).first().click()
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Name", { exact: true }).fill(name)
  await dialog.getByLabel("USD", { exact: true }).fill("2")
  await dialog.getByLabel("Requests", { exact: true }).fill("10")
  await more?.(dialog)
  await dialog.getByRole("button", { name: "Create a budget" }).click()
  await dialog.waitFor({ state: "detached" })
}

const remove = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("button", { name: `Delete: ${name}` }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click()
  await page.getByRole("button", { name: `Delete: ${name}` }).waitFor({ state: "detached" })
}

const share = (page: Page, unit: string) =>
  page.locator(`.budgets-gauge[data-unit=${unit}]`).first().getAttribute("data-share")

describe("a budget of the tenant", () => {
  it("is created, counts a call, is raised, changed and deleted", async () => {
    const tab = await desk.signIn("ada@example.com", "budgets")
    const { page } = tab
    await page.getByText("No budgets yet").waitFor()
    await make(page, "the team")
    await page.getByRole("cell", { name: "the team", exact: true }).waitFor()
    expect(await share(page, "requests")).toBe("0")
    await call(key)
    await expect.poll(() => share(page, "requests"), { timeout: 60_000 }).toBe("0.1")
    await isSound(tab)

    await page.getByRole("button", { name: "Raise: the team" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Raise by").fill("3")
    await dialog.getByLabel("Last day").fill("2020-01-01")
    tab.allowed.push(/status of 400/)
    await dialog.getByRole("button", { name: "Raise", exact: true }).click()
    // The error is at the field that the service names.
    await dialog.locator(".field:has(input[name=until]) .field-error").waitFor()
    await dialog.getByLabel("Last day").fill("2099-01-01")
    await dialog.getByRole("button", { name: "Raise", exact: true }).click()
    await dialog.waitFor({ state: "detached" })
    await page.getByText("$5.00", { exact: true }).first().waitFor({ state: "attached" })
    await page.getByText("Raised", { exact: true }).waitFor()

    // The column is for wide tables.
    await page.setViewportSize({ width: 1680, height: 900 })
    await page.getByRole("cell", { name: "80%, 100%" }).waitFor()
    await page.getByRole("button", { name: "Change: the team" }).click()
    await dialog.getByLabel("Requests", { exact: true }).fill("4")
    const notices = dialog.getByLabel("Notices at")
    expect(await notices.inputValue()).toBe("80, 100")
    await notices.fill("150")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.locator(".field:has(input[name=notify_at]) .field-error").waitFor()
    await notices.fill("29, 50 %")
    // The error goes when the focus leaves the field, which moves the buttons.
    await notices.press("Tab")
    await dialog.locator(".field-error").waitFor({ state: "detached" })
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "detached" })
    await expect.poll(() => share(page, "requests"), { timeout: 60_000 }).toBe("0.25")
    await page.getByRole("cell", { name: "29%, 50%" }).waitFor()
    const { budgets } = (await desk.service.call(`/v1/tenants/${ada.tenant_id}/budgets`, { token: ada.token })).body
      .result
    expect(budgets[0].notify_at).toEqual([0.29, 0.5])
    await page.getByRole("button", { name: "Change: the team" }).click()
    await notices.fill("")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "detached" })
    await page.getByRole("cell", { name: "none", exact: true }).waitFor()
    await page.setViewportSize(screens.desktop.viewport)
    await remove(page, "the team")
    await page.getByText("No budgets yet").waitFor()
    tab.done()
  })
})

describe("a run", () => {
  const run = async (token: string, name: string) =>
    (await desk.service.call("/v1/runs", { token, json: { name, limit: { requests: 4 }, tags: { project: "atlas" } } }))
      .body.result

  it("is found from the keys, shows its limits, children and calls, and ends", async () => {
    const parent = await run(key, "nightly")
    const child = await run(parent.api_key, "one chapter")
    await call(parent.api_key)
    await call(child.api_key)
    const tab = await desk.signIn("ada@example.com", "keys")
    const { page } = tab
    await page.locator("main").getByRole("link", { name: "Runs" }).click()
    await page.getByRole("link", { name: "nightly" }).waitFor()
    await isSound(tab)
    await page.getByRole("link", { name: "nightly" }).click()
    await page.getByRole("heading", { name: "nightly" }).waitFor()
    await page.getByText("project=atlas").waitFor()
    expect(await share(page, "requests")).toBe("0.5")
    const byModel = page.getByRole("region", { name: "Spent by model" })
    await byModel.getByRole("cell", { name: "sandbox-small" }).waitFor()
    const calls = page.getByRole("region", { name: "Calls" })
    await calls.getByRole("cell", { name: "sandbox-small" }).first().waitFor()
    await isSound(tab)

    await calls.getByRole("cell", { name: "sandbox-small" }).first().click()
    await page.getByRole("dialog").getByRole("link", { name: /^run_/ }).waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("link", { name: "one chapter" }).click()
    await page.getByRole("heading", { name: "one chapter" }).waitFor()
    await page.getByRole("link", { name: parent.id }).click()
    await page.getByRole("heading", { name: "nightly" }).waitFor()

    await page.getByRole("button", { name: "End the run" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "End the run" }).click()
    await page.getByText("ended", { exact: true }).first().waitFor()
    const { body } = await desk.service.call(`/v1/runs/${child.id}`, { token: ada.token })
    expect(body.result.ended_at).not.toBeNull()
    tab.done()
  })
})

describe("a key", () => {
  it("is created with tags, and its row shows them", async () => {
    const tab = await desk.signIn("ada@example.com", "keys")
    const { page } = tab
    await page.getByRole("button", { name: "Create a key" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("tagged")
    await dialog.getByLabel("Tags").fill("team=one, project=atlas")
    await dialog.getByRole("button", { name: "Create a key" }).click()
    await page.getByRole("button", { name: "I have copied it" }).click()
    const row = page.locator(".table-row", { hasText: "tagged" })
    await row.getByText("team=one", { exact: false }).waitFor()
    expect(await row.textContent()).toContain("project=atlas")
    tab.done()
  })
})

describe("the operator", () => {
  it("creates, raises and deletes a budget of a tenant, which the tenant sees and cannot change", async () => {
    const tab = await desk.tab()
    const { page } = tab
    await page.goto(await desk.operatorLink("grace"))
    await page.getByRole("link", { name: "Budgets" }).click()
    await page.getByText("No budgets yet").waitFor()
    await make(page, "all tenants")
    await page.getByRole("cell", { name: "All tenants together" }).waitFor()
    await make(page, "of Ada", async (dialog) => {
      await dialog.getByLabel("Scope").selectOption("One tenant")
      await dialog.getByLabel("Tenant ID").fill(ada.tenant_id)
    })
    await page.getByRole("link", { name: ada.tenant_id }).waitFor()
    await page.getByRole("button", { name: "Raise: of Ada" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Raise by").fill("3")
    await dialog.getByLabel("Last day").fill("2099-01-01")
    await dialog.getByRole("button", { name: "Raise", exact: true }).click()
    await dialog.waitFor({ state: "detached" })
    await page.getByText("Raised", { exact: true }).waitFor()
    await isSound(tab)

    const theirs = await desk.signIn("ada@example.com", "budgets")
    await theirs.page.getByText("Set by the operator").waitFor()
    expect(await theirs.page.getByRole("button", { name: /: of Ada$/ }).count()).toBe(0)
    theirs.done()

    await remove(page, "all tenants")
    await remove(page, "of Ada")
    await page.getByText("No budgets yet").waitFor()
    tab.done()
  })
})

describe("a member", () => {
  const tokenIn = async (email: string): Promise<string | undefined> => {
    const letters = (await desk.service.control("/mail")) as ReadonlyArray<{
      readonly to: string
      readonly text: string
    }>
    return /\/invites\/(\S+)/.exec(letters.findLast(({ to }) => to === email)?.text ?? "")?.[1]
  }

  it("sets a budget on an own key, and may change it; an owner reads the runs of that key", async () => {
    const email = "grace@example.com"
    const grace = await desk.service.signIn(email, { name: "Grace Hopper" })
    const { id: tenant_id } = (
      await desk.service.call("/v1/tenants", { token: ada.token, json: { name: "Lighthouse" } })
    ).body.result
    const invite = { email, role: "member" }
    await desk.service.call(`/v1/tenants/${tenant_id}/invites`, { token: ada.token, json: invite })
    await expect.poll(() => tokenIn(email), { timeout: 60_000 }).toBeDefined()
    const accept = `/v1/tenant-invites/${await tokenIn(email)}/accept`
    expect((await desk.service.call(accept, { token: grace.token, method: "POST" })).status).toBe(200)
    const tab = await desk.signIn(email, "budgets")
    const { page } = tab
    await page.getByRole("button", { name: /^Tenant/ }).click()
    await page.getByRole("menuitem", { name: /Lighthouse/ }).click()
    await page.locator(".shell-tenant").filter({ hasText: "Lighthouse" }).waitFor()
    await page.getByRole("link", { name: "Keys" }).click()
    await page.getByRole("button", { name: "Create a key" }).first().click()
    await page.getByRole("dialog").getByLabel("Name").fill("graces key")
    await page.getByRole("dialog").getByRole("button", { name: "Create a key" }).click()
    const theirs = (await page.getByTestId("api-key").textContent())!
    await page.getByRole("button", { name: "I have copied it" }).click()
    await page.getByRole("link", { name: "Budgets" }).click()
    await make(page, "mine", async (dialog) => {
      await dialog.getByLabel("Key", { exact: true }).selectOption("graces key")
    })
    await page.getByRole("button", { name: "Delete: mine" }).waitFor()
    tab.done()

    await desk.service.control("/credit", { tenant_id, amount: 5, source: "purchase" })
    await desk.service.control(`/tenants/${tenant_id}`, { plan: "team" })
    const json = { name: "their run", limit: { requests: 4 } }
    const { api_key } = (await desk.service.call("/v1/runs", { token: theirs, json })).body.result
    await call(api_key)
    const owner = await desk.signIn("ada@example.com", "usage")
    await owner.page.getByRole("button", { name: /^Tenant/ }).click()
    await owner.page.getByRole("menuitem", { name: /Lighthouse/ }).click()
    await owner.page.locator(".shell-tenant").filter({ hasText: "Lighthouse" }).waitFor()
    const rows = owner.page.getByRole("row", { name: /sandbox-small/ })
    await expect.poll(() => rows.count(), { timeout: 60_000 }).toBe(1)
    await rows.click()
    await owner.page.getByRole("dialog").getByRole("link", { name: /^run_/ }).click()
    await owner.page.getByRole("heading", { name: "their run" }).waitFor()
    await owner.page.getByRole("button", { name: "End the run" }).click()
    await owner.page.getByRole("dialog").getByRole("button", { name: "End the run" }).click()
    await owner.page.getByText("ended", { exact: true }).first().waitFor()
    owner.done()
  })
})
