/** Signing in by a letter: once, in the browser that requested it, for 15 minutes, with one answer for every address. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { Browser, fieldsOf } from "../../support/OAuth.ts"
import { start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service?.discard())

const lettersTo = async (email: string): Promise<ReadonlyArray<string>> => {
  const letters = (await service.control("/mail")) as ReadonlyArray<{ to: string; text: string }>
  return letters.filter(({ to }) => to === email).map(({ text }) => text)
}

const letter = (email: string, number = 1): Promise<string> =>
  vi.waitFor(
    async () => {
      const found = await lettersTo(email)
      expect(found.length).toBe(number)
      return /http\S+\/oauth\/link\?token=\S+/.exec(found.at(-1)!)![0]
    },
    { timeout: 10_000 }
  )

const request = async (browser: Browser, email: string, path = "/console/sign-in/email?to=usage") => {
  const form = await browser.follow(service.url + path)
  expect(form.status).toBe(200)
  return browser.open(`${service.url}/oauth/link`, { ...fieldsOf(form.html), email })
}

describe("a link by letter", () => {
  it("signs in to the console, once", async () => {
    const browser = new Browser(service)
    expect((await request(browser, " Ada@Letters.example ")).status).toBe(200)
    const link = await letter("ada@letters.example")
    expect((await browser.open(link)).location).toBe(`${service.url}/console/usage`)
    expect(browser.cookies.has("tollgate_console")).toBe(true)
    const again = await browser.open(link)
    expect([again.status, again.html.includes("Request another")]).toEqual([400, true])
  })

  it("works only in the browser that requested it, which it does not spend", async () => {
    const browser = new Browser(service)
    await request(browser, "grace@letters.example")
    const link = await letter("grace@letters.example")
    const other = new Browser(service)
    await request(other, "eve@letters.example")
    const elsewhere = await other.open(link)
    expect([elsewhere.status, other.cookies.has("tollgate_console")]).toEqual([400, false])
    expect((await new Browser(service).open(link)).status).toBe(400)
    expect((await browser.open(link)).status).toBe(303)
  })

  it("ends after 15 minutes", async () => {
    const browser = new Browser(service)
    await request(browser, "late@letters.example")
    const link = await letter("late@letters.example")
    await service.control("/clock", { advance_ms: 15 * 60_000 })
    expect((await browser.open(link)).status).toBe(400)
  })

  it("is requested by our own form only", async () => {
    const browser = new Browser(service)
    const { html } = await browser.follow(`${service.url}/oauth/link?room=console`)
    const form = { ...fieldsOf(html), email: "forged@letters.example" }
    expect((await new Browser(service).open(`${service.url}/oauth/link`, form)).status).not.toBe(200)
    expect((await browser.open(`${service.url}/oauth/link`, { ...form, state: "x" })).status).toBe(400)
    expect((await browser.open(`${service.url}/oauth/link`, { ...form, email: "no address" })).status).toBe(400)
    expect(await lettersTo("forged@letters.example")).toEqual([])
  })

  it("is bounded for each address: five an hour", async () => {
    const browser = new Browser(service)
    for (let i = 0; i < 5; i++) expect((await request(browser, "many@letters.example")).status).toBe(200)
    expect((await request(browser, "many@letters.example")).status).toBe(429)
    expect((await request(browser, "few@letters.example")).status).toBe(200)
    await letter("many@letters.example", 5)
    await service.control("/clock", { advance_ms: 60 * 60_000 })
    expect((await request(browser, "many@letters.example")).status).toBe(200)
  })

  it("leads back to an application's question, and to no other page", async () => {
    const browser = new Browser(service)
    const page = "/oauth/link?page=" + encodeURIComponent("device?user_code=ABCD")
    await request(browser, "device@letters.example", page)
    expect((await browser.open(await letter("device@letters.example"))).location).toBe(
      `${service.url}/oauth/device?user_code=ABCD`
    )
    await request(browser, "device@letters.example", "/oauth/link?page=//evil.example")
    expect((await browser.open(await letter("device@letters.example", 2))).location).toBe(`${service.url}/oauth/device`)
  })
})
