/** The last step of console sign-in: a redirect to a console page with a session cookie, or to the sign-in page with a reason. */
import { ownCookie } from "../../http/transport/OwnCookie.ts"
import { pathTo } from "../../kernel/ServiceInfo.ts"
import type { ServiceFacts } from "../../kernel/ServiceInfo.ts"
import type { Held } from "./BrowserSessions.ts"

/** The reason for a failed sign-in, for the console's sign-in page. */
export type SignInFailure =
  | "expired"
  | "cancelled"
  | "rejected"
  | "provider_unavailable"
  | "other_browser"
  | "suspended"
  | "not_invited"
  | "too_many_requests"
  | "unavailable"

const pageMax = 2_000

/**
 * Returns the console page in `to`, relative to `/console/`, with its query. Returns the first page, an empty string, for the sign-in page and for
 * all other addresses.
 */
export const pageIn = (to: string | null): string => {
  const base = "http://console.invalid/console/"
  if (to === null || to.length > pageMax || !URL.canParse(to, base)) return ""
  const { origin, pathname, search } = new URL(to, base)
  if (origin !== new URL(base).origin || !pathname.startsWith("/console/")) return ""
  const page = pathname.slice("/console/".length)
  return /^sign-in(?:\/|$)/.test(page) ? "" : page + search
}

export const make = ({ public_url }: Pick<ServiceFacts, "public_url">) => {
  const root = `${pathTo("", public_url)}/console`
  const { attributes, name } = ownCookie("tollgate_console", "/console", public_url)
  const strict = `${attributes}; SameSite=Strict`

  return {
    cookieName: name,
    setCookie: ({ cookie, until }: Held, now: number) =>
      `${name}=${cookie}; Max-Age=${Math.ceil((until - now) / 1_000)}; ${strict}`,
    clearCookie: `${name}=; Max-Age=0; ${strict}`,
    pageAt: (page: string) => `${root}/${page}`,
    failedAt: (error: SignInFailure, page: string) =>
      `${root}/sign-in?${new URLSearchParams({ error, ...(page !== "" && { to: page }) })}`
  }
}

export type ConsoleReturn = ReturnType<typeof make>
