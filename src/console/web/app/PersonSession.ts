/** The session of a person: signed in by an identity provider. Each tab chooses its own tenant. */
import { addressOf } from "./Base.ts"
import { reached, refusalOf } from "./Refusal.ts"
import { Session } from "./Session.ts"
import type { Grant } from "./Session.ts"

export interface PersonGrant extends Grant {
  readonly account_id: string
  readonly tenant_id: string
  readonly session_expires_at: string
}

/** The tenant of this tab survives a reload. It is not a secret. */
const tenantOfTab = "console.tenant"

/** The code of a link that opens the console once. It is removed from the address bar and the history when first read. */
const codeOf = (): string | undefined => {
  const code = new URLSearchParams(location.hash.slice(1)).get("link") ?? undefined
  if (code !== undefined) history.replaceState(history.state, "", location.pathname + location.search)
  return code
}

const ask = (body: { readonly tenant_id?: string | undefined; readonly code?: string }): Promise<Response> =>
  reached(addressOf("session"), {
    method: "POST",
    credentials: "same-origin",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const renew = async (to: string | undefined): Promise<PersonGrant | undefined> => {
  const code = codeOf()
  // A link may belong to another person, who is not a member of this tab's tenant.
  const tenant = code === undefined ? (to ?? sessionStorage.getItem(tenantOfTab) ?? undefined) : undefined
  let response = await ask(code === undefined ? { tenant_id: tenant } : { code })
  if (response.status === 403 && tenant !== undefined && to === undefined) {
    // The person is no longer a member there: return to their home tenant.
    sessionStorage.removeItem(tenantOfTab)
    response = await ask({})
  }
  if (response.status === 204 || response.status === 401) return undefined
  if (!response.ok) throw await refusalOf(response)
  const { result } = (await response.json()) as { result: PersonGrant }
  sessionStorage.setItem(tenantOfTab, result.tenant_id)
  return result
}

const end = async (): Promise<void> => {
  const response = await reached(addressOf("session"), { method: "DELETE", credentials: "same-origin" })
  if (!response.ok && response.status !== 401) throw await refusalOf(response)
  sessionStorage.removeItem(tenantOfTab)
}

export const personSession = new Session<PersonGrant, string>({ name: "console", renew, end })
