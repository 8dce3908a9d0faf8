/** A person signs in, makes a key, calls with it, and sees the call and what it cost, line by line. In a real browser. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Desk, screens } from "./Browser.ts"

let desk: Desk

beforeAll(async () => {
  desk = await Desk.open()
})
afterAll(() => desk.close())

describe("on a phone", () => {
  it("makes a key, calls with it, and explains the call", async () => {
    const tab = await desk.signIn("ada", "keys", screens.phone)
    const { page } = tab
    await page.getByRole("button", { name: "Create a key" }).first().click()
    await page.getByLabel("Name").fill("nightly report")
    await page.getByLabel("Spending limit").fill("2.5")
    await page.getByRole("dialog").getByRole("button", { name: "Create a key" }).click()
    const key = await page.getByTestId("api-key").textContent()
    expect(key).toMatch(/^svc-prod-[0-9a-f]{64}$/)
    await page.getByRole("button", { name: "I have copied it" }).click()
    await page.getByRole("cell", { name: "nightly report", exact: true }).waitFor()
    // It is shown once, and nowhere else.
    expect(await page.content()).not.toContain(key)
    expect(await tab.axe()).toEqual([])

    const called = await desk.service.call("/v1/chat/completions", {
      token: key!,
      json: { model: "sandbox-small", messages: [{ role: "user", content: "one two three" }] }
    })
    expect(called.status).toBe(200)
    expect(await tab.overflow()).toBe(0)
    await page.goto(desk.at("usage"))
    await page.getByRole("cell", { name: "sandbox-small" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByText("Charged", { exact: true }).waitFor()
    // 3 tokens of the prompt at 0.15 and 3 of the answer at 0.60 USD a million.
    await dialog.getByText("$0.00000225").first().waitFor({ state: "attached" })
    expect(await tab.axe()).toEqual([])
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    expect(await tab.overflow()).toBe(0)

    // A finger does not hover: a tap shows all digits, and is wide enough for them.
    await page.goto(desk.at(""))
    const balance = page.locator(".home-figure .money")
    await balance.tap()
    await page.locator(".tips").getByText("$5.99999775", { exact: true }).waitFor()
    expect(await tab.cramped()).toEqual([])
    tab.done()
  })
})

describe("a session", () => {
  it("ends in every tab at once, and a sign-in leads back to where one was", async () => {
    const tab = await desk.signIn("grace", "usage?window=week")
    const second = await tab.context.newPage()
    await second.goto(desk.at("keys"))
    await second.getByRole("heading", { name: "Keys" }).waitFor()
    await second.getByRole("button", { name: /^Account/ }).click()
    await second.getByRole("menuitem", { name: "Sign out" }).click()
    await second.getByLabel("Someone else").waitFor()
    await tab.page.getByLabel("Someone else").fill("grace")
    await tab.page.getByRole("button", { name: "Sign in" }).click()
    await tab.page.waitForURL(/usage\?window=week$/)
    await tab.page.getByRole("heading", { name: "Usage" }).waitFor()
    // Who is signed in is not asked again, and led to where they wanted.
    await tab.page.goto(desk.at("sign-in?to=keys"))
    await tab.page.waitForURL(/\/console\/keys$/)
    await tab.page.getByRole("heading", { name: "Keys" }).waitFor()
    await tab.page.goto(desk.at("sign-in"))
    await tab.page.getByRole("heading", { name: "Home" }).waitFor()
    tab.done()
  })
})
