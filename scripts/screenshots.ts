/**
 * Pictures of every view of the console, on a desktop and a phone, light and dark, into `out/screenshots`: to be looked at. It starts the
 * built service in its sandbox with two weeks of life in it. `npm run screenshots -- usage keys` takes only views whose name holds a word.
 */
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Desk, screens } from "../test/console/Browser.ts"
import type { Tab } from "../test/console/Browser.ts"
import type { Person, Service } from "../test/support/Service.ts"
import { root } from "./bundle.ts"

interface View {
  readonly name: string
  /** Below the console; nobody is signed in for `signedOut`. */
  readonly path: string
  readonly signedOut?: boolean
  /** As the operator. */
  readonly operator?: boolean
  /** What to do before the picture. */
  readonly before?: (tab: Tab) => Promise<unknown>
}

const views: ReadonlyArray<View> = [
  { name: "sign-in", path: "sign-in", signedOut: true },
  { name: "home", path: "" },
  { name: "usage", path: "usage" },
  { name: "usage-day", path: "usage?window=day&by=endpoint&plot=requests" },
  { name: "usage-year", path: "usage?window=year&grain=hour" },
  { name: "usage-payers", path: "usage?by=payer" },
  {
    name: "usage-call",
    path: "usage?sort=cost",
    before: ({ page }) => page.locator(".table-row").first().click()
  },
  { name: "keys", path: "keys" },
  { name: "keys-make", path: "keys?make=yes" },
  { name: "credit", path: "credit" },
  { name: "transfers", path: "transfers" },
  { name: "team", path: "team" },
  { name: "playground", path: "playground" },
  {
    name: "playground-chat",
    path: "playground",
    before: async ({ page }) => {
      const message = page.getByLabel("Message", { exact: true })
      for (const text of ["Why do bridges take tolls?", "And who pays for the ferry, in one sentence?"]) {
        await message.fill(text)
        await message.press("Control+Enter")
        await page.getByRole("button", { name: "Line by line" }).last().waitFor()
        await page.getByRole("button", { name: "Send" }).waitFor()
      }
    }
  },
  {
    name: "playground-refused",
    path: "playground",
    before: async ({ page }) => {
      await page.getByLabel("Model", { exact: true }).selectOption("sandbox-large")
      await page.getByLabel("Most tokens").fill("100000000")
      await page.getByLabel("Message", { exact: true }).fill("Write a novel about a tollgate.")
      await page.getByLabel("Message", { exact: true }).press("Control+Enter")
      await page.getByText("Not enough credit for this call").waitFor()
    }
  },
  {
    name: "playground-media",
    path: "playground?make=media",
    before: async ({ page }) => {
      await page.getByLabel("Prompt").fill("A lighthouse at dusk")
      await page.getByRole("button", { name: "Make it" }).click()
      await page.locator(".playground-job").first().getByText("done", { exact: true }).waitFor()
      await page.getByLabel("Model", { exact: true }).selectOption("sandbox-video")
      await page.getByRole("button", { name: "Make it" }).click()
      await page.locator(".playground-job").first().getByText("Sandbox Video", { exact: true }).waitFor()
    }
  },
  { name: "notifications", path: "notifications" },
  { name: "lost", path: "nowhere" },
  { name: "operator-none", path: "operator", signedOut: true },
  {
    name: "operator-overview",
    path: "operator",
    operator: true,
    before: async ({ page }) => {
      await page.getByRole("button", { name: "Look now" }).click()
      await page.getByText(/ hold, looked at in /).waitFor()
    }
  },
  { name: "operator-find", path: "operator/find", operator: true },
  { name: "operator-found", path: "operator/find?q=ada", operator: true },
  {
    name: "operator-tenant",
    path: "operator/find?q=ada",
    operator: true,
    before: ({ page }) => openFirst(page, "Tenants")
  },
  {
    name: "operator-grant",
    path: "operator/find?q=ada",
    operator: true,
    before: async ({ page }) => {
      await openFirst(page, "Tenants")
      await page.getByRole("button", { name: "Grant credit" }).click()
      await page.getByLabel("Amount").fill("12.5")
    }
  },
  {
    name: "operator-person",
    path: "operator/find?q=ada",
    operator: true,
    before: ({ page }) => openFirst(page, "People")
  },
  { name: "operator-upstreams", path: "operator/upstreams", operator: true },
  { name: "operator-costs", path: "operator/costs", operator: true },
  {
    name: "operator-drift",
    path: "operator/drift",
    operator: true,
    before: async ({ page }) => {
      const today = await page.evaluate(() => new Date().toISOString().slice(0, 10))
      await page
        .getByLabel("Invoice as CSV")
        .fill(`date,model,cost\n${today},sandbox-large,0.25\n${today},sandbox-small,much\n`)
      await page.getByRole("button", { name: "Compare" }).click()
      await page.getByRole("heading", { name: "Result" }).waitFor()
    }
  },
  { name: "operator-reservations", path: "operator/reservations", operator: true },
  { name: "operator-owed", path: "operator/owed", operator: true },
  { name: "operator-audit", path: "operator/audit", operator: true },
  { name: "operator-sessions", path: "operator/sessions", operator: true }
]

const openFirst = (page: Tab["page"], section: string): Promise<unknown> =>
  page.getByRole("region", { name: section }).getByRole("link").first().click()

const models = ["sandbox-large", "sandbox-small", "auto", "sandbox-fraction", "sandbox-failover"]
const dayLong = 86_400_000
const daysAhead = 14

/** A number that looks like chance and is the same every time. */
const chance = (seed: number): number => {
  let mixed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39)
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
}

const key = async (service: Service, { tenant_id, token }: Person, body: object): Promise<string> =>
  (await service.call(`/v1/tenants/${tenant_id}/applications`, { token, json: body })).body.result.api_key

/** Two weeks of calls, an hour of them today, by keys with and without limits, and credit that came in several ways. */
const live = async (service: Service): Promise<void> => {
  const first = await service.signIn("ada@example.com", { name: "Ada Lovelace" })
  await service.control("/credit", { tenant_id: first.tenant_id, amount: 40, source: "purchase" })
  const keys = [
    await key(service, first, { name: "Nightly report", description: "Reads usage, writes a summary" }),
    await key(service, first, { name: "Support bot", spending_limit_usd: 0.5, spending_limit_period: "month" }),
    await key(service, first, {
      name: "Experiment",
      spending_limit_usd: 25,
      spending_limit_period: "total",
      allowed_models: ["sandbox-large", "auto"]
    })
  ]
  let seed = 101
  for (let day = daysAhead; day >= 0; day--) {
    const calls = 6 + Math.round(chance(seed++) * 14)
    for (let call = 0; call < calls; call++) {
      const words = 40 + Math.round(chance(seed++) * 2600)
      await service.call("/v1/chat/completions", {
        token: keys[seed % 3]!,
        json: {
          model: models[Math.floor(chance(seed++) * models.length)],
          messages: [{ role: "user", content: "word ".repeat(words) }]
        }
      })
    }
    await service.call("/v1/search", { token: keys[0]!, json: { query: "tolls" } })
    if (day > 0) await service.control("/clock", { advance_ms: dayLong })
  }
  await service.control("/faults", { service: "chat", status: 500, times: 1 })
  await service.call("/v1/chat/completions", {
    token: keys[0]!,
    json: { model: "sandbox-small", messages: [{ role: "user", content: "This fails" }] }
  })
}

/** Nothing moves any more: what loads has loaded. */
const settled = async ({ page }: Tab): Promise<void> => {
  await page.waitForFunction(() => document.querySelector(".states-loading") === null)
  await page.evaluate(() => document.fonts.ready)
  await page.waitForTimeout(400)
}

/** A command on the server sees the clock that its sandbox was put to. */
const laterClock = {
  NODE_OPTIONS: `--import file://${join(root, "scripts", "bench", "shifted-clock.mjs")}?days=-${daysAhead}`
}

const folder = join(root, "out", "screenshots")
const wanted = process.argv.slice(2)
const isWanted = ({ name }: View): boolean => wanted.length === 0 || wanted.some((word) => name.includes(word))

const desk = await Desk.open()
try {
  if (wanted.length === 0) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await live(desk.service)
  desk.ahead = daysAhead * dayLong
  const chosen = views.filter(isWanted)
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [screen, options] of Object.entries(screens)) {
      const settings = { ...options, colorScheme, reducedMotion: "reduce" as const }
      const out = await desk.tab(settings)
      const operator = await desk.tab(settings)
      await operator.page.goto(await desk.operatorLink("grace", laterClock))
      const ada = await desk.signIn("ada@example.com", "", settings)
      for (const view of chosen) {
        const tab = view.signedOut === true ? out : view.operator === true ? operator : ada
        await tab.page.goto(desk.at(view.path))
        await settled(tab)
        await view.before?.(tab)
        await settled(tab)
        const wider = await tab.overflow()
        if (wider > 0) console.log(`${view.name} is ${wider} pixels wider than a ${screen}`)
        await tab.page.screenshot({ path: join(folder, `${view.name}-${screen}-${colorScheme}.png`), fullPage: true })
      }
      await Promise.all([out, ada, operator].map(({ context }) => context.close()))
    }
  }
  console.log(`${chosen.length * 4} pictures in out/screenshots`)
} finally {
  await desk.close()
}
