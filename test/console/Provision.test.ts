/** The operator makes people, tenants, keys, allowances, vouchers and management keys in the console, and takes them away. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Desk, screens } from "./Browser.ts"
import type { Tab } from "./Browser.ts"

let desk: Desk
let tab: Tab
let page: Page

beforeAll(async () => {
  desk = await Desk.open()
  tab = await desk.tab()
  page = tab.page
  await page.goto(await desk.operatorLink("grace"))
  await page.getByRole("heading", { name: "Overview", exact: true }).waitFor()
})
afterAll(async () => {
  tab.done()
  await desk.close()
})

const go = async (path: string, title: string): Promise<void> => {
  await page.goto(desk.at(`operator/${path}`))
  await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor()
  await page.waitForFunction(() => document.querySelector(".states-loading") === null)
}

/** Fills the dialog of a button and sends it; answers what it says then, and what it shows once. */
const make = async (title: string, fields: Record<string, string>, before?: () => Promise<void>) => {
  await page.getByRole("button", { name: title, exact: true }).click()
  const dialog = page.getByRole("dialog", { name: title })
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label, { exact: true }).fill(value)
  await before?.()
  await dialog.getByRole("button", { name: title, exact: true }).click()
  const said = await dialog.getByRole("status").first().textContent()
  const shown = (await dialog.locator("pre code").count()) === 0 ? null : await dialog.locator("pre code").textContent()
  await dialog.getByRole("button", { name: "Done" }).click()
  await dialog.waitFor({ state: "detached" })
  return { said, shown: shown ?? "" }
}

/** Presses a button and confirms its question. */
const confirm = async (open: string | RegExp, does: string): Promise<void> => {
  await page.getByRole("button", { name: open }).first().click()
  const dialog = page.getByRole("dialog")
  await dialog.getByRole("button", { name: does, exact: true }).click()
  await dialog.waitFor({ state: "detached" })
}

const row = (text: string) => page.locator(".table-row", { hasText: text })
const models = async (token: string): Promise<number> => (await desk.service.call("/v1/models", { token })).status

describe("people and tenants", () => {
  it("makes a person, finds them, and makes nothing for the same address", async () => {
    await go("people", "People")
    const draft = { Email: "noether@example.com", Name: "Emmy Noether", Allowance: "20.123456789" }
    expect((await make("Create a person", draft)).said).toBe("Emmy Noether has an account.")
    await row("noether@example.com").waitFor()
    expect((await make("Create a person", { Email: "noether@example.com" })).said).toContain("No change: ")
    await page.getByLabel("Search people").fill("noether@")
    await row("Emmy Noether").waitFor()
    const emmy = await desk.service.signIn("noether@example.com")
    const [entry] = await desk.service.ledger(emmy)
    expect([entry.amount, entry.source]).toEqual([20.123456789, "allowance"])
    expect((await make("Invite by email", { Email: "l@example.com" })).said).toContain("An email to l@example.com")
  })

  it("makes a tenant and a key with a limit, which is shown once and then revoked", async () => {
    await go("tenants", "Tenants")
    const made = await make("Create a tenant", { Name: "Göttingen", "Owner's email": "noether@example.com" })
    expect(made.said).toMatch(/^Göttingen was created: ten_/)
    await row("Göttingen").getByRole("link", { name: "Göttingen" }).click()
    await page.getByRole("heading", { name: "Göttingen", exact: true, level: 1 }).waitFor()
    const key = await make("Create a key", { Name: "notebook", Limit: "20", Models: "sandbox-small" })
    expect(key.said).toBe("The key notebook was created. It is shown only once.")
    expect(key.shown).toMatch(/^svc-prod-[0-9a-f]{64}$/)
    expect(await models(key.shown)).toBe(200)
    await row("notebook").waitFor()
    expect(await page.content()).not.toContain(key.shown)
    await confirmRevoke("notebook")
    expect(await models(key.shown)).toBe(401)
  })

  /** The dialog of an act says what was done. */
  const confirmRevoke = async (name: string): Promise<void> => {
    await page.getByRole("button", { name: `Revoke: ${name}` }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByRole("button", { name: "Revoke" }).click()
    await dialog.getByText(`The key ${name} was revoked.`).waitFor()
    await dialog.getByRole("button", { name: "Done" }).click()
    await dialog.waitFor({ state: "detached" })
  }
})

describe("credit", () => {
  it("sets an allowance, shows its renewal, and ends it", async () => {
    await go("tenants", "Tenants")
    await row("Göttingen").getByRole("link", { name: "Göttingen" }).click()
    await page.getByText("No allowance.").waitFor()
    const set = await make("Set allowance", { Allowance: "5.000000001" })
    expect(set.said).toBe("The allowance is $5.000000001 a month.")
    await go("allowances", "Allowances")
    await row("$5.000000001 a month").waitFor()
    await page.getByText("No plans are configured").waitFor()
    await row("$5.000000001 a month").getByRole("link").click()
    await page.getByRole("heading", { name: "Göttingen", exact: true, level: 1 }).waitFor()
    await confirm("End allowance", "End allowance")
    await page.getByText("No allowance.").waitFor()
  })

  it("makes a voucher, which a person redeems in their console, and ends it", async () => {
    await go("vouchers", "Vouchers")
    const made = await make("Create vouchers", { Value: "3", "Uses of each code": "40", Note: "workshop" })
    expect(made.shown).toMatch(/^[0-9A-Z]{5}(-[0-9A-Z]{5}){3}$/)
    await row("0 of 40").waitFor()
    const person = await desk.signIn("voucher", "credit")
    // The last button of the row: none of them moves any more.
    await person.page.getByRole("button", { name: "Buy credit" }).first().waitFor()
    await person.page.getByRole("button", { name: "Redeem a voucher" }).first().click()
    const dialog = person.page.getByRole("dialog")
    await dialog.getByLabel("Code").fill(made.shown.toLowerCase())
    await dialog.getByRole("button", { name: "Redeem", exact: true }).click()
    await dialog.waitFor({ state: "detached" })
    person.done()
    await go("vouchers", "Vouchers")
    await row("1 of 40").waitFor()
    await confirm(/^End: /, "End")
    await row("ended").waitFor()
  })
})

it("makes a management key with scopes, which a program uses until it is ended", async () => {
  await go("management-keys", "Management keys")
  const made = await make("Create a management key", { Name: "terraform", "Last day": "2027-06-30" }, () =>
    page.getByRole("dialog").getByLabel("people", { exact: false }).first().check()
  )
  expect(made.shown).toMatch(/^svc-admin-[0-9a-f]{64}$/)
  const status = async (path: string) => (await desk.service.call(`/v1/operator/${path}`, { token: made.shown })).status
  expect([await status("people"), await status("tenants")]).toEqual([200, 200])
  const json = { email: "by-program@example.com" }
  const person = await desk.service.call("/v1/operator/people", { token: made.shown, json })
  expect(person.body.result.created).toBe(true)
  await row("read, people").waitFor()
  await confirm("End: terraform", "End")
  await page.getByText("No management key").waitFor()
  expect(await status("people")).toBe(401)
})

it("finds nothing amiss in any view, in light and dark, on a desktop and a phone", async () => {
  const views = [
    ["people", "People"],
    ["tenants", "Tenants"],
    ["allowances", "Allowances"],
    ["vouchers", "Vouchers"],
    ["budgets", "Budgets"],
    ["management-keys", "Management keys"]
  ] as const
  for (const [path, title] of views) {
    await go(path, title)
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      expect([path, colorScheme, await tab.axe()]).toEqual([path, colorScheme, []])
    }
    for (const { viewport } of [screens.phone, screens.desktop]) {
      await page.setViewportSize(viewport)
      expect([path, viewport.width, await tab.overflow()]).toEqual([path, viewport.width, 0])
    }
  }
})
