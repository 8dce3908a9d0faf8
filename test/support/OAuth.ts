/** The OAuth code flow in tests, with a browser that has no scripts. */
import { createHash, randomBytes } from "node:crypto"
import type { Answer, Person, Service } from "./Service.ts"

export const redirect_uri = "http://127.0.0.1:4711/callback"

export const verifierOf = () => randomBytes(32).toString("base64url")
export const challengeOf = (verifier: string) => createHash("sha256").update(verifier).digest("base64url")

/** The authorization request of the sandbox's application. */
export const request = (verifier: string, more: object = {}) => ({
  client_id: "sandbox-oauth",
  redirect_uri,
  response_type: "code",
  scope: "profile",
  state: "s-1",
  code_challenge: challengeOf(verifier),
  code_challenge_method: "S256",
  ...more
})

/** Gets the tokens of an application that requests this scope. The user consents. */
export const tokensFor = async (
  service: Service,
  who: Person,
  scope: string,
  more: { readonly client_id?: string; readonly nonce?: string } = {}
): Promise<Answer> => {
  const verifier = verifierOf()
  const asked = request(verifier, { scope, ...more })
  const consented = await service.call("/v1/auth/oauth/code", { token: who.token, json: asked })
  if (consented.status !== 200)
    throw new Error(`consent answered ${consented.status}: ${JSON.stringify(consented.body)}`)
  const { code } = consented.body.result
  return service.call("/v1/auth/oauth/token", {
    json: { grant_type: "authorization_code", code, redirect_uri, code_verifier: verifier, client_id: asked.client_id }
  })
}

/** A browser without scripts. It keeps cookies for each origin and sends forms, but does not follow redirects. */
export class Browser {
  /** The service's cookies. */
  readonly cookies = new Map<string, string>()
  readonly #elsewhere = new Map<string, Map<string, string>>()
  private readonly service: Service
  constructor(service: Service) {
    this.service = service
  }
  #jarOf(url: string): Map<string, string> {
    const { origin } = new URL(url)
    if (origin === this.service.url) return this.cookies
    const jar = this.#elsewhere.get(origin) ?? new Map<string, string>()
    this.#elsewhere.set(origin, jar)
    return jar
  }
  async open(url: string, form?: Record<string, string>) {
    const jar = this.#jarOf(url)
    const cookie = [...jar].map(([k, v]) => `${k}=${v}`).join("; ")
    const response = await fetch(url, {
      redirect: "manual",
      headers: { ...(cookie !== "" && { cookie }) },
      ...(form !== undefined && { method: "POST", body: new URLSearchParams(form) })
    })
    for (const one of response.headers.getSetCookie()) {
      const [pair = ""] = one.split(";")
      jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1))
    }
    const location = response.headers.get("location")
    const page = { status: response.status, headers: response.headers, html: await response.text() }
    return { ...page, location: location === null ? undefined : new URL(location, url).href }
  }
  async follow(
    url: string,
    form?: Record<string, string>
  ): Promise<Awaited<ReturnType<Browser["open"]>> & { url: string }> {
    const page = await this.open(url, form)
    return page.location !== undefined && page.location.startsWith(this.service.url)
      ? this.follow(page.location)
      : { ...page, url }
  }
}
export const text = (html: string) =>
  html.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
export const fieldsOf = (html: string) =>
  Object.fromEntries(
    [...html.matchAll(/name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name!, text(value!)])
  )

/** Opens an application's authorization URL, signs in as this user, and stops at the consent page. */
export const toTheQuestion = async (browser: Browser, page: string, email: string) => {
  const welcome = await browser.follow(page)
  const signIn = await browser.open(text(/href="([^"]+)">Continue with Google/.exec(welcome.html)![1]!))
  const posted = await browser.open(/action="([^"]+)"/.exec(signIn.html)![1]!, { ...fieldsOf(signIn.html), email })
  return browser.follow(text(/action="([^"]+)"/.exec(posted.html)![1]!), fieldsOf(posted.html))
}
