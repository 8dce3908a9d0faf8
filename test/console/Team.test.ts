/** A team is made, somebody joins it by the letter's link, and it pays for their calls. In two real browsers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Desk, screens } from "./Browser.ts"

let desk: Desk

beforeAll(async () => {
  desk = await Desk.open()
})
afterAll(() => desk.close())

const linkTo = async (email: string): Promise<string> => {
  for (;;) {
    const letters = (await desk.service.control("/mail")) as ReadonlyArray<{
      readonly to: string
      readonly text: string
    }>
    const [link] = /http\S+\/invites\/\S+/.exec(letters.findLast(({ to }) => to === email)?.text ?? "") ?? []
    if (link !== undefined) return link
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

describe("on a phone", () => {
  it("pays for a member's calls, and everybody sees why", async () => {
    const email = "grace@example.com"
    const ada = await desk.signIn("ada@example.com", "team", screens.phone)
    const { page } = ada
    await page.getByText("This is your personal tenant").waitFor()
    await page.getByRole("button", { name: "New team" }).click()
    await page.getByLabel("Name").fill("Lighthouse")
    await page.getByRole("dialog").getByRole("button", { name: "Create the team" }).click()
    await page.getByText("Members, payers and spending of Lighthouse.").waitFor()
    await page.getByRole("button", { name: "Start the team plan" }).click()
    await page.getByLabel("Seats").fill("3")
    await page.getByRole("dialog").getByRole("button", { name: "Start the team plan" }).click()
    await page.getByText("1 of 3 seats taken").waitFor()
    await page.getByRole("button", { name: "Invite", exact: true }).click()
    await page.getByLabel("Email address").fill(email)
    expect(await ada.axe()).toEqual([])
    await page.getByRole("button", { name: "Send the invitation" }).click()
    await page.getByRole("cell", { name: email }).waitFor()
    expect(await ada.axe()).toEqual([])
    expect(await ada.cramped()).toEqual([])

    const grace = await desk.tab(screens.phone)
    await grace.page.goto(await linkTo(email))
    await grace.page.getByText("ada invited you to a team").waitFor()
    await grace.page.getByText("Lighthouse", { exact: true }).waitFor()
    expect(grace.page.url()).toBe(desk.at("invitation"))
    expect(await grace.axe()).toEqual([])
    await grace.page.getByLabel("Someone else").fill(email)
    await grace.page.getByRole("button", { name: "Sign in" }).click()
    await grace.page.getByRole("button", { name: "Join the team" }).click()
    await grace.page.getByText("You are now a member of Lighthouse.").waitFor()
    await grace.page.getByRole("row", { name: /grace/ }).waitFor()

    // At home her own balance is first, and then the team's; she puts the team's first.
    const member = await desk.service.signIn(email)
    const memberships = (await desk.service.call("/v1/me/memberships", { token: member.token })).body.result.memberships
    const team = memberships.find((one: { readonly is_home: boolean }) => !one.is_home)
    await desk.service.control("/credit", { tenant_id: team.tenant_id, amount: 20, source: "purchase" })
    await grace.page.getByRole("button", { name: "Menu" }).click()
    await grace.page.getByRole("button", { name: /^Tenant Lighthouse/ }).click()
    await grace.page.getByRole("menuitem", { name: /Personal/ }).click()
    await grace.page.locator(".shell-tenant").filter({ hasText: "Personal" }).waitFor({ state: "attached" })
    await grace.page.goto(desk.at("team?tab=payers"))
    const place = grace.page.getByRole("listitem").filter({ hasText: "Lighthouse" })
    await place.getByText(/Its plan pays for members' calls/).waitFor()
    expect(await grace.axe()).toEqual([])
    await place.getByRole("button", { name: "Charge first" }).click()
    await place.getByText("pays now").waitFor()
    await place.getByText(/You pinned it/).waitFor()

    const called = await desk.service.call("/v1/chat/completions", {
      token: await desk.service.key(member),
      json: { model: "sandbox-small", messages: [{ role: "user", content: "one two three" }] }
    })
    expect(called.status).toBe(200)
    await page.goto(desk.at("team?tab=usage"))
    const row = page.getByRole("row", { name: /grace/ })
    await row.getByText("100%").waitFor()
    expect(await row.locator(".money").getAttribute("data-tip")).toBe("$0.00000225")
    expect(await ada.axe()).toEqual([])

    await page.goto(desk.at("team"))
    const spend = page.getByRole("checkbox", { name: /^Members may spend/ })
    await page.getByText("Determined by the plan.").waitFor()
    await spend.uncheck()
    await page.getByText("Set by an owner or admin.").waitFor()
    expect(await spend.isChecked()).toBe(false)
    await grace.page.reload()
    await place.getByText("Its members may not spend its balance, so it is skipped.").waitFor()
    await spend.check()
    await grace.page.reload()
    await place.getByText(/You pinned it/).waitFor()

    await page.getByRole("button", { name: /^Actions for grace/ }).click()
    await page.getByRole("menuitem", { name: "Suspend" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click()
    await page.getByRole("row", { name: /grace.*Suspended/ }).waitFor()
    ada.done()
    grace.done()
  })
})
