/**
 * Signing in in a real browser: by a letter, by an issuer of another make, by GitHub, and with a passkey of the browser's virtual authenticator.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { client as app, CodeIssuer } from "../support/CodeIssuer.ts"
import { commandHere } from "../support/CommandLine.ts"
import { lettersTo } from "../support/mail.ts"
import { client, OidcProvider } from "../support/OidcProvider.ts"
import { freePort, freshFolder, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import { launch } from "./Browser.ts"

let browser: Browser
let sandbox: Service
let deployment: Service
let issuer: OidcProvider
let github: CodeIssuer

/** A browser offers no passkeys at an IP address. */
const local = { HOST: "localhost", NODE_OPTIONS: "--dns-result-order=ipv4first" }
const at = ({ port }: Service, path = "") => `http://localhost:${port}/console/${path}`

beforeAll(async () => {
  const [port, issuerPort] = [await freePort(), await freePort()]
  issuer = new OidcProvider(issuerPort, `http://localhost:${port}/oauth/signed-in/company`)
  issuer.people.set("ada", { email: "ada@corp.example", name: "Ada" })
  await issuer.listen()
  github = await CodeIssuer.make(await CodeIssuer.freePort())
  github.asks = true
  await github.listen()
  const folder = freshFolder()
  const file = join(folder, "config.json")
  const company = { issuer: issuer.url, client_id: client.id, client_secret_env: "CLIENT_SECRET", name: "Example Ltd" }
  writeFileSync(
    file,
    JSON.stringify({
      public_url: `http://localhost:${port}`,
      clients: [{ client_id: "app", name: "App" }],
      identity: {
        company,
        github: {
          kind: "github",
          issuer: github.url,
          api_url: github.url,
          client_id: app.id,
          client_secret_env: "GITHUB_SECRET"
        }
      },
      registration: { domains: ["corp.example"] },
      upstreams: { local: { base_url: "http://127.0.0.1:9/v1" } },
      models: [
        {
          id: "small",
          context_length: 1000,
          max_output_tokens: 100,
          price: { prompt_usd_per_million: "1", completion_usd_per_million: "1" },
          upstreams: [{ upstream: "local" }]
        }
      ]
    })
  )
  const env = { ...local, CLIENT_SECRET: client.secret, GITHUB_SECRET: app.secret }
  deployment = await start({ folder, port, args: ["--config", file], env })
  sandbox = await start({ env: local })
  browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([sandbox?.discard(), deployment?.discard(), issuer?.close(), github?.close()])
})

/** A page in a browser of its own, with an authenticator that verifies its person. */
const fresh = async (): Promise<{ readonly page: Page; readonly context: BrowserContext }> => {
  const context = await browser.newContext({ locale: "en-US", timezoneId: "UTC" })
  context.setDefaultTimeout(180_000)
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  await devtools.send("WebAuthn.enable")
  await devtools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true
    }
  })
  return { page, context }
}

const signOut = async (page: Page): Promise<void> => {
  await page.getByRole("button", { name: "Account" }).first().click()
  await page.getByRole("menuitem", { name: "Sign out" }).click()
  await page.getByRole("button", { name: "Continue with a passkey" }).waitFor()
}

const addPasskey = async (page: Page, service: Service): Promise<void> => {
  await page.goto(at(service, "account"))
  await page.getByRole("button", { name: "Add a passkey" }).click()
  await page.getByRole("textbox", { name: "Name" }).fill("this laptop")
  await page.getByRole("dialog").getByRole("button", { name: "Add a passkey" }).click()
  await page.getByRole("cell", { name: "this laptop", exact: true }).waitFor()
  await page.getByText("never", { exact: true }).waitFor()
}

/** Adds a passkey, signs out, and signs in with it. */
const goOnByPasskey = async (page: Page, service: Service): Promise<void> => {
  await addPasskey(page, service)
  await signOut(page)
  await page.getByRole("button", { name: "Continue with a passkey" }).click()
  await page.locator("main.shell-main").waitFor()
  await page.goto(at(service, "account"))
  await page.getByRole("cell", { name: "this laptop", exact: true }).waitFor()
  expect(await page.getByText("never", { exact: true }).count()).toBe(0)
}

/** Asks for a link by letter, and answers it. `letters`: how many the person has had with this one. */
const linkByLetter = async (page: Page, email: string, letters = 1): Promise<string> => {
  await page.goto(at(sandbox, "sign-in"))
  await page.getByRole("link", { name: "Continue with email" }).click()
  await page.getByLabel("Your email address").fill(email)
  await page.getByRole("button", { name: "Send the link" }).click()
  await page.getByRole("heading", { name: "Check your email" }).waitFor()
  return vi.waitFor(
    async () => {
      const texts = (await lettersTo(sandbox, email)).map(({ text }) => text)
      const links = texts.flatMap((text) => /http\S+\/oauth\/link\?token=\S+/.exec(text) ?? [])
      expect(links).toHaveLength(letters)
      return links.at(-1)!
    },
    { timeout: 30_000 }
  )
}

const signInByLetter = async (page: Page, email: string, letters = 1): Promise<void> => {
  await page.goto(await linkByLetter(page, email, letters))
  await page.locator("main.shell-main").waitFor()
}

it("signs in by a letter, and from then on with a passkey, until that is deleted", async () => {
  const { context, page } = await fresh()
  const link = await linkByLetter(page, "grace@letters.example")
  // Another browser gets nothing by the link, and does not spend it.
  const { context: stranger, page: elsewhere } = await fresh()
  await elsewhere.goto(link)
  await elsewhere.getByText("only in the browser that requested it").waitFor()
  await stranger.close()
  await page.goto(link)
  await page.locator("main.shell-main").waitFor()
  await goOnByPasskey(page, sandbox)
  await page.getByRole("button", { name: "Delete: this laptop" }).click()
  await page.getByRole("alertdialog").or(page.getByRole("dialog")).getByRole("button", { name: "Delete" }).click()
  await page.getByText("No passkeys yet.").waitFor()
  await signOut(page)
  await page.getByRole("button", { name: "Continue with a passkey" }).click()
  await page.getByText("The passkey could not be verified").waitFor()
  await context.close()
})

it("signs in by an issuer of another make, and from then on with a passkey, also while the issuer is down", async () => {
  const { context, page } = await fresh()
  await page.goto(at(deployment, "sign-in"))
  await page.getByRole("link", { name: "Continue with Example Ltd" }).click()
  await page.locator("input[name=login]").fill("ada")
  await page.locator("input[name=password]").fill("any")
  await page.getByRole("button", { name: "Sign-in" }).click()
  await page.getByRole("button", { name: "Continue" }).click()
  await page.locator("main.shell-main").waitFor()
  await page.goto(at(deployment, "account"))
  await page.getByText("ada@corp.example").first().waitFor()
  await issuer.close()
  await goOnByPasskey(page, deployment)
  await context.close()
})

it("is deleted by an operator, one or with all sign-ins, and signs in no more", async () => {
  const { context, page } = await fresh()
  await signInByLetter(page, "grace@example.com")
  await addPasskey(page, sandbox)
  const { stdout } = await commandHere(["operator", "--json", "--name", "hopper"], {
    DATA_DIR: sandbox.folder,
    HOST: "localhost",
    PORT: String(sandbox.port)
  })
  const desk = await context.newPage()
  const { link } = JSON.parse(stdout) as { link: string }
  await desk.goto(link)
  await desk.getByRole("heading", { name: "Overview", exact: true }).waitFor()
  await desk.goto(new URL("/console/operator/find?q=grace@example.com", link).href)
  await desk.getByRole("region", { name: "People" }).getByRole("link").first().click()
  const section = desk.getByRole("region", { name: "Passkeys" })
  await section.getByRole("cell", { name: "this laptop", exact: true }).waitFor()

  await desk.getByRole("button", { name: "End sign-ins" }).click()
  const dialog = desk.getByRole("dialog")
  await dialog.getByRole("button", { name: "End sign-ins" }).click()
  expect(await dialog.getByRole("status").textContent()).toContain("One passkey still signs in.")
  await dialog.getByRole("button", { name: "Done" }).click()

  await section.getByRole("button", { name: "Delete: this laptop" }).click()
  await dialog.getByRole("button", { name: "Delete" }).click()
  expect(await dialog.getByRole("status").textContent()).toContain("The passkey this laptop is deleted.")
  await dialog.getByRole("button", { name: "Done" }).click()
  await section.getByText("No passkeys.").waitFor()

  await page.goto(at(sandbox, "sign-in"))
  await page.getByRole("button", { name: "Continue with a passkey" }).click()
  await page.getByText("The passkey could not be verified").waitFor()

  await signInByLetter(page, "grace@example.com", 2)
  await addPasskey(page, sandbox)
  await desk.reload()
  await desk.getByRole("button", { name: "End sign-ins" }).click()
  await dialog.getByLabel("Also delete the passkeys").check()
  await dialog.getByRole("button", { name: "End sign-ins" }).click()
  expect(await dialog.getByRole("status").textContent()).toContain("One passkey is deleted.")
  await dialog.getByRole("button", { name: "Done" }).click()
  await section.getByText("No passkeys.").waitFor()
  await context.close()
})

/** The people whom GitHub signs in: their account there, and their address. */
const octocat = { user: { id: 42, login: "octocat", name: "Octo Cat" }, email: "octo@corp.example", verified: true }
const mallory = { user: { id: 43, login: "mallory", name: "Mallory" }, email: "mallory@corp.example", verified: true }

/** Leaves for GitHub as this person. The result is the address at which GitHub's page returns the browser. */
const returnFromGitHub = async (page: Page, { email, user, verified } = octocat): Promise<string> => {
  github.user = user
  github.emails = [{ email, primary: true, verified }]
  await page.goto(at(deployment, "sign-in"))
  await page.getByRole("link", { name: "Continue with GitHub" }).click()
  return (await page.getByRole("link", { name: "Go back" }).getAttribute("href"))!
}

const isRefused = async (page: Page, words: string): Promise<void> => {
  await page.getByText(words).waitFor()
  // No session was opened beside the refusal.
  await page.goto(at(deployment, "account"))
  await page.getByRole("link", { name: "Continue with GitHub" }).waitFor()
}

describe("GitHub", () => {
  it("signs in, once for each return and in no other browser", async () => {
    const [{ context, page }, { context: other, page: elsewhere }] = [await fresh(), await fresh()]
    const url = await returnFromGitHub(page)
    await elsewhere.goto(url)
    await isRefused(elsewhere, "This sign-in started in another tab or browser")
    await page.goto(url)
    await page.locator("main.shell-main").waitFor()
    await page.goto(at(deployment, "account"))
    await page.getByText("octo@corp.example").first().waitFor()
    await signOut(page)
    await page.goto(url)
    await isRefused(page, "could not be verified")
    await Promise.all([context.close(), other.close()])
  })

  it("refuses the code of another browser, and a code that was used", async () => {
    const [{ context, page }, { context: other, page: elsewhere }] = [await fresh(), await fresh()]
    const theirs = new URL(await returnFromGitHub(elsewhere, mallory))
    const own = new URL(await returnFromGitHub(page))
    own.searchParams.set("code", theirs.searchParams.get("code")!)
    await page.goto(own.href)
    await isRefused(page, "could not be verified")
    // GitHub has spent the code, though no person has signed in by it.
    await elsewhere.goto(theirs.href)
    await isRefused(elsewhere, "could not be verified")
    await Promise.all([context.close(), other.close()])
  })

  it("proves nothing by an address that GitHub has not verified, not even one that has an account here", async () => {
    for (const email of ["mallory@corp.example", "octo@corp.example"]) {
      const { context, page } = await fresh()
      await page.goto(await returnFromGitHub(page, { ...mallory, email, verified: false }))
      await isRefused(page, "You need an invitation")
      await context.close()
    }
  })

  it.each([
    ["access_denied", "The sign-in was cancelled at the provider."],
    ["application_suspended", "could not be verified"]
  ])("says what became of a sign-in that GitHub ends with %s", async (error, words) => {
    const { context, page } = await fresh()
    github.refusal = error
    const url = await returnFromGitHub(page)
    github.refusal = undefined
    expect(new URL(url).searchParams.get("error")).toBe(error)
    await page.goto(url)
    await isRefused(page, words)
    await page.goto(await returnFromGitHub(page))
    await page.locator("main.shell-main").waitFor()
    await context.close()
  })

  it("says that GitHub does not answer", async () => {
    const { context, page } = await fresh()
    const url = await returnFromGitHub(page)
    await github.close()
    await page.goto(url)
    await isRefused(page, "The provider is not responding")
    await context.close()
  })
})
