/** Receipts that the page fetches and verifies itself, in a real browser: proven, behind, wrong, unavailable, cosigned, and under another key. */
import { createHash, generateKeyPairSync, sign } from "node:crypto"
import type { KeyObject } from "node:crypto"
import type { Locator, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Person } from "../support/Service.ts"
import { Desk, screens } from "./Browser.ts"
import type { Tab } from "./Browser.ts"

let desk: Desk
let ada: Person
let usage: ReadonlyArray<{ readonly id: string }>

const call = (token: string, content: string) =>
  desk.service.call("/v1/chat/completions", {
    token,
    json: { model: "sandbox-small", messages: [{ role: "user", content }] }
  })

beforeAll(async () => {
  desk = await Desk.open({ env: { SANDBOX_WITNESSES: "on" } })
  ada = await desk.service.signIn("ada@example.com", { name: "Ada Lovelace" })
  const key = await desk.service.key(ada)
  await desk.service.control("/credit", { tenant_id: ada.tenant_id, amount: 5, source: "purchase" })
  for (const content of ["one", "one two three"]) expect((await call(key, content)).status).toBe(200)
  usage = await desk.service.usage(ada)
})
afterAll(() => desk.close())

const receiptOf = async (id: string) =>
  (await desk.service.call(`/v1/usage/${id}/receipt`, { token: ada.token })).body as Receipt

interface Receipt {
  readonly leaf: string
  readonly index: number
  readonly proof: string
  readonly checkpoint: string
}

interface LogKeys {
  readonly keys: ReadonlyArray<string>
  readonly witnesses: ReadonlyArray<{ readonly name: string; readonly key: string }>
}

/** Changes the service's answer about the log's keys. */
const answerKeys = (page: Page, changed: (served: LogKeys) => LogKeys) =>
  page.route("**/v1/log/keys", async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: changed((await response.json()) as LogKeys) })
  })

/** Stores these keys in the browser, as an earlier visit would have. */
const store = (page: Page, keys: object) =>
  page.evaluate(
    ([name, value]) => localStorage.setItem(name!, value!),
    [`console.log-keys ${desk.service.url}`, JSON.stringify({ ...keys, since: "2026-01-02T00:00:00.000Z" })]
  )

const theirReceipt = "**/v1/usage/*/receipt"

/** Opens the newest call's dialog, after `before` has prepared the page. */
const open = async (before: (page: Page) => Promise<unknown> = async () => {}) => {
  const tab = await desk.signIn("ada@example.com", "usage")
  await before(tab.page)
  await tab.page.goto(desk.at(`usage?call=${usage[0]!.id}`))
  const dialog = tab.page.getByRole("dialog")
  const verify = () => dialog.getByRole("button", { name: "Verify the receipt" }).click()
  await dialog.getByText("Charged", { exact: true }).waitFor()
  return { ...tab, tab, dialog, verify }
}

const inLog = (dialog: Locator) => dialog.getByText("This charge is in the log.")

/** An account may have only a few open tabs, because each has a stream of events. */
const leave = async (tab: Tab): Promise<void> => {
  tab.done()
  await tab.context.close()
}

const isSound = async (tab: Tab): Promise<void> => {
  for (const colorScheme of ["light", "dark"] as const) {
    await tab.page.emulateMedia({ colorScheme })
    expect([colorScheme, await tab.axe()]).toEqual([colorScheme, []])
  }
  for (const { viewport } of [{ viewport: { width: 320, height: 640 } }, screens.phone, screens.desktop]) {
    await tab.page.setViewportSize(viewport)
    expect([viewport.width, await tab.overflow()]).toEqual([viewport.width, 0])
  }
}

describe("the receipt of a charge", () => {
  it("is verified in the page, by the keyboard too, and its key is remembered", async () => {
    const { dialog, page, tab } = await open()
    await dialog.getByRole("button", { name: "Verify the receipt" }).press("Enter")
    await inLog(dialog).waitFor()
    await dialog.getByText(/^Checkpoint of .* with \d+ entries\.$/).waitFor()
    // The button stays, so the keyboard is where it was.
    const again = dialog.getByRole("button", { name: "Verify again" })
    expect(await again.evaluate((element) => element === document.activeElement)).toBe(true)
    await isSound(tab)
    const { keys, witnesses } = (await desk.service.call("/v1/log/keys")).body as LogKeys
    expect(witnesses.map(({ name }) => name)).toEqual(["w1.sandbox", "w2.sandbox"])
    for (const { key, name } of witnesses) {
      await dialog.getByText(new RegExp(`^Cosigned by ${name} at `)).waitFor()
      expect(await dialog.locator("details code").allTextContents()).toContain(key)
    }
    await dialog.getByText(/^The list of witnesses comes from the service\./).waitFor()
    const stored = await page.evaluate(() =>
      Object.entries(localStorage).find(([name]) => name.startsWith("console.log-keys"))
    )
    expect(JSON.parse(stored![1])).toMatchObject({ keys, witnesses: witnesses.map(({ key }) => ({ key })) })
    const command = await dialog.locator("pre").textContent()
    for (const key of [...keys, ...witnesses.map(({ key }) => key)]) expect(command).toContain(`--key '${key}'`)
    expect(command).toContain("--witnesses 2 ")
    const asked = page.waitForResponse(/\/receipt$/)
    await again.press("Enter")
    await asked
    await inLog(dialog).waitFor()
    await leave(tab)
  })

  it("is waited for while the log is behind", async () => {
    let isBehind = true
    const { allowed, dialog, tab, verify } = await open((page) =>
      page.route(theirReceipt, (route) =>
        isBehind
          ? route.fulfill({ status: 404, json: { error: "the entry is not in the log yet", code: "not_in_log" } })
          : route.fallback()
      )
    )
    allowed.push(/status of 404/)
    await verify()
    await dialog.getByText("The log has not reached this entry yet.").waitFor()
    expect(await tab.axe()).toEqual([])
    isBehind = false
    await inLog(dialog).waitFor()
    await leave(tab)
  })

  it.each([
    [
      "an amount that was changed",
      async (receipt: Receipt) => ({ ...receipt, leaf: receipt.leaf.replace(/^amount \d+$/m, "amount 1") }),
      "The entry is not in the log: the proof leads to another root."
    ],
    [
      "another call's receipt",
      () => receiptOf(usage[1]!.id),
      /^The receipt states another (amount|reference) than this page\.$/
    ],
    [
      "a checkpoint without a signature of the log",
      async (receipt: Receipt) => ({
        ...receipt,
        checkpoint: receipt.checkpoint.replace(/^— \S+/m, "— other.example")
      }),
      "The checkpoint is not signed by a key of its log that you trust."
    ]
  ] as const)("with %s is not valid", async (_, change, why) => {
    const { dialog, tab, verify } = await open((page) =>
      page.route(theirReceipt, async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, json: await change(await response.json()) })
      })
    )
    await verify()
    const alert = dialog.getByRole("alert")
    await alert.getByText("The receipt is not valid").waitFor()
    await alert.getByText(why).waitFor()
    expect(await inLog(dialog).count()).toBe(0)
    expect(await tab.axe()).toEqual([])
    await leave(tab)
  })

  it("that cannot be loaded says so, and is loaded on request", async () => {
    let isDown = true
    const { allowed, dialog, tab, verify } = await open((page) =>
      page.route(theirReceipt, (route) =>
        isDown ? route.fulfill({ status: 503, json: { error: "unavailable" } }) : route.fallback()
      )
    )
    allowed.push(/status of 503/)
    await verify()
    await dialog.getByText("The receipt could not be loaded").waitFor()
    isDown = false
    await dialog.getByRole("button", { name: "Try again" }).click()
    await inLog(dialog).waitFor()
    await leave(tab)
  })

  it("of a call that another tenant paid for is refused with the reason", async () => {
    const { allowed, dialog, tab, verify } = await open((page) =>
      page.route(theirReceipt, (route) =>
        route.fulfill({ status: 403, json: { error: "another tenant paid", code: "paid_by_another_tenant" } })
      )
    )
    allowed.push(/status of 403/)
    await verify()
    await dialog.getByText("There is no receipt").waitFor()
    await dialog.getByText(/^Another tenant paid for this call\./).waitFor()
    await leave(tab)
  })
})

/** A verifier key (C2SP signed-note) of this type, with the private key. */
const keyOf = (
  name: string,
  type: number
): { readonly verifier: string; readonly id: Buffer; readonly secret: KeyObject } => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const typed = Buffer.concat([Buffer.of(type), Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url")])
  const id = createHash("sha256").update(`${name}\n`).update(typed).digest().subarray(0, 4)
  return { verifier: `${name}+${id.toString("hex")}+${typed.toString("base64")}`, id, secret: privateKey }
}

describe("a cosigned checkpoint", () => {
  it("names the witnesses whose signatures were checked, and those that were not", async () => {
    const witness = keyOf("witness.example", 4)
    const seconds = Date.parse("2026-11-26T14:02:03Z") / 1000
    const cosigned = (checkpoint: string): string => {
      const text = checkpoint.slice(0, checkpoint.indexOf("\n\n") + 1)
      const at = Buffer.alloc(8)
      at.writeBigUInt64BE(BigInt(seconds))
      const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`), witness.secret)
      const line = (name: string, bytes: Buffer) => `— ${name} ${bytes.toString("base64")}\n`
      return `${checkpoint}${line("witness.example", Buffer.concat([witness.id, at, signature]))}${line("other.example", Buffer.alloc(76))}`
    }
    const { dialog, tab, verify } = await open(async (page) => {
      await page.route(theirReceipt, async (route) => {
        const response = await route.fetch()
        const receipt = (await response.json()) as Receipt
        await route.fulfill({ response, json: { ...receipt, checkpoint: cosigned(receipt.checkpoint) } })
      })
      await answerKeys(page, ({ keys }) => ({ keys, witnesses: [{ name: "witness.example", key: witness.verifier }] }))
    })
    await verify()
    await inLog(dialog).waitFor()
    await dialog.getByText(/^Cosigned by witness\.example at 0?2:02:03 PM\.$/).waitFor()
    await dialog.getByText(/^Also signed by .*\bother\.example\./).waitFor()
    await leave(tab)
  })
})

describe("another key of a witness", () => {
  it("is warned of, proves no cosignature at first, and is trusted on request", async () => {
    const earlier = keyOf("w1.sandbox", 4).verifier
    const { keys } = (await desk.service.call("/v1/log/keys")).body as LogKeys
    const { dialog, page, tab, verify } = await open((page) =>
      store(page, { keys, witnesses: [{ key: earlier, since: "2026-01-02T00:00:00.000Z" }] })
    )
    const changed = dialog.getByText("The key of a witness has changed")
    const cosigned = dialog.getByText(/^Cosigned by w1\.sandbox at /)
    await verify()
    await inLog(dialog).waitFor()
    await changed.waitFor()
    await dialog.getByText(/^Cosigned by w2\.sandbox at /).waitFor()
    await dialog.getByText(/^Also signed by w1\.sandbox\./).waitFor()
    expect(await cosigned.count()).toBe(0)
    await isSound(tab)
    await dialog.getByRole("button", { name: "Trust the new key" }).click()
    await cosigned.waitFor()
    expect(await changed.count()).toBe(0)
    await page.reload()
    await verify()
    await cosigned.waitFor()
    expect(await changed.count()).toBe(0)
    await leave(tab)
  })
})

describe("another key of the log", () => {
  it("is warned of, proves nothing at first, and is trusted on request", async () => {
    const earlier = keyOf("a.log", 1).verifier
    const { dialog, page, tab, verify } = await open(async (page) => {
      await store(page, { keys: [earlier] })
      // The new key is no better if the service calls it a witness.
      await answerKeys(page, ({ keys }) => ({ keys, witnesses: keys.map((key) => ({ name: "w", key })) }))
    })
    await verify()
    await dialog.getByText("The log's key has changed").waitFor()
    await dialog.getByText(/trusted the earlier key since Jan 2, 2026/).waitFor()
    await dialog.getByText("The receipt is not valid").waitFor()
    expect(await inLog(dialog).count()).toBe(0)
    await isSound(tab)
    await dialog.getByRole("button", { name: "Trust the new key" }).click()
    await inLog(dialog).waitFor()
    expect(await dialog.getByText("The log's key has changed").count()).toBe(0)
    await page.reload()
    await verify()
    await inLog(dialog).waitFor()
    expect(await dialog.getByText("The log's key has changed").count()).toBe(0)
    await leave(tab)
  })
})

describe("the receipt of a ledger entry", () => {
  it("is verified from its row, with the keyboard back at the row's button afterwards", async () => {
    const tab = await desk.signIn("ada@example.com", "credit")
    const { page } = tab
    const row = page.getByRole("region", { name: "Entries" }).getByRole("row", { name: /Purchase/ })
    const button = row.getByRole("button", { name: /^Verify the receipt of entry \d+$/ })
    await button.press("Enter")
    const dialog = page.getByRole("dialog", { name: /^Receipt of entry \d+$/ })
    await dialog.getByText("This entry is in the log.").waitFor()
    await isSound(tab)
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    await expect.poll(() => button.evaluate((element) => element === document.activeElement)).toBe(true)
    await leave(tab)
  })
})
