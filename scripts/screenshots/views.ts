/** Lists the screenshots, each with its URL, its user and its preparation. */
import type { Tab } from "../../test/console/Browser.ts"
import { broken, failing, troubled, waiting } from "./states.ts"

/** The browser's user: none, Ada in her personal tenant or her team, a new user, or the operator. */
export type As = "nobody" | "ada" | "team" | "newcomer" | "operator"

export interface View {
  readonly name: string
  /** The path, relative to the console. */
  readonly path: string
  readonly as?: As
  /** Overrides the service's responses before the view is opened. */
  readonly routes?: (tab: Tab) => Promise<unknown>
  /** Prepares the page before the screenshot. */
  readonly before?: (tab: Tab) => Promise<unknown>
  /** Whether the view never finishes loading, so that the screenshot shows the loading state. */
  readonly isWaiting?: boolean
}

type Page = Tab["page"]

const press =
  (name: string | RegExp) =>
  ({ page }: Tab) =>
    page.getByRole("button", { name }).first().click()

const openFirst = (page: Page, section: string): Promise<unknown> =>
  page.getByRole("region", { name: section }).getByRole("link").first().click()

const chat = async ({ page }: Tab): Promise<void> => {
  const message = page.getByLabel("Message", { exact: true })
  for (const text of ["Why do bridges take tolls?", "And who pays for the ferry, in one sentence?"]) {
    await message.fill(text)
    await message.press("Control+Enter")
    await page.getByRole("button", { name: "Cost breakdown" }).last().waitFor()
    await page.getByRole("button", { name: "Send" }).waitFor()
  }
}

const refused = async ({ page }: Tab): Promise<void> => {
  // On a phone, the settings are collapsed.
  const settings = page.locator("summary").filter({ hasText: "Settings" })
  if (await settings.isVisible()) await settings.click()
  await page.getByLabel("Model", { exact: true }).selectOption("sandbox-large")
  await page.getByLabel("Max tokens").fill("100000000")
  await page.getByLabel("Message", { exact: true }).fill("Write a novel about a tollgate.")
  await page.getByLabel("Message", { exact: true }).press("Control+Enter")
  await page.getByText("Not enough credit for this call").waitFor()
}

const speak = async ({ page }: Tab): Promise<void> => {
  await page.getByLabel("Text", { exact: true }).fill("The tide is in, and the ferry leaves at six.")
  await page.getByLabel("Format").selectOption("wav")
  await page.getByRole("button", { name: "Speak" }).click()
  await page.getByRole("button", { name: "Cost breakdown" }).waitFor()
}

const transcribe = async ({ page }: Tab): Promise<void> => {
  const buffer = Buffer.alloc(16_000 * 12)
  await page.locator("input[type=file]").setInputFiles({ name: "interview.mp3", mimeType: "audio/mpeg", buffer })
  await page.getByRole("button", { name: "Transcribe" }).click()
  await page.getByRole("button", { name: "Cost breakdown" }).waitFor()
}

const search = async ({ page }: Tab): Promise<void> => {
  await page.getByLabel("Query").fill("history of toll bridges")
  await page.getByRole("button", { name: "Search", exact: true }).click()
  await page.getByRole("button", { name: "Cost breakdown" }).waitFor()
}

const transfer = (tab: "sent" | "received", state: string): View => ({
  name: `transfers-${tab}-${state.toLowerCase().replace(" ", "-")}`,
  path: `transfers?tab=${tab}`,
  before: ({ page }) =>
    page
      .getByRole("row", { name: new RegExp(state) })
      .first()
      .click()
})

const ofAda: ReadonlyArray<View> = [
  { name: "home", path: "" },
  { name: "usage", path: "usage" },
  { name: "usage-day", path: "usage?window=day&by=endpoint&plot=requests" },
  { name: "usage-year", path: "usage?window=year&grain=hour" },
  { name: "usage-keys", path: "usage?by=application&window=week" },
  { name: "usage-payers", path: "usage?by=payer" },
  {
    name: "usage-custom",
    path: "usage?window=week",
    before: ({ page }) => page.getByText("Custom", { exact: true }).click()
  },
  {
    name: "usage-table",
    path: "usage",
    before: ({ page }) => page.getByText("Data table").click()
  },
  { name: "usage-call", path: "usage?sort=cost", before: ({ page }) => page.locator(".table-row").first().click() },
  { name: "keys", path: "keys" },
  { name: "keys-make", path: "keys?make=yes" },
  {
    name: "keys-made",
    path: "keys?make=yes",
    before: async ({ page }) => {
      await page.getByLabel("Name").fill("Demonstration")
      await page.getByRole("dialog").getByRole("button", { name: "Create a key" }).click()
      await page.getByTestId("api-key").waitFor()
    }
  },
  { name: "keys-change", path: "keys", before: press(/^Change: Support bot/) },
  { name: "keys-revoke", path: "keys", before: press(/^Revoke: /) },
  { name: "credit", path: "credit" },
  { name: "credit-buy", path: "credit", before: press("Buy credit") },
  { name: "credit-reload", path: "credit", before: ({ page }) => changeIn(page, "Auto-reload") },
  { name: "credit-alerts", path: "credit", before: ({ page }) => changeIn(page, "Alerts") },
  { name: "transfers", path: "transfers" },
  { name: "transfers-sent", path: "transfers?tab=sent" },
  transfer("sent", "Waiting"),
  transfer("sent", "Accepted"),
  transfer("sent", "Declined"),
  transfer("sent", "Taken back"),
  transfer("sent", "Expired"),
  transfer("received", "Waiting"),
  { name: "transfers-send", path: "transfers?send=yes" },
  {
    name: "transfers-review",
    path: "transfers?send=yes",
    before: async ({ page }) => {
      await page.getByLabel("Amount").fill("2.5")
      await page.getByLabel("To").fill("barbara@example.com")
      await page.getByLabel("Message").fill("For the first week")
      await page.getByRole("button", { name: "Review" }).click()
    }
  },
  { name: "team-home", path: "team" },
  { name: "team-home-payers", path: "team?tab=payers" },
  { name: "team-make", path: "team?make=yes" },
  { name: "playground", path: "playground" },
  { name: "playground-chat", path: "playground", before: chat },
  { name: "playground-refused", path: "playground", before: refused },
  { name: "playground-media", path: "playground?make=media" },
  { name: "playground-speech", path: "playground?make=speech", before: speak },
  { name: "playground-transcription", path: "playground?make=transcription", before: transcribe },
  { name: "playground-search", path: "playground?make=search", before: search },
  { name: "notifications", path: "notifications" },
  { name: "lost", path: "nowhere" },
  { name: "menu-tenant", path: "", before: (tab) => inMenu(tab, /^Tenant/) },
  { name: "menu-account", path: "", before: (tab) => inMenu(tab, /^Account/) },
  {
    name: "focus",
    path: "keys",
    before: async ({ page }) => {
      for (let i = 0; i < 14; i++) await page.keyboard.press("Tab")
    }
  }
]

/** Opens a menu entry. On a phone, the menus are behind a button. */
const inMenu = async ({ page }: Tab, name: RegExp): Promise<void> => {
  const menu = page.getByRole("button", { name: "Menu", exact: true })
  if (await menu.isVisible()) await menu.click()
  await page.getByRole("button", { name }).click()
}

const changeIn = (page: Page, section: string): Promise<unknown> =>
  page.getByRole("region", { name: section }).getByRole("button", { name: "Change" }).click()

const ofTeam: ReadonlyArray<View> = [
  { name: "team-home-view", path: "" },
  { name: "team", path: "team" },
  { name: "team-payers", path: "team?tab=payers" },
  { name: "team-usage", path: "team?tab=usage" },
  { name: "team-usage-people", path: "usage?by=account" },
  { name: "team-invite", path: "team", before: press("Invite") },
  { name: "team-plan", path: "team", before: press("Change seats") },
  { name: "team-member", path: "team", before: press(/^Actions for Alan/) }
].map((view) => ({ ...view, as: "team" }))

/** The views without content. */
const empty: ReadonlyArray<View> = [
  "",
  "usage",
  "keys",
  "credit",
  "transfers",
  "team",
  "playground?make=media",
  "notifications"
].map((path) => ({ name: `empty-${path.split("?")[0] || "home"}`, path, as: "newcomer" }))

/** The views that are loading or have failed. */
const others: ReadonlyArray<View> = ["", "usage", "credit", "transfers", "team", "notifications"].flatMap((path) => {
  const name = path || "home"
  return [
    { name: `loading-${name}`, path, routes: waiting, isWaiting: true },
    { name: `failed-${name}`, path, routes: failing }
  ]
})

const ofNobody = (letters: { readonly transferLetter: string; readonly teamLetter: string }): ReadonlyArray<View> => [
  { name: "sign-in", path: "sign-in", as: "nobody" },
  { name: "sign-in-error", path: "sign-in?error=cancelled", as: "nobody" },
  { name: "invitation-transfer", path: `invitation#transfer=${letters.transferLetter}`, as: "nobody" },
  { name: "invitation-team", path: `invitation#team=${letters.teamLetter}`, as: "nobody" },
  { name: "invitation-missing", path: `invitation#transfer=${"0".repeat(64)}`, as: "nobody" },
  { name: "operator-none", path: "operator", as: "nobody" }
]

const invoice = async ({ page }: Tab): Promise<void> => {
  const today = await page.evaluate(() => new Date().toISOString().slice(0, 10))
  await page
    .getByLabel("Invoice as CSV")
    .fill(`date,model,cost\n${today},sandbox-large,0.25\n${today},sandbox-small,much\n`)
  await page.getByRole("button", { name: "Compare" }).click()
  await page.getByRole("heading", { name: "Result" }).waitFor()
}

const look = async ({ page }: Tab): Promise<void> => {
  await page.getByRole("button", { name: "Check now" }).click()
  await page.getByText(/ hold \(checked in /).waitFor()
}

const tenantOfAda = ({ page }: Tab): Promise<unknown> => openFirst(page, "Tenants")

const onTenantOfAda =
  (then: (page: Page) => Promise<unknown>) =>
  async (tab: Tab): Promise<void> => {
    await tenantOfAda(tab)
    await then(tab.page)
  }

const grant = async (page: Page): Promise<void> => {
  await page.getByRole("button", { name: "Grant credit" }).click()
  await page.getByLabel("Amount").fill("12.5")
  await page.getByLabel("Reason").fill("For the outage of Monday")
}

const ofOperator: ReadonlyArray<View> = [
  { name: "operator-overview", path: "operator", before: look },
  { name: "operator-trouble", path: "operator", routes: troubled, before: look },
  { name: "operator-upstreams", path: "operator/upstreams" },
  { name: "operator-upstreams-trouble", path: "operator/upstreams", routes: troubled },
  { name: "operator-failed", path: "operator", routes: broken },
  { name: "operator-find", path: "operator/find" },
  { name: "operator-found", path: "operator/find?q=ada" },
  { name: "operator-tenant", path: "operator/find?q=ada", before: tenantOfAda },
  { name: "operator-grant", path: "operator/find?q=ada", before: onTenantOfAda(grant) },
  {
    name: "operator-granted",
    path: "operator/find?q=ada",
    before: onTenantOfAda(async (page) => {
      await grant(page)
      await page.getByRole("button", { name: /^Grant \$/ }).click()
      await page.getByRole("button", { name: "Done" }).waitFor()
    })
  },
  {
    name: "operator-suspend",
    path: "operator/find?q=ada",
    before: onTenantOfAda((page) => page.getByRole("button", { name: "Suspend" }).click())
  },
  {
    name: "operator-call",
    path: "operator/find?q=ada",
    before: onTenantOfAda((page) =>
      page.getByRole("region", { name: "Calls", exact: true }).locator(".table-row").first().click()
    )
  },
  { name: "operator-person", path: "operator/find?q=ada", before: ({ page }: Tab) => openFirst(page, "People") },
  { name: "operator-costs", path: "operator/costs" },
  { name: "operator-costs-all", path: "operator/costs?by=row&plot=requests" },
  { name: "operator-drift", path: "operator/drift", before: invoice },
  { name: "operator-reconciliations", path: "operator/reconciliations" },
  { name: "operator-reservations", path: "operator/reservations" },
  { name: "operator-reservations-trouble", path: "operator/reservations", routes: troubled },
  { name: "operator-owed", path: "operator/owed" },
  { name: "operator-owed-trouble", path: "operator/owed", routes: troubled },
  { name: "operator-audit", path: "operator/audit" },
  { name: "operator-sessions", path: "operator/sessions" },
  {
    name: "operator-menu",
    path: "operator/sessions",
    before: async ({ page }: Tab) => {
      const menu = page.getByRole("button", { name: "Menu", exact: true })
      if (await menu.isVisible()) await menu.click()
    }
  }
].map((view) => ({ ...view, as: "operator" }))

export const viewsOf = (letters: Parameters<typeof ofNobody>[0]): ReadonlyArray<View> => [
  ...ofNobody(letters),
  ...ofAda,
  ...ofTeam,
  ...empty,
  ...others,
  ...ofOperator
]
