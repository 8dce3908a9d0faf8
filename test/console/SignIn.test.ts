/** Signing in in a real browser: by a letter, by an issuer of another make, and with a passkey of the browser's virtual authenticator. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { lettersTo } from "../support/mail.ts"
import { client, OidcProvider } from "../support/OidcProvider.ts"
import { freePort, freshFolder, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"
import { launch } from "./Browser.ts"

let browser: Browser
let sandbox: Service
let deployment: Service
let issuer: OidcProvider

/** A browser offers no passkeys at an IP address. */
const local = { HOST: "localhost", NODE_OPTIONS: "--dns-result-order=ipv4first" }
const at = ({ port }: Service, path = "") => `http://localhost:${port}/console/${path}`

beforeAll(async () => {
  const [port, issuerPort] = [await freePort(), await freePort()]
  issuer = new OidcProvider(issuerPort, `http://localhost:${port}/oauth/signed-in/company`)
  issuer.people.set("ada", { email: "ada@corp.example", name: "Ada" })
  await issuer.listen()
  const folder = freshFolder()
  const file = join(folder, "config.json")
  const company = { issuer: issuer.url, client_id: client.id, client_secret_env: "CLIENT_SECRET", name: "Example Ltd" }
  writeFileSync(
    file,
    JSON.stringify({
      public_url: `http://localhost:${port}`,
      clients: [{ client_id: "app", name: "App" }],
      identity: { company },
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
  const env = { ...local, CLIENT_SECRET: client.secret }
  deployment = await start({ folder, port, args: ["--config", file], env })
  sandbox = await start({ env: local })
  browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([sandbox?.discard(), deployment?.discard(), issuer?.close()])
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

/** Adds a passkey, signs out, and signs in with it. */
const goOnByPasskey = async (page: Page, service: Service): Promise<void> => {
  await page.goto(at(service, "account"))
  await page.getByRole("button", { name: "Add a passkey" }).click()
  await page.getByRole("textbox", { name: "Name" }).fill("this laptop")
  await page.getByRole("dialog").getByRole("button", { name: "Add a passkey" }).click()
  await page.getByRole("cell", { name: "this laptop", exact: true }).waitFor()
  await page.getByText("never", { exact: true }).waitFor()
  await signOut(page)
  await page.getByRole("button", { name: "Continue with a passkey" }).click()
  await page.locator("main.shell-main").waitFor()
  await page.goto(at(service, "account"))
  await page.getByRole("cell", { name: "this laptop", exact: true }).waitFor()
  expect(await page.getByText("never", { exact: true }).count()).toBe(0)
}

it("signs in by a letter, and from then on with a passkey, until that is deleted", async () => {
  const { context, page } = await fresh()
  await page.goto(at(sandbox, "sign-in"))
  await page.getByRole("link", { name: "Continue with e-mail" }).click()
  await page.getByLabel("Your e-mail address").fill("grace@letters.example")
  await page.getByRole("button", { name: "Send the link" }).click()
  await page.getByRole("heading", { name: "Look in your mailbox" }).waitFor()
  const link = await vi.waitFor(
    async () => {
      const [letter] = await lettersTo(sandbox, "grace@letters.example")
      return /http\S+\/oauth\/link\?token=\S+/.exec(letter!.text)![0]
    },
    { timeout: 30_000 }
  )
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
