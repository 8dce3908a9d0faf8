/**
 * The name and attributes of a cookie that is a credential, or binds one to its browser. Over https at the root of its host it has the prefix
 * `__Host-`, so that no server of a neighbouring subdomain can set one of this name. A browser wants the path `/` for that, so a service beneath
 * a path of another server goes without.
 */
import { pathTo } from "../../kernel/ServiceInfo.ts"

export interface OwnCookie {
  readonly name: string
  /** `Path`, `HttpOnly`, and `Secure` over https. */
  readonly attributes: string
}

/** `below` is the path, from the service's root, that the cookie is sent to where it has no prefix. */
export const ownCookie = (name: string, below: `/${string}`, public_url: string): OwnCookie => {
  const root = pathTo("", public_url)
  const secure = public_url.startsWith("https:")
  const prefixed = secure && root === ""
  return {
    name: prefixed ? `__Host-${name}` : name,
    attributes: `Path=${prefixed ? "/" : `${root}${below}`}; HttpOnly${secure ? "; Secure" : ""}`
  }
}
