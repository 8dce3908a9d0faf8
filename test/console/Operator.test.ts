/** The operator comes in by the link of `tollgate operator`, looks, does everything once, and each act has its line in the audit log. */
import type { Page } from "playwright-core"
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
  await call()
})
afterAll(() => desk.close())

const call = () =>
  desk.service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "one two three" }] }
  })

const enter = async (name: string): Promise<Tab> => {
  const tab = await desk.tab()
  await tab.page.goto(await desk.operatorLink(name))
  await tab.page.getByRole("heading", { name: "Overview", exact: true }).waitFor()
  return tab
}

/** Goes to a view of the operator without the loss of the session. */
const go = async ({ page }: Tab, path: string, title: string): Promise<void> => {
  await page.goto(desk.at(`operator/${path}`))
  await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor()
}

/** Presses what opens a dialog, gives a reason, does it, and answers what the dialog says then. */
const act = async (page: Page, open: string, does: string, fields: Record<string, string> = {}): Promise<string> => {
  await page.getByRole("button", { name: open }).first().click()
  const dialog = page.getByRole("dialog")
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label, { exact: true }).fill(value)
  await dialog.getByRole("button", { name: does }).click()
  const text = await dialog.getByRole("status").first().textContent()
  await dialog.getByRole("button", { name: "Done" }).click()
  await dialog.waitFor({ state: "detached" })
  return (text ?? "").trim()
}

const audited = async (tab: Tab): Promise<ReadonlyArray<string>> => {
  await go(tab, "audit", "Audit log")
  await tab.page.locator(".table-row").first().waitFor()
  return tab.page.locator(".table-row").allTextContents()
}

const theirView = () => `tenants/${ada.tenant_id}`

describe("the operator", () => {
  it("comes in by a link that works once, and finds nothing amiss in any view, in light and dark, on a desktop and a phone", async () => {
    const tab = await enter("grace")
    const { page } = tab
    expect(page.url()).toBe(desk.at("operator"))
    const looks = async (path: string): Promise<void> => {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme })
        expect([path, colorScheme, await tab.axe()]).toEqual([path, colorScheme, []])
      }
      for (const { viewport } of [screens.phone, screens.desktop]) {
        await page.setViewportSize(viewport)
        expect([path, viewport.width, await tab.overflow()]).toEqual([path, viewport.width, 0])
      }
    }
    await page.getByRole("button", { name: "Check now" }).click()
    await page.getByText(/^(\d+) of \1 hold \(checked in /).waitFor()
    await page.getByRole("button", { name: "Verify new rows" }).click()
    await page.getByText("no findings", { exact: false }).first().waitFor()
    await looks("")
    const unsaid = await page
      .getByRole("region", { name: "Loops and jobs" })
      .locator("tbody tr")
      .evaluateAll((rows) =>
        rows.filter(({ children }) => children[1]!.textContent === "").map((row) => row.textContent)
      )
    expect(unsaid).toEqual([])
    const views = [
      ["find", "Find"],
      ["find?q=ada", "Find"],
      [theirView(), "Ada Lovelace"],
      [`people/${ada.account_id}`, "Ada Lovelace"],
      ["upstreams", "Upstreams"],
      ["costs", "Costs"],
      ["drift", "Drift"],
      ["reconciliations", "Reconciliations"],
      ["reservations", "Reservations"],
      ["owed", "Owed"],
      ["audit", "Audit log"],
      ["sessions", "Sessions"]
    ] as const
    for (const [path, title] of views) {
      await go(tab, path, title)
      await page.waitForFunction(() => document.querySelector(".states-loading") === null)
      await looks(path)
    }
    tab.done()
  })
})

describe("an operator", () => {
  it("does everything once, is told what was done, and each act stands in the audit log", async () => {
    const tab = await enter("grace")
    const { page } = tab
    const reason = { Reason: "case 4711" }
    await go(tab, "find", "Find")
    await page.getByLabel("Search").fill("ada@")
    await page.getByRole("region", { name: "Tenants" }).getByRole("link", { name: "Ada Lovelace" }).click()
    await page.getByRole("heading", { name: "Ada Lovelace" }).waitFor()
    const before = await desk.service.balance(ada)

    expect(await act(page, "Grant credit", "Grant $1.123456789", { Amount: "1.123456789", ...reason })).toContain(
      "$1.123456789 granted to"
    )
    expect(await act(page, "Book a purchase", "Book $2.50", { Amount: "2.5", Reference: "invoice 17" })).toContain(
      "$2.50 booked"
    )
    expect(await act(page, "Book a purchase", "Book $2.50", { Amount: "2.5", Reference: "invoice 17" })).toContain(
      "No change: invoice 17 is already booked"
    )
    expect(await desk.service.balance(ada)).toBeCloseTo(before + 3.623456789, 9)

    expect(await act(page, "Suspend", "Suspend", reason)).toMatch(/ is suspended\.$/)
    expect((await call()).status).toBeGreaterThanOrEqual(402)
    expect(await act(page, "Activate", "Activate", reason)).toMatch(/ is active\.$/)
    expect((await call()).status).toBe(200)
    expect(await act(page, "Revoke: test", "Revoke", reason)).toBe("The key test was revoked.")

    await go(tab, `people/${ada.account_id}`, "Ada Lovelace")
    expect(await act(page, "End sign-ins", "End sign-ins", reason)).toBe("One sign-in of Ada Lovelace has ended.")
    expect(await act(page, "Suspend", "Suspend", reason)).toBe("Ada Lovelace is suspended.")
    expect(await act(page, "Activate", "Activate", reason)).toBe("Ada Lovelace is active.")

    await desk.operatorLink("other")
    await go(tab, "sessions", "Sessions")
    expect(await act(page, "End: other", "End")).toBe("The session has ended.")

    const log = await audited(tab)
    const acts = [
      "Granted credit",
      "Booked a purchase",
      "Suspended a tenant",
      "Activated a tenant",
      "Revoked a key",
      "Ended sign-ins",
      "Suspended a person",
      "Activated a person",
      "Ended a session",
      "Signed in"
    ]
    for (const one of acts)
      expect([one, log.some((line) => line.includes(one) && line.includes("grace"))]).toEqual([one, true])
    expect(log.find((line) => line.includes("Granted credit"))).toContain("1.123456789")
    expect(log.find((line) => line.includes("Suspended a person"))).toContain("case 4711")
    await page.getByLabel("Operator", { exact: true }).fill("nobody")
    await page.getByRole("button", { name: "Filter" }).click()
    await page.getByText("No entries").waitFor()
    tab.done()
  })

  it("reads who has a key, what was refunded, and of what the question is", async () => {
    const katherine = await desk.service.signIn("katherine@example.com", { name: "Katherine Johnson" })
    const { account_id, tenant_id, token } = katherine
    const { checkout_url } = (
      await desk.service.call(`/v1/tenants/${tenant_id}/billing/checkout`, { token, json: { amount_credits: 10 } })
    ).body.result
    const before = await desk.service.balance(katherine)
    // Opening the sandbox's page pays.
    await fetch(checkout_url)
    await expect.poll(() => desk.service.balance(katherine)).toBeGreaterThan(before)
    const { records } = (await desk.service.call(`/v1/tenants/${tenant_id}/billing/payments`, { token })).body.result
    await desk.service.control(`/payments/${records[0].id}/refund`, { amount: 4 })
    await desk.service.key(katherine)

    const tab = await enter("grace")
    const { page } = tab
    await go(tab, `tenants/${tenant_id}`, "Katherine Johnson")
    const ledger = page.getByRole("region", { name: "Ledger" })
    await ledger.getByRole("row", { name: /^Refund .*\$4\.00/ }).waitFor()
    await ledger.getByRole("row", { name: /^Purchase .*\$10\.00/ }).waitFor()
    await page.getByRole("region", { name: "Keys" }).getByRole("link", { name: "Katherine Johnson" }).first().waitFor()
    await page.getByRole("button", { name: "Suspend" }).click()
    const dialog = page.getByRole("dialog", { name: "Suspend the tenant Katherine Johnson?" })
    await dialog.getByText(tenant_id).waitFor()
    await page.keyboard.press("Escape")
    await go(tab, `people/${account_id}`, "Katherine Johnson")
    await page.getByRole("region", { name: "Keys" }).getByRole("link", { name: "Katherine Johnson" }).first().waitFor()
    await page.getByRole("button", { name: "Suspend" }).click()
    await page.getByRole("dialog", { name: "Suspend the person Katherine Johnson?" }).waitFor()
    tab.done()
  })

  it("is shown fresh figures while the stream is broken, and the way to what fails", async () => {
    const tab = await desk.tab()
    const { allowed, page } = tab
    const of = (path: string, change: (result: Record<string, unknown>) => object) =>
      page.route(path, async (route) => {
        const response = await route.fetch()
        const { result } = await response.json()
        await route.fulfill({ response, json: { result: { ...result, ...change(result) } } })
      })
    await of("**/v1/operator/flight", () => ({ reserved: 2.5 }))
    await of("**/v1/operator/upstreams", ({ models }) => ({
      models: (models as ReadonlyArray<object>).map((model, index) =>
        index === 0 ? { ...model, serving: null } : model
      )
    }))
    const figures = { at: "", calls_per_second: 3, reserved: 7, open_calls: 0, escrowed: 0, unsettled: 0, loops: [] }
    let isFirst = true
    await page.route("**/v1/operator/events", (route) => {
      if (!isFirst) return route.abort()
      isFirst = false
      return route.fulfill({
        contentType: "text/event-stream",
        body: `event: figures\ndata: ${JSON.stringify(figures)}\n\n`
      })
    })
    allowed.push(/operator\/events/)
    await page.goto(await desk.operatorLink("grace"))
    await page.locator(".shell-side-live").getByText("Connection lost, reconnecting").waitFor()
    const now = page.getByRole("region", { name: "Now", exact: true })
    await now.getByRole("link", { name: /^Reserved\s*\$2\.50/ }).waitFor()
    await now.getByText("Calls per second").waitFor()
    expect(await now.textContent()).not.toContain("$7.00")
    await page.getByRole("link", { name: /^No upstream serves sandbox-/ }).click()
    await page.getByRole("heading", { name: "Upstreams", exact: true, level: 1 }).waitFor()
    tab.done()
  })

  it("is shown which upstream cools down, and where the last calls went", async () => {
    const tab = await enter("grace")
    const { page } = tab
    const at = "2026-11-26T12:00:00.000Z"
    const decision = {
      at,
      model: "sandbox-failover",
      request_id: "req_1",
      reason: "others_cooling",
      attempts: [
        { model: "sandbox-failover", upstream: "sandbox-b", outcome: "failed" },
        { model: "sandbox-small", upstream: "sandbox-a", outcome: "answered" }
      ]
    }
    await page.route("**/v1/operator/upstreams", async (route) => {
      const response = await route.fetch()
      const { result } = await response.json()
      const [first, ...others] = result.upstreams
      const cooling = { ...first, cooling_until: at, last_failure: "key", last_failures: [{ at, kind: "key" }] }
      const upstreams = [{ ...cooling, last_failure_at: at }, ...others]
      await route.fulfill({ response, json: { result: { ...result, upstreams, decisions: [decision] } } })
    })
    await go(tab, "upstreams", "Upstreams")
    await page.getByText(/^in cooldown until /).waitFor()
    await page.getByText("· key rejected").waitFor()
    const row = page.getByRole("region", { name: "Routing of the latest calls" }).getByRole("row").last()
    const text = await row.textContent()
    for (const words of [
      "sandbox-failover",
      "sandbox-b failed · sandbox-a (sandbox-small) answered",
      "earlier ones are in cooldown"
    ])
      expect(text).toContain(words)
    tab.done()
  })

  it("is told what failed until it is asked again, by hand or after a while", async () => {
    const tab = await enter("grace")
    const { allowed, page } = tab
    allowed.push(/operator\/(verify|flight)/)
    let asked = 0
    const refuse = (path: string, onRefused: () => void) =>
      page.route(path, (route) => {
        onRefused()
        return route.fulfill({ status: 503, json: { error: "unavailable" } })
      })
    await refuse("**/v1/operator/verify", () => asked++)
    await refuse("**/v1/operator/flight", () => {})
    await page.reload()
    const ofBooks = page.getByRole("region", { name: "Books", exact: true }).getByRole("alert")
    const ofFlight = page.getByRole("region", { name: "Money in flight" }).getByRole("alert")
    await ofBooks.waitFor()
    await ofFlight.waitFor()
    const before = asked
    // Longer than between two questions for what is in flight.
    for (let looks = 0; looks < 16; looks++) {
      await page.waitForTimeout(400)
      expect(await ofFlight.isVisible()).toBe(true)
    }
    expect(asked).toBe(before)
    await page.unroute("**/v1/operator/verify")
    await ofBooks.getByRole("button", { name: "Try again" }).click()
    await page.getByText("Last clean verification").waitFor()
    tab.done()
  })

  it("opens a call of anybody, line by line", async () => {
    const tab = await enter("grace")
    const { page } = tab
    await go(tab, theirView(), "Ada Lovelace")
    await page
      .getByRole("region", { name: "Calls", exact: true })
      .getByRole("row", { name: /sandbox-small/ })
      .first()
      .click()
    await page.getByRole("dialog").getByText("Charged", { exact: true }).waitFor()
    expect(await tab.axe()).toEqual([])
    tab.done()
  })

  it("finds by the beginning of a key, of which the rest goes nowhere", async () => {
    const tab = await enter("grace")
    const urls: Array<string> = []
    tab.page.on("request", (request) => urls.push(request.url()))
    const other = await desk.service.signIn("alan@example.com", { name: "Alan" })
    const whole = await desk.service.key(other)
    await go(tab, "find", "Find")
    await tab.page.getByLabel("Search").fill(whole)
    await tab.page.getByRole("region", { name: "Keys" }).getByRole("cell", { name: "test" }).first().waitFor()
    expect([...urls, tab.page.url()].filter((url) => url.includes(whole.slice(20)))).toEqual([])
    tab.done()
  })

  it("compares an invoice with the books, by text and by file, and is told which lines cannot be read", async () => {
    const tab = await enter("grace")
    const { page } = tab
    const today = new Date().toISOString().slice(0, 10)
    const csv = `date,model,cost\n${today},sandbox-small,0.25\n${today},sandbox-small,much\n`
    await go(tab, "drift", "Drift")
    await page.getByLabel("Invoice as CSV").fill(csv)
    await page.getByRole("button", { name: "Compare" }).click()
    await page.getByRole("cell", { name: "sandbox-small" }).waitFor()
    await page.getByRole("heading", { name: "Lines that could not be read" }).waitFor()
    expect(await tab.axe()).toEqual([])
    await page
      .locator("input[type=file]")
      .setInputFiles({ name: "invoice.csv", mimeType: "text/csv", buffer: Buffer.from(csv.replace("0.25", "0.75")) })
    await page.getByRole("button", { name: "Compare" }).click()
    await page.getByText("$0.75", { exact: true }).first().waitFor({ state: "attached" })
    tab.done()
  })

  it("sees the figures live, ends the session in every tab, and needs another link then", async () => {
    const tab = await enter("grace")
    const { page } = tab
    await page.locator(".shell-side-live").getByText("Live", { exact: true }).waitFor()
    const used = await desk.operatorLink("grace")
    const second = await tab.context.newPage()
    await second.goto(used)
    await second.getByRole("heading", { name: "Overview", exact: true }).waitFor()
    await second.getByRole("button", { name: "End session" }).click()
    for (const one of [second, page]) await one.getByText("tollgate operator", { exact: true }).waitFor()
    // The link was used.
    tab.allowed.push(/status of 401/)
    await page.goto(used)
    await page.getByText("tollgate operator", { exact: true }).waitFor()
    await expect.poll(() => page.url()).not.toContain("code=")
    expect(await tab.axe()).toEqual([])
    tab.done()
  })
})
