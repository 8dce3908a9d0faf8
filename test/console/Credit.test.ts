/** Somebody buys credit, lets it refill itself, sees it fail, and goes on. In a real browser, with the sandbox's payment processor. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Desk } from "./Browser.ts"
import type { Tab } from "./Browser.ts"

let desk: Desk

beforeAll(async () => {
  desk = await Desk.open()
})
afterAll(() => desk.close())

/** To the processor's page and back. */
const buy = async ({ allowed, page }: Tab, amount: string): Promise<void> => {
  allowed.push(/request: GET .*\/payments-page\//)
  await page.getByRole("button", { name: "Buy credit" }).click()
  await page.getByRole("textbox", { name: "Amount" }).fill(amount)
  await page.getByRole("button", { name: "Continue to payment" }).click()
  await page.getByText(/^Paid /).waitFor()
  await page.getByRole("link", { name: "Back to the service" }).click()
  await page.waitForURL(/\/console\/credit$/)
}

const total = (page: Tab["page"]) => page.locator(".credit-total .money")

describe("on a desktop", () => {
  it("buys credit, and auto-reload refills it", async () => {
    const tab = await desk.signIn("ada@example.com", "credit")
    const { page } = tab
    await page.getByRole("cell", { name: /Sign-up grant/ }).waitFor()
    expect(await tab.axe()).toEqual([])
    await buy(tab, "25")
    await page.getByText("$25.00 was added to the balance.").waitFor()
    expect(await total(page).getAttribute("data-tip")).toBe("$31.00")

    await page.getByRole("region", { name: "Auto-reload" }).getByRole("button", { name: "Turn on" }).click()
    await page.getByLabel("When the balance falls below").fill("30")
    // The first method is the default. If none is chosen, the refusal is shown at the field and nowhere else.
    const method = page.getByLabel("Payment method", { exact: true })
    await method.locator("option:checked", { hasText: /^Visa/ }).waitFor({ state: "attached" })
    await method.selectOption({ label: "Choose a payment method" })
    tab.allowed.push(/status of 400/)
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByRole("alert").waitFor()
    expect(await page.getByRole("alert").count()).toBe(1)
    expect(await method.getAttribute("aria-invalid")).toBe("true")
    expect(await method.getAttribute("aria-describedby")).toBe(await page.getByRole("alert").getAttribute("id"))
    expect(await tab.axe()).toEqual([])
    await method.selectOption({ label: "Visa ···· 4242" })
    expect(await tab.axe()).toEqual([])
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Nothing, until the balance has fallen by $1.00 more.").waitFor()

    // It falls below, elsewhere; the page hears of it.
    const ada = await desk.service.signIn("ada@example.com")
    const sent = await desk.service.call(`/v1/tenants/${ada.tenant_id}/billing/transfers`, {
      token: ada.token,
      headers: { "idempotency-key": "auto-reload-of-ada" },
      json: { amount: 2, recipient_email: "somebody@example.com", kind: "transfer" }
    })
    expect(sent.status).toBe(201)
    await page.locator('.credit-total .money[data-tip="$39.00"]').waitFor()
    await page.getByText(/^No further charge before /).waitFor()
    await page.getByRole("cell", { name: /credits purchased by auto-reload/ }).waitFor()
    await page.getByRole("row", { name: /Sent/ }).getByRole("link", { name: "Transfer" }).click()
    await page.getByText("You sent it").waitFor()
    tab.done()
  })
})

describe("a card that is declined", () => {
  it("is told with its reason, pauses auto-reload after three charges, and another one goes on", async () => {
    const tab = await desk.signIn("hedy", "credit")
    const { page } = tab
    tab.allowed.push(/status of 40[0129]/)
    await buy(tab, "10")
    const section = page.getByRole("region", { name: "Auto-reload" })
    await section.getByRole("button", { name: "Turn on" }).click()
    await page.getByLabel("Payment method", { exact: true }).selectOption({ label: "Visa ···· 0002" })
    await page.getByLabel("Charge", { exact: true }).fill("3")
    await page.getByRole("button", { name: "Save" }).click()
    // What the service refuses stands at its field.
    await page.getByText("must be a whole number from 5 to 10000", { exact: true }).waitFor()
    await page.getByLabel("Charge", { exact: true }).fill("5")
    await page.getByRole("button", { name: "Save" }).click()
    for (const failures of [1, 2, 3]) {
      // What is seen may be of the charge before: the clock moves when this one was answered.
      const declined = page.waitForResponse((one) => one.url().endsWith("/charge") && one.status() === 402)
      await section.getByRole("button", { name: "Charge now" }).click()
      await declined
      await section
        .getByText(/Your card was declined\./)
        .first()
        .waitFor()
      await section.getByText(failures < 3 ? "Failed" : "Paused", { exact: true }).waitFor()
      await desk.service.control("/clock", { advance_ms: 660_000 })
    }
    await section.getByText(/Auto-reload is paused because three charges in a row failed/).waitFor()
    expect(await tab.axe()).toEqual([])
    await section.getByRole("button", { name: "Turn on again" }).click()
    await page.getByLabel("Payment method", { exact: true }).selectOption({ label: "Visa ···· 4242" })
    await page.getByRole("button", { name: "Save" }).click()
    await section.getByRole("button", { name: "Charge now" }).click()
    await page.locator('.credit-total .money[data-tip="$21.00"]').waitFor()

    await section.getByRole("button", { name: "Change" }).click()
    await page.getByLabel("Refill the balance automatically").uncheck()
    await page.getByRole("button", { name: "Save" }).click()
    await section.getByText("Off", { exact: true }).waitFor()
    await section.getByText(/^Nothing is charged automatically\./).waitFor()
    // The keyboard goes on where it was.
    const on = section.getByRole("button", { name: "Turn on" })
    await expect.poll(() => on.evaluate((element) => element === document.activeElement)).toBe(true)
    tab.done()
  })
})
