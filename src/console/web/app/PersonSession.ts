/** The user's session. Each tab chooses its own tenant. */
import { consoleUrl } from "./Base.ts"
import { fetchResponse, refusalOf } from "./Refusal.ts"
import { Session } from "./Session.ts"
import type { Grant } from "./Session.ts"

export interface PersonGrant extends Grant {
  readonly account_id: string
  readonly tenant_id: string
  readonly session_expires_at: string
}

/** The storage key for this tab's tenant, so that the choice survives a reload. The tenant's id is not secret. */
const tenantStorageKey = "console.tenant"

/** Returns a single-use console link's code, if any, and removes it from the address bar and the history. */
const takeLinkCode = (): string | undefined => {
  const code = new URLSearchParams(location.hash.slice(1)).get("link") ?? undefined
  if (code !== undefined) history.replaceState(history.state, "", location.pathname + location.search)
  return code
}

const requestToken = (body: { readonly tenant_id?: string | undefined; readonly code?: string }): Promise<Response> =>
  fetchResponse(consoleUrl("session"), {
    method: "POST",
    credentials: "same-origin",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const renew = async (to: string | undefined): Promise<PersonGrant | undefined> => {
  const code = takeLinkCode()
  // The link may be for a different user. That user might not belong to this tab's tenant.
  const tenant = code === undefined ? (to ?? sessionStorage.getItem(tenantStorageKey) ?? undefined) : undefined
  let response = await requestToken(code === undefined ? { tenant_id: tenant } : { code })
  if (response.status === 403 && tenant !== undefined && to === undefined) {
    // The user no longer belongs to that tenant, so return to the home tenant.
    sessionStorage.removeItem(tenantStorageKey)
    response = await requestToken({})
  }
  if (response.status === 204 || response.status === 401) return undefined
  if (!response.ok) throw await refusalOf(response)
  const { result } = (await response.json()) as { result: PersonGrant }
  sessionStorage.setItem(tenantStorageKey, result.tenant_id)
  return result
}

const end = async (): Promise<void> => {
  const response = await fetchResponse(consoleUrl("session"), { method: "DELETE", credentials: "same-origin" })
  if (!response.ok && response.status !== 401) throw await refusalOf(response)
  sessionStorage.removeItem(tenantStorageKey)
}

export const personSession = new Session<PersonGrant, string>({ name: "console", renew, end })
