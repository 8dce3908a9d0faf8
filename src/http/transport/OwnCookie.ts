/**
 * The name and attributes of a cookie that is a credential or binds a credential to its browser. If the service is at the root of its host and uses
 * https, the name begins with `__Host-`. This prefix keeps a server on a sibling subdomain from setting the cookie. The prefix requires the path `/`,
 * so a service at a subpath does not use it.
 */
import { pathTo } from "../../kernel/ServiceInfo.ts"

export interface OwnCookie {
  readonly name: string
  /** `Path`, `HttpOnly`, and `Secure` over https. */
  readonly attributes: string
}

/**
 * Returns the cookie's name and attributes. `below` is the cookie's path relative to the service's root. It applies if the name does not begin with
 * `__Host-`.
 */
export const ownCookie = (name: string, below: `/${string}`, public_url: string): OwnCookie => {
  const root = pathTo("", public_url)
  const secure = public_url.startsWith("https:")
  const prefixed = secure && root === ""
  return {
    name: prefixed ? `__Host-${name}` : name,
    attributes: `Path=${prefixed ? "/" : `${root}${below}`}; HttpOnly${secure ? "; Secure" : ""}`
  }
}
