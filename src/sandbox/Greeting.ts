/**
 * Greets the person who starts a sandbox, with its addresses and a first call to paste. It creates a person, a tenant and a key over HTTP, as a
 * client would. It saves the key in the data folder, because the service stores only the key's hash.
 */
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface Greeted {
  readonly url: string
  readonly issuer: string
  readonly control: string
  readonly client_id: string
  readonly data_dir: string
}

const email = "demo@example.com"

interface Demo {
  readonly tenant_id: string
  readonly api_key: string
}

// oxlint-disable-next-line typescript/no-explicit-any -- our own responses; each use declares its shape
const ask = async (url: string, token: string | undefined, body: object | undefined): Promise<any> => {
  const response = await fetch(url, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      "content-type": "application/json",
      ...(token !== undefined && { authorization: `Bearer ${token}` })
    },
    ...(body !== undefined && { body: JSON.stringify(body) })
  })
  if (!response.ok) throw new Error(`${url} returned ${response.status}: ${await response.text()}`)
  return response.json()
}

/** Yields the text of the greeting. If the demo key cannot be created, the text contains only addresses. */
export const greet = (facts: Greeted): Effect.Effect<string> =>
  // Retry, because the tokens expire if a test moves the clock in the meantime.
  Effect.tryPromise(() => greetingOf(facts)).pipe(
    Effect.retry({ times: 3 }),
    Effect.catchAll(() => Effect.succeed(`\n  Tollgate sandbox at ${facts.url}, documents at ${facts.url}/docs\n`))
  )

const greetingOf = async ({ client_id, control, data_dir, issuer, url }: Greeted): Promise<string> => {
  const { id_token } = await ask(`${issuer}/token`, undefined, { email, name: "Demo" })
  const signedIn: { result: { token_response: { access_token: string } } } = await ask(
    `${url}/v1/auth/google`,
    undefined,
    {
      id_token,
      client_id
    }
  )
  const token = signedIn.result.token_response.access_token
  const { tenant_id, api_key } = await demoOf(url, token, join(data_dir, "demo.json"))
  const credits: { result: { balance: number } } = await ask(
    `${url}/v1/tenants/${tenant_id}/billing/credits`,
    token,
    undefined
  )
  return `
  Tollgate sandbox: the outside world is simulated, and every call is metered for real.

  base URL     ${url}
  console      ${url}/console
  documents    ${url}/docs
  levers       ${control}
  tenant       ${tenant_id} (${credits.result.balance} credits)
  user token   ${token}
  API key      ${api_key}

  A first call:

  curl ${url}/v1/chat/completions -H "Authorization: Bearer ${api_key}" -H "Content-Type: application/json" -d '{"model":"auto","messages":[{"role":"user","content":"Hello, Tollgate"}]}'

  And its cost:

  curl ${url}/v1/usage -H "Authorization: Bearer ${api_key}"
`
}

/** Returns the demo tenant and its key. Creates a key if none is saved or the saved one no longer works. */
const demoOf = async (url: string, token: string, path: string): Promise<Demo> => {
  const me: { result: { account: { tenant_id: string } } } = await ask(`${url}/v1/me`, token, undefined)
  const { tenant_id } = me.result.account
  const kept = keptDemo(path)
  if (kept?.tenant_id === tenant_id && (await works(url, kept))) return kept
  const made: { result: { api_key: string } } = await ask(`${url}/v1/tenants/${tenant_id}/applications`, token, {
    name: "demo",
    description: "created at the sandbox's first start"
  })
  const demo = { tenant_id, api_key: made.result.api_key }
  writeFileSync(path, JSON.stringify(demo), { mode: 0o600 })
  return demo
}

const keptDemo = (path: string): Demo | undefined => {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Demo
  } catch {
    return undefined
  }
}

/** Returns whether the key still works. Users can delete it, and a new deployment secret invalidates all keys. */
const works = async (url: string, { api_key }: Demo): Promise<boolean> => {
  const { ok } = await fetch(`${url}/v1/usage`, { headers: { authorization: `Bearer ${api_key}` } })
  return ok
}
