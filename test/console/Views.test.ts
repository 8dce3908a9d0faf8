/**
 * Every view of a person once, on one page: axe finds nothing serious in light and dark, nothing is wider than a phone. Second pages, what is
 * refused and what does not come, keys that are changed and revoked, purchases, and the keyboard alone from sign-in to a call.
 */
import { readFileSync } from "node:fs"
import type { Locator, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linkTo } from "../support/mail.ts"
import type { Person } from "../support/Service.ts"
import { Desk, screens } from "./Browser.ts"
import type { Tab } from "./Browser.ts"

const calls = 55
const gifts = 27

let desk: Desk
let ada: Person
let key: string
let ofAda: Tab

const call = (content = "one two three") =>
  desk.service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content }] }
  })

const send = (from: Person, to: string, amount: number, number: number) =>
  desk.service.call(`/v1/tenants/${from.tenant_id}/billing/transfers`, {
    token: from.token,
    headers: { "idempotency-key": `views-${from.account_id}-${String(number).padStart(6, "0")}` },
    json: { amount, recipient_email: to, kind: "gift", message: `Number ${number}` }
  })

const buy = async (amount_credits: number): Promise<void> => {
  const { body } = await desk.service.call(`/v1/tenants/${ada.tenant_id}/billing/checkout`, {
    token: ada.token,
    json: { amount_credits }
  })
  await fetch(body.result.checkout_url)
}

/** More than a page of everything. */
beforeAll(async () => {
  desk = await Desk.open()
  ada = await desk.service.signIn("ada@example.com", { name: "Ada Lovelace" })
  const grace = await desk.service.signIn("grace@example.com", { name: "Grace Hopper" })
  await buy(25)
  await desk.service.control("/credit", { tenant_id: grace.tenant_id, amount: 50, source: "purchase" })
  key = await desk.service.key(ada)
  for (let i = 0; i < calls; i++) await call()
  for (let i = 0; i < gifts; i++) await send(grace, ada.email, 0.5, i)
  for (let i = 0; i < 2; i++) await send(ada, "hedy@example.com", 1, i)
  ofAda = await desk.signIn("ada@example.com")
})
afterAll(() => desk.close())

const loaded = ({ page }: Tab): Promise<unknown> =>
  page.waitForFunction(() => document.querySelector(".states-loading, [data-stale]") === null)

const go = async (tab: Tab, path: string): Promise<void> => {
  await tab.page.goto(desk.at(path))
  await tab.page.getByRole("heading", { level: 1 }).waitFor()
  await loaded(tab)
}

const views = [
  "",
  "usage",
  "usage?by=application&window=week",
  "usage?by=tag:project&window=week",
  "keys",
  "budgets",
  "runs",
  "credit",
  "transfers",
  "transfers?tab=sent",
  "team",
  "team?tab=payers",
  "playground",
  "playground?make=media",
  "playground?make=speech",
  "playground?make=transcription",
  "playground?make=search",
  "notifications",
  "account",
  "nowhere"
]

it.each(views)("finds nothing amiss at /%s, in light and dark, on a desktop and a phone", async (path) => {
  const tab = ofAda
  const { page } = tab
  await go(tab, path)
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme })
    expect([colorScheme, await tab.axe()]).toEqual([colorScheme, []])
  }
  for (const { viewport } of [screens.phone, screens.desktop]) {
    await page.setViewportSize(viewport)
    expect([viewport.width, await tab.overflow()]).toEqual([viewport.width, 0])
  }
  await page.emulateMedia({ colorScheme: null })
  tab.done()
})

describe("a second page", () => {
  const next = (page: Page, section: Locator | Page = page) =>
    section.getByRole("button", { name: "Next page" }).last().click()

  it.each([
    ["usage", `51 to ${calls} of ${calls}`],
    ["transfers", `21 to ${gifts} of ${gifts}`],
    ["notifications", `26 to ${gifts} of ${gifts}`]
  ])("of %s has the rest, and leads back", async (path, position) => {
    const { page } = ofAda
    await go(ofAda, path)
    await next(page)
    await page.getByText(position, { exact: true }).waitFor()
    await page.getByRole("button", { name: "Previous page" }).last().click()
    await page.getByText(/^1 to \d+ of \d+$/).waitFor()
    ofAda.done()
  })

  it("of the entries has the first of them at its end", async () => {
    const { page } = ofAda
    await go(ofAda, "credit")
    const section = page.getByRole("region", { name: "Entries" })
    await next(page, section)
    await section.getByText(/^26 to 50 of /).waitFor()
    await next(page, section)
    await section.getByRole("cell", { name: /Sign-up grant/ }).waitFor()
    expect(new URL(page.url()).searchParams.get("page")).toBe("3")
    await page.reload()
    await section.getByText(/^51 to /).waitFor()
    ofAda.done()
  })
})

describe("what does not come", () => {
  it("is said, and there when it is asked for again", async () => {
    const { allowed, page } = ofAda
    allowed.push(/Failed to load resource/)
    for (const [path, url] of [
      ["credit", "**/billing/ledger?**"],
      ["notifications", "**/v1/notifications?**"]
    ] as const) {
      await page.route(url, (route) => route.abort())
      await go(ofAda, path)
      const said = page.getByText("The service did not respond.", { exact: false }).first()
      await said.waitFor()
      expect(await ofAda.axe()).toEqual([])
      await page.unroute(url)
      await page.getByRole("button", { name: "Try again" }).first().click()
      await page.locator(".table-row, .notifications-item").first().waitFor()
      await said.waitFor({ state: "detached" })
    }
    ofAda.done()
  })

  it("is not offered to a member, who is told whom to ask", async () => {
    const team = await desk.service.call("/v1/tenants", { token: ada.token, json: { name: "Lighthouse" } })
    const tenant_id = team.body.result.id
    const alan = await desk.service.signIn("alan@example.com", { name: "Alan Turing" })
    const invited = await desk.service.call(`/v1/tenants/${tenant_id}/invites`, {
      token: ada.token,
      json: { email: alan.email, role: "member" }
    })
    expect(invited.status).toBe(201)
    const token = await linkTo(desk.service, alan.email)
    await desk.service.call(`/v1/tenant-invites/${token}/accept`, { token: alan.token, method: "POST" })
    const tab = await desk.signIn(alan.email)
    const { page } = tab
    await page.getByRole("button", { name: /^Tenant/ }).click()
    await page.getByRole("menuitem", { name: /Lighthouse/ }).click()
    await page.locator(".shell-tenant").filter({ hasText: "Lighthouse" }).waitFor()
    await go(tab, "credit")
    await page.getByText("Only owners and admins of this tenant can buy credit and change these settings.").waitFor()
    expect(await page.getByRole("button", { name: "Buy credit" }).count()).toBe(0)
    expect(await tab.axe()).toEqual([])
    await go(tab, "team")
    await page.getByText(/^Only owners and admins of this team can invite people/).waitFor()
    expect(await tab.axe()).toEqual([])
    await tab.context.close()
    tab.done()
  })
})

describe("a list", () => {
  it("of calls is narrowed to what is pressed in the plot, and to those that failed", async () => {
    const { page } = ofAda
    await desk.service.control("/faults", { service: "chat", status: 500, times: 1 })
    expect((await call()).status).toBeGreaterThanOrEqual(500)
    await desk.service.call("/v1/search?query=tolls", { token: key })
    await go(ofAda, "usage")
    await page.getByText(`1 to 50 of ${calls + 2}`, { exact: true }).waitFor()
    await page.getByRole("button", { name: /^tavily/ }).click()
    await page.getByText("1 to 1 of 1", { exact: true }).waitFor()
    expect(new URL(page.url()).searchParams.get("model")).toBe("tavily")
    expect(await ofAda.axe()).toEqual([])
    await page.getByRole("button", { name: "Remove Model: tavily" }).click()
    await page.getByText(`1 to 50 of ${calls + 2}`, { exact: true }).waitFor()
    await page.getByRole("radiogroup", { name: "Status" }).getByText("failed").click()
    await page.getByText("1 to 1 of 1", { exact: true }).waitFor()
    await page.getByRole("cell", { name: "upstream error" }).waitFor()
    await page.getByRole("radiogroup", { name: "Status" }).getByText("All").click()
    ofAda.done()
  })

  it("of charges is downloaded for the window, as CSV and as FOCUS", async () => {
    const { page } = ofAda
    await go(ofAda, "usage?window=week")
    for (const [format, name] of [
      ["CSV", /^usage-\d{4}-\d{2}-\d{2}\.csv$/],
      ["FOCUS 1.2", /^focus-\d{4}-\d{2}-\d{2}\.csv$/]
    ] as const) {
      const button = page.getByRole("button", { name: `Export the charges of this window as ${format}` })
      const [file] = await Promise.all([page.waitForEvent("download"), button.click()])
      expect(file.suggestedFilename()).toMatch(name)
      const lines = readFileSync(await file.path(), "utf8")
        .trimEnd()
        .split("\r\n")
      // FOCUS has a line for the prompt and one for the answer.
      expect(lines.length).toBeGreaterThan(format === "CSV" ? calls : 2 * calls)
    }
    ofAda.done()
  })

  it("of a day's calls is opened from the plot, by the keyboard, and by the pointer over the bar of that day", async () => {
    const { page } = ofAda
    const dayLong = 86_400_000
    const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)
    const from = () => new URL(page.url()).searchParams.get("from")
    const month = async (): Promise<void> => {
      await go(ofAda, "usage")
      await page.locator(".plot-canvas canvas").waitFor()
    }
    await month()
    const drawing = page.locator(".plot-drawing")
    await drawing.press("ArrowLeft")
    await page.locator(".plot-now strong").waitFor()
    // The last of thirty days: of the day's hours there are fewer.
    await drawing.press("Enter")
    await page.waitForURL(/window=custom/)
    expect(from()).toBe(dayOf(Date.now()))
    await page.locator(".table-row").first().waitFor()
    for (const [bar, ago] of [
      [29.1, 0],
      [28.9, 1]
    ] as const) {
      await month()
      const over = page.locator(".u-over")
      const { width } = (await over.boundingBox())!
      await over.click({ position: { x: (width * bar) / 30, y: 40 } })
      await page.waitForURL(/window=custom/)
      expect([bar, from()]).toEqual([bar, dayOf(Date.now() - ago * dayLong)])
    }
    ofAda.done()
  })

  it("of entries is narrowed to a kind, which stands in the address", async () => {
    const { page } = ofAda
    await go(ofAda, "credit")
    const section = page.getByRole("region", { name: "Entries" })
    await section.getByText("Grants", { exact: true }).click()
    await section.getByText("Registration bonus", { exact: false }).first().waitFor()
    await section.locator(".table-row").nth(2).waitFor({ state: "detached" })
    await page.reload()
    await section.getByText("Registration bonus", { exact: false }).first().waitFor()
    await section.locator(".table-row").nth(2).waitFor({ state: "detached" })
    expect(new URL(page.url()).searchParams.get("source")).toBe("grants")
    ofAda.done()
  })

  it("of notifications is read as a whole, over all its pages", async () => {
    const { page } = ofAda
    await go(ofAda, "notifications")
    await page.getByRole("button", { name: "Mark all as read" }).click()
    await page.getByText("Unread", { exact: true }).first().waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Mark all as read" }).waitFor({ state: "detached" })
    const { body } = await desk.service.call("/v1/notifications", { token: ada.token })
    expect(body.result.unread).toBe(0)
    ofAda.done()
  })
})

describe("a key", () => {
  it("is changed, says what is wrong at its field, and is revoked", async () => {
    const { allowed, page } = ofAda
    await go(ofAda, "keys")
    await page.getByRole("button", { name: "Change: test" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("Nightly")
    await dialog.getByLabel("Spending limit").fill("0.5")
    await dialog.getByLabel("Expires").fill("2020-01-01")
    allowed.push(/status of 400/)
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.locator(".field-error").waitFor()
    expect(await ofAda.axe()).toEqual([])
    await dialog.getByLabel("Expires").fill("")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "detached" })
    await page.getByRole("row", { name: /Nightly.*\$0\.50/ }).waitFor()
    const hasFocus = (target: Locator) => target.evaluate((element) => element === document.activeElement)
    await expect.poll(() => hasFocus(page.getByRole("button", { name: "Change: Nightly" }))).toBe(true)
    const revoke = page.getByRole("button", { name: "Revoke: Nightly" })
    await revoke.press("Enter")
    await page.getByRole("dialog").press("Escape")
    await expect.poll(() => hasFocus(revoke)).toBe(true)
    await revoke.click()
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click()
    await page.getByText("Nightly was revoked.").waitFor()
    await page.getByText("No keys yet").waitFor()
    // What opened the dialog is gone: the keyboard goes on at the view.
    await expect.poll(() => hasFocus(page.locator("main"))).toBe(true)
    expect((await call()).status).toBe(401)
    ofAda.done()
  })
})

describe("a purchase", () => {
  it("is listed with what was refunded of it", async () => {
    const { page } = ofAda
    const { records } = (await desk.service.call(`/v1/tenants/${ada.tenant_id}/billing/payments`, { token: ada.token }))
      .body.result
    await desk.service.control(`/payments/${records[0].id}/refund`, { amount: 4 })
    await go(ofAda, "credit")
    const row = page.getByRole("region", { name: "Purchases" }).getByRole("row", { name: /Bought/ })
    await row.getByText("$4.00 refunded").waitFor()
    expect(await row.locator(".money").getAttribute("data-tip")).toBe("$25.00")
    ofAda.done()
  })
})

describe("the keyboard alone", () => {
  /** Goes there by Tab, as far as it takes. */
  const tabTo = async (page: Page, target: Locator): Promise<void> => {
    await target.waitFor({ state: "attached" })
    for (let i = 0; i < 60; i++) {
      if (await target.evaluate((element) => element === document.activeElement)) return
      await page.keyboard.press("Tab")
    }
    throw new Error(`Tab does not lead to ${String(target)}`)
  }

  it("signs somebody in, makes a key, and opens the call that was made with it", async () => {
    const tab = await desk.tab()
    const { page } = tab
    await page.goto(desk.at("keys"))
    await tabTo(page, page.getByLabel("Someone else"))
    await page.keyboard.type("kay")
    await page.keyboard.press("Enter")
    await page.getByText("No keys yet").waitFor()
    // First the way past the navigation.
    await tabTo(page, page.getByRole("button", { name: "Skip to content" }))
    await page.keyboard.press("Enter")
    await tabTo(page, page.getByRole("button", { name: "Create a key" }).first())
    await page.keyboard.press("Enter")
    await tabTo(page, page.getByLabel("Name"))
    await page.keyboard.type("by keyboard")
    await page.keyboard.press("Enter")
    const made = (await page.getByTestId("api-key").textContent())!
    await tabTo(page, page.getByRole("button", { name: "I have copied it" }))
    await page.keyboard.press("Enter")
    await page.getByRole("cell", { name: "by keyboard", exact: true }).waitFor()
    const { status } = await desk.service.call("/v1/chat/completions", {
      token: made,
      json: { model: "sandbox-small", messages: [{ role: "user", content: "one two three" }] }
    })
    expect(status).toBe(200)
    await tabTo(page, page.getByRole("link", { name: "Usage" }))
    await page.keyboard.press("Enter")
    const row = page.getByRole("row", { name: /sandbox-small/ })
    await tabTo(page, row)
    await page.keyboard.press("Enter")
    await page.getByRole("dialog").getByText("Charged", { exact: true }).waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "detached" })
    await expect.poll(() => row.evaluate((element) => element === document.activeElement)).toBe(true)
    tab.done()
  })
})
