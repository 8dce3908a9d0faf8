/**
 * Takes screenshots of all console views, on desktop and phone, in light and dark, and saves them in `out/screenshots`. It starts the built service
 * in its sandbox, with six weeks of use. `npm run screenshots -- usage keys` takes only the views whose name contains one of the words.
 * `desktop`, `phone`, `light` and `dark` limit the variants. `readme` also updates the README's screenshots of Home.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Desk } from "../../test/console/Browser.ts"
import type { Tab } from "../../test/console/Browser.ts"
import { root } from "../bundle.ts"
import { daysAhead, live } from "./Life.ts"
import { viewsOf } from "./views.ts"
import type { As, View } from "./views.ts"

const screens = {
  desktop: { viewport: { width: 1440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true }
} as const
const schemes = ["light", "dark"] as const

/** Waits until everything has loaded and animations have ended. */
const settled = async ({ page }: Tab, isWaiting = false): Promise<void> => {
  if (!isWaiting) await page.waitForFunction(() => document.querySelector(".states-loading") === null)
  await page.evaluate(() => document.fonts.ready)
  await page.waitForTimeout(400)
}

/** Environment variables that make an operator command use the sandbox's clock. */
const sandboxClock = {
  NODE_OPTIONS: `--import file://${join(root, "scripts", "bench", "shifted-clock.mjs")}?days=-${daysAhead}`
}

const folder = join(root, "out", "screenshots")
const words = process.argv.slice(2)
const isOf = (names: ReadonlyArray<string>) => (name: string) =>
  !names.some((one) => words.includes(one)) || words.includes(name)
const isScreen = isOf(Object.keys(screens))
const isScheme = isOf(schemes)
const isReadme = words.includes("readme")
const rest = words.filter(
  (word) => word !== "readme" && !(word in screens) && !schemes.some((scheme) => scheme === word)
)
const isWanted = ({ name }: View): boolean =>
  isReadme ? name === "home" : rest.length === 0 || rest.some((word) => name.includes(word))

type Settings = NonNullable<Parameters<Desk["tab"]>[0]>

/** Opens the browsers of one size and color scheme on first use. */
const browsers = (desk: Desk, settings: Settings) => {
  const opened = new Map<As, Promise<Tab>>()
  const open: Record<As, () => Promise<Tab>> = {
    nobody: () => desk.tab(settings),
    ada: () => desk.signIn("ada@example.com", "", settings),
    newcomer: () => desk.signIn("newcomer@example.com", "", settings),
    operator: async () => {
      const tab = await desk.tab(settings)
      await tab.page.goto(await desk.operatorLink("grace", sandboxClock))
      await settled(tab)
      return tab
    },
    team: async () => {
      const tab = await desk.signIn("ada@example.com", "", settings)
      const menu = tab.page.getByRole("button", { name: "Menu", exact: true })
      if (await menu.isVisible()) await menu.click()
      await tab.page.getByRole("button", { name: /^Tenant/ }).click()
      await tab.page.getByRole("menuitem", { name: /Lighthouse/ }).click()
      await tab.page.locator(".shell-tenant").filter({ hasText: "Lighthouse" }).waitFor({ state: "attached" })
      return tab
    }
  }
  return {
    of: (as: As): Promise<Tab> => {
      const tab = opened.get(as) ?? open[as]()
      opened.set(as, tab)
      // The timeout is short. A view that fails because of changed labels is reported and skipped.
      void tab.then(({ context }) => context.setDefaultTimeout(15_000))
      return tab
    },
    close: async () => {
      for (const tab of opened.values()) await (await tab).context.close()
    }
  }
}

/** Takes a screenshot as WebP, which Chromium supports but Playwright does not. */
const takeForReadme = async ({ context, page }: Tab, scheme: string): Promise<void> => {
  const { height, width } = screens.desktop.viewport
  const session = await context.newCDPSession(page)
  const { data } = await session.send("Page.captureScreenshot", {
    format: "webp",
    quality: 85,
    clip: { x: 0, y: 0, width, height, scale: 1 }
  })
  writeFileSync(join(import.meta.dirname, `home-${scheme}.webp`), Buffer.from(data, "base64"))
}

/**
 * Takes the entire view, or a dialog with the visible part of the view. Enlarges the viewport instead of taking a full-page screenshot, which would
 * lose the phone emulation.
 */
const takeScreenshot = async ({ page }: Tab, path: string): Promise<void> => {
  const { height, width } = page.viewportSize()!
  const whole = await page.evaluate(
    () => (document.querySelector(".dialog-shade") ?? document.documentElement).scrollHeight
  )
  await page.setViewportSize({ width, height: Math.max(height, whole) })
  await page.waitForTimeout(200)
  await page.screenshot({ path })
  await page.setViewportSize({ width, height })
}

const take = async (desk: Desk, tab: Tab, view: View, screen: string, scheme: string): Promise<void> => {
  await tab.page.goto("about:blank")
  await view.routes?.(tab)
  await tab.page.goto(desk.at(view.path))
  await settled(tab, view.isWaiting)
  await view.before?.(tab)
  await settled(tab, view.isWaiting)
  const wider = await tab.overflow()
  if (wider > 0) console.log(`${view.name} is ${wider} pixels wider than a ${screen}`)
  const path = join(folder, `${view.name}-${screen}-${scheme}.png`)
  await takeScreenshot(tab, path)
  if (isReadme && view.name === "home" && screen === "desktop") await takeForReadme(tab, scheme)
  await tab.page.unrouteAll({ behavior: "ignoreErrors" })
}

const desk = await Desk.open()
let taken = 0
try {
  if (words.length === 0) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const chosen = viewsOf(await live(desk.service)).filter(isWanted)
  desk.ahead = daysAhead * 86_400_000
  for (const scheme of schemes.filter(isScheme)) {
    for (const [screen, options] of Object.entries(screens).filter(([name]) => isScreen(name))) {
      const all = browsers(desk, { ...options, colorScheme: scheme, reducedMotion: "reduce" })
      for (const view of chosen) {
        try {
          await take(desk, await all.of(view.as ?? "ada"), view, screen, scheme)
          taken++
        } catch (error) {
          console.log(`${view.name} on a ${screen}, ${scheme}: ${String(error).split("\n")[0]}`)
        }
      }
      await all.close()
    }
  }
  console.log(`${taken} pictures in out/screenshots`)
} finally {
  await desk.close()
}
