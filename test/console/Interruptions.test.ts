/** What may come between: the service is away for a while, or the session ends while somebody looks. In a real browser. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import { Desk } from "./Browser.ts"

let desk: Desk

beforeAll(async () => {
  desk = await Desk.open()
})
afterAll(() => desk.close())

const call = async (service: Service, key: string): Promise<void> => {
  const { status } = await service.call("/v1/chat/completions", {
    token: key,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "one two three" }] }
  })
  expect(status).toBe(200)
}

describe("the console", () => {
  it("writes no error to the browser's log at a first visit, by a person or by an operator", async () => {
    for (const [path, text] of [
      ["", "Someone else"],
      ["operator", "tollgate operator"]
    ] as const) {
      const tab = await desk.tab()
      await tab.page.goto(desk.at(path))
      await tab.page.getByText(text).first().waitFor()
      tab.done()
      await tab.context.close()
    }
  })

  it("says that the connection is lost, goes on by itself, and shows what came meanwhile", async () => {
    const first = await start()
    const { folder, port } = first
    const away = await Desk.open({ service: first })
    let second: Service | undefined
    try {
      const tab = await away.signIn("ada")
      const { page } = tab
      // A browser writes every request that fails.
      tab.allowed.push(/Failed to load resource/)
      await page.locator(".shell-side").getByText("Live", { exact: true }).waitFor()
      const ada = await first.signIn("ada@example.com")
      const key = await first.key(ada)
      await call(first, key)
      await page.getByRole("cell", { name: "sandbox-small", exact: true }).waitFor()
      await first.end()
      await page.locator(".shell-side").getByText("Connection lost, reconnecting").waitFor()
      second = await start({ folder, port })
      await call(second, key)
      await page.locator(".shell-side").getByText("Live", { exact: true }).waitFor()
      await expect
        .poll(() => page.getByRole("cell", { name: "sandbox-small", exact: true }).count(), { timeout: 60_000 })
        .toBe(2)
      tab.done()
    } finally {
      await away.close()
      await (second ?? first).discard()
    }
  })

  it("leads to sign-in when the session has ended, and back to where one was", async () => {
    const tab = await desk.signIn("grace")
    const { page } = tab
    tab.allowed.push(/Failed to load resource.* 401 /)
    await page.locator(".shell-side").getByText("Live", { exact: true }).waitFor()
    const ended = await tab.context.request.delete(desk.at("session"), { headers: { origin: desk.service.url } })
    expect(ended.status()).toBe(200)
    await page.getByRole("link", { name: "Keys" }).click()
    await page.getByLabel("Someone else").fill("grace")
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("heading", { name: "Keys" }).waitFor()
    tab.done()
  })

  it.each([
    ["expired", "The sign-in took longer than ten minutes. Please start again."],
    ["unheard-of", "The sign-in failed. Please start again."],
    ["__proto__", "The sign-in failed. Please start again."]
  ])("says what went wrong with a sign-in, whatever the address calls it: %s", async (error, words) => {
    const tab = await desk.tab()
    tab.allowed.push(/Failed to load resource.* 401 /)
    await tab.page.goto(desk.at(`sign-in?error=${error}`))
    expect(await tab.page.getByRole("alert").textContent()).toBe(words)
    tab.done()
  })

  it("says what a view could not load, with the request's id, and loads it when it is asked again", async () => {
    const tab = await desk.signIn("alan")
    const { page } = tab
    tab.allowed.push(/Failed to load resource.* 403 /)
    const path = "**/v1/tenants/*/applications?**"
    await page.route(path, (route) =>
      route.fulfill({
        status: 403,
        headers: { "x-request-id": "req_test" },
        json: { error: "insufficient role", code: "insufficient_role" }
      })
    )
    await page.goto(desk.at("keys"))
    await page.getByText("This could not be loaded").waitFor()
    await page.getByText("req_test").waitFor()
    expect(await tab.axe()).toEqual([])
    await page.unroute(path)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByText("No keys yet").waitFor()
    tab.done()
  })

  it("shows every digit of an amount that a double does not hold", async () => {
    const tab = await desk.signIn("katherine")
    const katherine = await desk.service.signIn("katherine@example.com")
    await desk.service.control("/credit", { tenant_id: katherine.tenant_id, amount: 987_654_321, source: "purchase" })
    await desk.service.control("/credit", { tenant_id: katherine.tenant_id, amount: 0.123456789, source: "purchase" })
    await tab.page.reload()
    await tab.page.getByText("$987,654,327.123456789", { exact: true }).first().waitFor({ state: "attached" })
    tab.done()
  })
})
