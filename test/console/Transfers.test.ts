/** Credit goes from one person to another, who has no account before the letter comes. In two real browsers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Desk, screens } from "./Browser.ts"

let desk: Desk

beforeAll(async () => {
  desk = await Desk.open()
})
afterAll(() => desk.close())

/** The token of the newest letter to an address, and the link that holds it. */
const letterTo = async (email: string): Promise<{ readonly link: string; readonly token: string }> => {
  for (;;) {
    const letters = (await desk.service.control("/mail")) as ReadonlyArray<{
      readonly to: string
      readonly text: string
    }>
    const [link, token] =
      /http\S+\/(?:transfer-)?invites\/(\S+)/.exec(letters.findLast(({ to }) => to === email)?.text ?? "") ?? []
    if (link !== undefined && token !== undefined) return { link, token }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const giftable = async (email: string, amount: number): Promise<void> => {
  const { tenant_id } = await desk.service.signIn(email)
  await desk.service.control("/credit", { tenant_id, amount, source: "purchase" })
}

describe("on a phone", () => {
  it("is sent, opened by the letter's link without an account, and accepted", async () => {
    const to = "grace@example.com"
    await giftable("ada@example.com", 25)
    const ada = await desk.signIn("ada@example.com", "transfers", screens.phone)
    await ada.page.getByText("No transfers received yet").waitFor()
    expect(await ada.axe()).toEqual([])
    await ada.page.getByRole("button", { name: "Send credit" }).click()
    await ada.page.getByText(/^You can send up to \$25\.00/).waitFor()
    await ada.page.getByLabel("Amount").fill("5")
    await ada.page.getByLabel("To").fill(to)
    await ada.page.getByLabel("Message").fill("For the review")
    expect(await ada.axe()).toEqual([])
    expect(await ada.cramped()).toEqual([])
    await ada.page.getByRole("button", { name: "Review" }).click()
    await ada.page.getByText(/^\$5\.00 leaves the balance now and is held\. \$26\.00 remains\.$/).waitFor()
    await ada.page.getByRole("button", { name: "Send $5.00" }).click()
    await ada.page.getByText(`An email with a link went to ${to}`).waitFor()

    const { link, token } = await letterTo(to)
    const grace = await desk.tab(screens.phone)
    await grace.page.goto(link)
    await grace.page.getByText("ada sent you credit").waitFor()
    expect(grace.page.url()).toBe(desk.at("invitation"))
    expect(await grace.page.content()).not.toContain(token)
    expect(await grace.axe()).toEqual([])
    await grace.page.getByLabel("Someone else").fill(to)
    await grace.page.getByRole("button", { name: "Sign in" }).click()
    await grace.page.getByRole("button", { name: "Accept $5.00" }).click()
    await grace.page.getByText("You accepted").waitFor()
    await grace.page.getByText("$5.00 is in your balance.").waitFor()
    expect(await grace.axe()).toEqual([])
    expect(await desk.service.balance(await desk.service.signIn(to))).toBe(11)
    // The story ends for the sender too, without being asked.
    await ada.page.getByText(`${to} accepted`).waitFor()
    expect(desk.service.stderr.join("")).not.toContain(token)
    ada.done()
    grace.done()
  })
})

describe("a transfer", () => {
  it("is refused at its field, declined, taken back, and its letter is sent again once", async () => {
    await giftable("alan@example.com", 5)
    const alan = await desk.signIn("alan", "transfers?send=yes")
    const { page } = alan
    alan.allowed.push(/status of 422/)
    const send = async (amount: string, to: string): Promise<void> => {
      await page.getByLabel("Amount").fill(amount)
      await page.getByLabel("To").fill(to)
      await page.getByRole("button", { name: "Review" }).click()
      await page.getByRole("button", { name: /^Send \$/ }).click()
    }
    await send("8", "katherine@example.com")
    await page.getByText(/Granted credits can no longer be transferred/).waitFor()
    await send("2", "katherine@example.com")
    await page.getByText("You sent it").waitFor()
    await page.getByRole("button", { name: "Send the email again" }).click()
    await page.getByText("The email was sent again").waitFor()
    await page.getByText(/^You can send it again /).waitFor()

    const katherine = await desk.signIn("katherine", "transfers")
    await katherine.page.getByRole("button", { name: "Decline" }).click()
    await katherine.page.getByRole("dialog").getByRole("button", { name: "Decline" }).click()
    await katherine.page.getByText("Declined. The credit was returned.").waitFor()
    await page.getByText("katherine@example.com declined").waitFor()
    katherine.done()

    await page.goto(desk.at("transfers?send=yes"))
    await send("3", "katherine@example.com")
    await page.getByRole("button", { name: "Take it back" }).click()
    await page
      .getByRole("dialog", { name: /^Take \$3\.00 back/ })
      .getByRole("button", { name: "Take it back" })
      .click()
    await page.getByText("You took it back").waitFor()
    expect(await alan.axe()).toEqual([])
    expect(await desk.service.balance(await desk.service.signIn("alan@example.com"))).toBe(11)
    alan.done()
  })

  it("rings the bell of somebody who has an account, and leads there", async () => {
    await giftable("dorothy@example.com", 5)
    const ida = await desk.signIn("ida", "notifications", screens.phone)
    const { page } = ida
    await page.getByText("No notifications yet").waitFor()
    const dorothy = await desk.service.signIn("dorothy@example.com")
    await desk.service.call(`/v1/tenants/${dorothy.tenant_id}/billing/transfers`, {
      token: dorothy.token,
      headers: { "idempotency-key": "dorothy-sends-to-ida" },
      json: { amount: 1, recipient_email: "ida@example.com", kind: "gift" }
    })
    await page.getByRole("link", { name: "Notifications, 1 unread" }).waitFor()
    await page.getByText(/sends you 1 credits/).waitFor()
    expect(await ida.axe()).toEqual([])
    await page.getByRole("button", { name: "View transfer" }).click()
    await page.getByRole("dialog", { name: "Transfer of $1.00" }).waitFor()
    await page.getByRole("link", { name: "Notifications", exact: true }).waitFor({ state: "attached" })
    ida.done()
  })
})
