/** The console in tests, without a real browser: requests with cookies, and with headers that state their origin. */
import { Browser, fieldsOf, text } from "./OAuth.ts"
import type { Answer, Service } from "./Service.ts"

/** The headers of a request from the console's own page. */
export const ownPage = { "sec-fetch-site": "same-origin" }

export const cookieOf = (browser: Browser): Record<string, string> => ({
  cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ")
})

/** Posts the provider's self-submitting form to the service and follows the redirect. */
export const goOn = (browser: Browser, html: string, change: Record<string, string> = {}) =>
  browser.open(text(/action="([^"]+)"/.exec(html)![1]!), { ...fieldsOf(html), ...change })

/** Signs this user in and stops at the redirect to the console's page. */
export const signIn = async (service: Service, who: string, to = "", browser = new Browser(service)) => {
  const query = new URLSearchParams({ to, login_hint: who })
  const begun = await service.call(`/console/sign-in/google?${query}`, {
    headers: { ...ownPage, ...cookieOf(browser) }
  })
  keep(browser, begun)
  const provider = await browser.open(begun.headers.get("location")!)
  const back = await goOn(browser, provider.html)
  const arrived = await browser.open(back.location!)
  return { browser, back: back.location!, arrived }
}

const keep = (browser: Browser, { headers }: Answer): void => {
  for (const one of headers.getSetCookie()) {
    const [name = "", value = ""] = one.split(";", 1)[0]!.split("=", 2)
    browser.cookies.set(name, value)
  }
}

/** `POST /console/session`. */
export const session = async (
  service: Service,
  browser: Browser,
  json: object = {},
  headers: Record<string, string> = ownPage
): Promise<Answer> => {
  const answer = await service.call("/console/session", { json, headers: { ...headers, ...cookieOf(browser) } })
  keep(browser, answer)
  return answer
}

export const signOut = (service: Service, browser: Browser, headers: Record<string, string> = ownPage) =>
  service.call("/console/session", { method: "DELETE", headers: { ...headers, ...cookieOf(browser) } })
