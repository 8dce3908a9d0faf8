/**
 * The operator's session. It begins with a link that `tollgate operator` prints. The link's fragment (`#`), which browsers do not send, contains a
 * code.
 */
import { consoleUrl } from "../app/Base.ts"
import { clientWith } from "../app/Client.ts"
import { fetchResponse, refusalOf } from "../app/Refusal.ts"
import { Session } from "../app/Session.ts"
import type { Grant } from "../app/Session.ts"

export interface OperatorGrant extends Grant {
  readonly name: string
}

/** Returns the link's code, if any, and removes it from the address bar and the history. */
const takeLinkCode = (): string | undefined => {
  const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? undefined
  if (code !== undefined) history.replaceState(history.state, "", location.pathname + location.search)
  return code
}

const renew = async (): Promise<OperatorGrant | undefined> => {
  const code = takeLinkCode()
  const response = await fetchResponse(consoleUrl("operator/session"), {
    method: "POST",
    credentials: "same-origin",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(code === undefined ? {} : { code })
  })
  if (response.status === 204 || response.status === 401) return undefined
  if (!response.ok) throw await refusalOf(response)
  return (await response.json()) as OperatorGrant
}

const end = async (): Promise<void> => {
  const response = await fetchResponse(consoleUrl("operator/session"), { method: "DELETE", credentials: "same-origin" })
  if (!response.ok && response.status !== 401) throw await refusalOf(response)
}

export const operatorSession = new Session<OperatorGrant>({ name: "console.operator", renew, end })

export const operatorApi = clientWith(operatorSession)
