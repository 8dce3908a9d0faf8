/** Sends requests to a provider's endpoints, to exchange a code for tokens and to read resources with an access token. */
import { Effect, Redacted } from "effect"
import { requestTimeout } from "./Discovery.ts"
import { IdentityProviderUnavailable, IdentityRejected } from "./Problems.ts"
import { text } from "./Provider.ts"
import type { ProviderSettings, Redemption } from "./Provider.ts"

type Failure = IdentityRejected | IdentityProviderUnavailable

export interface ProviderTokens {
  readonly id_token: string
  readonly access_token: string
}

/**
 * Fetches JSON. A 4xx status other than 429 fails with `IdentityRejected`, and any other failure with `IdentityProviderUnavailable`. Redirects are
 * rejected, because they could leak the secret.
 */
const json = (url: string, request: RequestInit): Effect.Effect<unknown, Failure> =>
  Effect.flatMap(
    Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(url, {
          ...request,
          signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeout)]),
          redirect: "error"
        })
        const refused = response.status >= 400 && response.status < 500 && response.status !== 429
        if (refused) {
          await response.body?.cancel()
          return { refused }
        }
        if (!response.ok) throw new Error(`the provider returned ${response.status}`)
        return { refused, body: (await response.json()) as unknown }
      },
      catch: () => new IdentityProviderUnavailable()
    }),
    ({ body, refused }): Effect.Effect<unknown, Failure> => (refused ? new IdentityRejected() : Effect.succeed(body))
  )

const formEncoded = (value: string): string => new URLSearchParams({ v: value }).toString().slice(2)

/** Encodes credentials as RFC 6749, section 2.3.1, requires: form-encoded, then base64. */
const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString("base64")}`

/** Exchanges a code for tokens. `methods` lists the token endpoint's authentication methods, if its issuer publishes them. */
export const exchanged = (
  endpoint: string,
  { client_id = "", client_secret }: ProviderSettings,
  { code, redirect_uri, verifier }: Redemption,
  methods: unknown
): Effect.Effect<ProviderTokens, Failure> => {
  const secret = client_secret === undefined ? undefined : Redacted.value(client_secret)
  const inBody =
    secret === undefined ||
    (Array.isArray(methods) && !methods.includes("client_secret_basic") && methods.includes("client_secret_post"))
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code,
    redirect_uri,
    code_verifier: verifier,
    ...(inBody && { client_id, ...(secret !== undefined && { client_secret: secret }) })
  })
  const headers = {
    accept: "application/json",
    "content-type": "application/x-www-form-urlencoded",
    ...(!inBody && { authorization: basic(client_id, secret) })
  }
  return Effect.map(json(endpoint, { method: "POST", headers, body: form.toString() }), (body) => {
    const { access_token, id_token } = (body ?? {}) as Record<string, unknown>
    return { id_token: text(id_token), access_token: text(access_token) }
  })
}

export const readWith = (access_token: string, url: string, headers: Readonly<Record<string, string>> = {}) =>
  json(url, { headers: { accept: "application/json", ...headers, authorization: `Bearer ${access_token}` } })
