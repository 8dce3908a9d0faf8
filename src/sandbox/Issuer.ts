/**
 * An OpenID Connect provider that signs in any address without a password. Its tokens are real, and the service verifies them in the usual way. The
 * sandbox configures it as both of its identity providers.
 */
import { Effect, Schema } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, jwtVerify, SignJWT } from "jose"
import type { JWK, JWTPayload } from "jose"
import { createHash } from "node:crypto"
import { toDate } from "../kernel/Moment.ts"
import * as FileStore from "./FileStore.ts"
import { json, reader } from "./Outside.ts"
import type { Answer, Make, Received, SandboxFailed } from "./Outside.ts"

/** The default audience of its tokens. */
export const audience = "sandbox-google"

const lifetimeSeconds = 3_600
// An RSA key would add up to half a second to the first start. An elliptic key adds almost nothing.
const algorithm = "ES256"
const name = "sandbox-issuer.json"

const TokenRequest = Schema.Struct({
  email: Schema.String.pipe(Schema.pattern(/^[^\s@]+@[^\s@]+$/, { message: () => "must be an email address" })),
  name: Schema.optional(Schema.NullOr(Schema.String)),
  email_verified: Schema.optional(Schema.NullOr(Schema.Boolean)),
  /** A different audience, to test that the service rejects the token. */
  audience: Schema.optional(Schema.NullOr(Schema.String))
})

const readTokenRequest = reader(TokenRequest)

interface Issuer {
  readonly issuer: string
  readonly key: CryptoKey
  readonly public_key: CryptoKey | Uint8Array
  readonly kid: string
  readonly now: () => number
}

export const make: Make = ({ clock, data_dir, origin }) =>
  Effect.map(keyOf(data_dir), ({ key, public_jwk, public_key }) => {
    const issuer = `${origin}/issuer`
    const own: Issuer = { issuer, key, public_key, kid: public_jwk.kid, now: clock.now }
    const document = json(200, discovery(issuer))
    const keys = json(200, { keys: [public_jwk] })
    const provider = { issuer, audiences: [audience] }
    return {
      routes: [
        { method: "GET", path: "/issuer/.well-known/openid-configuration", answer: () => document },
        { method: "GET", path: "/issuer/jwks", answer: () => keys },
        { method: "GET", path: "/issuer/userinfo", answer: (received) => userinfo(own, received) }
      ],
      levers: [
        {
          method: "POST",
          path: "/issuer/token",
          does: "Signs anyone in and returns the id_token that POST /v1/auth/google accepts",
          body: { email: "ada@example.com", name: "Ada", email_verified: true },
          answer: (received) => token(own, received)
        },
        {
          method: "GET",
          path: "/issuer/authorize",
          does: "Shows the provider's page where a person signs in with a browser",
          query: {
            client_id: "{client_id}",
            redirect_uri: "{redirect_uri}",
            response_type: "code",
            scope: "openid email"
          },
          answer: (received) => authorize(own, received)
        },
        {
          method: "POST",
          path: "/issuer/authorize",
          does: "Receives the form of that page",
          answer: ({ body }) => {
            const form = new URLSearchParams(body.toString())
            return signedIn(own, form.get("email") ?? "", form)
          }
        }
      ],
      configuration: { identity: { google: provider, microsoft: provider } }
    }
  })

const discovery = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  userinfo_endpoint: `${issuer}/userinfo`,
  jwks_uri: `${issuer}/jwks`,
  response_types_supported: ["code", "id_token"],
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: [algorithm],
  scopes_supported: ["openid", "email", "profile"],
  claims_supported: ["iss", "sub", "aud", "iat", "exp", "email", "email_verified", "name"]
})

const secondsOf = ({ now }: Issuer): number => Math.floor(now() / 1000)

const sign = ({ key, kid }: Issuer, typ: string, claims: JWTPayload): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg: algorithm, typ, kid }).sign(key)

const token = async (own: Issuer, { body }: Received): Promise<Answer> => {
  const tokenRequest = readTokenRequest(body)
  const aud = tokenRequest.audience ?? audience
  const iat = secondsOf(own)
  const person = {
    iss: own.issuer,
    sub: subjectOf(tokenRequest.email),
    aud,
    iat,
    exp: iat + lifetimeSeconds,
    email: tokenRequest.email,
    email_verified: tokenRequest.email_verified ?? true,
    name: tokenRequest.name ?? tokenRequest.email.slice(0, tokenRequest.email.indexOf("@"))
  }
  const access_token = await sign(own, "at+jwt", { ...person, scope: "openid email profile" })
  // The left half of the access token's hash ties the ID token to it.
  const at_hash = createHash("sha256").update(access_token).digest().subarray(0, 16).toString("base64url")
  const id_token = await sign(own, "JWT", { ...person, azp: aud, at_hash })
  return json(200, { id_token, access_token, token_type: "Bearer", expires_in: lifetimeSeconds })
}

const userinfo = async (
  { issuer, now, public_key }: Issuer,
  { headers: { authorization = "" } }: Received
): Promise<Answer> => {
  const verified = await jwtVerify(authorization.replace(/^bearer +/i, ""), public_key, {
    issuer,
    typ: "at+jwt",
    currentDate: toDate(now())
  }).catch(() => undefined)
  if (verified === undefined) {
    return json(401, { error: "invalid_token" }, { "www-authenticate": `Bearer error="invalid_token"` })
  }
  const { email, email_verified, name, sub } = verified.payload
  return json(200, { sub, email, email_verified, name })
}

/** Shows the sign-in page. A `login_hint` signs in the person with that address immediately. */
const authorize = (own: Issuer, { query }: Received): Answer | Promise<Answer> => {
  if (query.get("response_type") !== "id_token" || query.get("response_mode") !== "form_post") {
    return page(400, "<p>This page supports only response_type=id_token with response_mode=form_post.</p>")
  }
  const hint = query.get("login_hint")
  if (hint !== null) return signedIn(own, hint, query)
  return page(
    200,
    `<h1>Sandbox sign-in</h1><p>Sign in as anyone.</p><form method="post" action="${own.issuer}/authorize">${hidden(query)}
<label>Email <input name="email" value="demo@example.com"></label> <button>Continue</button></form>`
  )
}

/** Sends the browser back to the client, signed in as the person with this address or name. */
const signedIn = async (own: Issuer, who: string, asked: URLSearchParams): Promise<Answer> => {
  const { email, name } = personOf(who)
  const iat = secondsOf(own)
  const id_token = await sign(own, "JWT", {
    iss: own.issuer,
    sub: subjectOf(email),
    aud: asked.get("client_id") ?? audience,
    iat,
    exp: iat + lifetimeSeconds,
    email,
    email_verified: true,
    name,
    nonce: asked.get("nonce") ?? undefined
  } as JWTPayload)
  const answer = new URLSearchParams({ id_token, state: asked.get("state") ?? "" })
  // With a hint, the form submits itself, as other providers' forms do.
  const script = asked.has("login_hint") ? "<script>document.forms[0].submit()</script>" : ""
  return page(
    200,
    `<p>Signed in as ${escape(email)}.</p><form method="post" action="${escape(asked.get("redirect_uri") ?? "")}">${hidden(answer)}
<button>Continue</button></form>${script}`
  )
}

const escape = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

const hidden = (fields: URLSearchParams): string =>
  [...fields].map(([name, value]) => `<input type="hidden" name="${escape(name)}" value="${escape(value)}">`).join("")

const page = (status: number, body: string): Answer => ({
  status,
  headers: { "content-type": "text/html; charset=utf-8" },
  body: `<!doctype html><meta charset="utf-8"><title>Sandbox sign-in</title>${body}`
})

/** Converts the typed text to a person. A name without an address gets an address at example.com. */
const personOf = (who: string): { readonly email: string; readonly name: string } => {
  const at = who.indexOf("@")
  if (at !== -1) return { email: who, name: who.slice(0, at) }
  const local = who
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, ".")
    .replaceAll(/^\.|\.$/g, "")
  return { email: `${local === "" ? "somebody" : local}@example.com`, name: who.trim() }
}

/** Returns the subject of an address, ignoring case. */
const subjectOf = (email: string): string => createHash("sha256").update(email.toLowerCase()).digest("hex").slice(0, 32)

/** Reads the saved signing key or creates one. With a saved key, tokens from an earlier start remain valid. */
const keyOf = (data_dir: string | undefined) =>
  Effect.tryPromise({
    try: async () => {
      const savedKey = FileStore.read(data_dir, name)
      const jwk = savedKey === undefined ? await fresh() : (JSON.parse(savedKey) as JWK)
      const key = await importJWK(jwk, algorithm)
      if (key instanceof Uint8Array || key.type !== "private") throw new Error("it contains no private key")
      if (savedKey === undefined) FileStore.write(data_dir, name, JSON.stringify(jwk))
      const { crv, kty, x, y } = jwk
      const kid = await calculateJwkThumbprint(jwk)
      const public_jwk = { kty, crv, x, y, kid, alg: algorithm, use: "sig" } as JWK & { readonly kid: string }
      return { key, public_jwk, public_key: await importJWK(public_jwk, algorithm) }
    },
    catch: (error): SandboxFailed => ({
      _tag: "SandboxFailed",
      message: `DATA_DIR: ${data_dir}/${name} cannot be used: ${error instanceof Error ? error.message : error}`
    })
  })

const fresh = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
  return exportJWK(privateKey)
}
