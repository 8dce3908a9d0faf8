/**
 * An OpenID Connect provider where anybody may be anybody: it signs in whatever address it is told. Its tokens are real, so the
 * service verifies them as it would any other's. It stands behind both providers.
 */
import { Effect, Schema } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, jwtVerify, SignJWT } from "jose"
import type { JWK, JWTPayload } from "jose"
import { createHash } from "node:crypto"
import { toDate } from "../kernel/Moment.ts"
import * as Kept from "./Kept.ts"
import { json, reader } from "./Outside.ts"
import type { Answer, Make, Received, SandboxFailed } from "./Outside.ts"

/** For whom its tokens are made, unless it is told otherwise. */
export const audience = "sandbox-google"

const lifetimeSeconds = 3_600
// An elliptic key is made in no time, an RSA key in up to half a second of each first start.
const algorithm = "ES256"
const name = "sandbox-issuer.json"

const TokenRequest = Schema.Struct({
  email: Schema.String.pipe(Schema.pattern(/^[^\s@]+@[^\s@]+$/, { message: () => "an email address" })),
  name: Schema.optional(Schema.NullOr(Schema.String)),
  email_verified: Schema.optional(Schema.NullOr(Schema.Boolean)),
  /** Another one, to see its tokens refused. */
  audience: Schema.optional(Schema.NullOr(Schema.String))
})

const readTokenRequest = reader(TokenRequest)

export const make: Make = ({ clock, data_dir, origin }) =>
  Effect.map(keyOf(data_dir), ({ key, public_jwk, public_key }) => {
    const issuer = `${origin}/issuer`
    const seconds = () => Math.floor(clock.now() / 1000)

    const sign = (typ: string, claims: JWTPayload): Promise<string> =>
      new SignJWT(claims).setProtectedHeader({ alg: algorithm, typ, kid: public_jwk.kid }).sign(key)

    const token = async ({ body }: Received) => {
      const asked = readTokenRequest(body)
      const aud = asked.audience ?? audience
      const iat = seconds()
      const person = {
        iss: issuer,
        sub: subjectOf(asked.email),
        aud,
        iat,
        exp: iat + lifetimeSeconds,
        email: asked.email,
        email_verified: asked.email_verified ?? true,
        name: asked.name ?? asked.email.slice(0, asked.email.indexOf("@"))
      }
      const access_token = await sign("at+jwt", { ...person, scope: "openid email profile" })
      // The left half of its hash binds the one token to the other.
      const at_hash = createHash("sha256").update(access_token).digest().subarray(0, 16).toString("base64url")
      const id_token = await sign("JWT", { ...person, azp: aud, at_hash })
      return json(200, { id_token, access_token, token_type: "Bearer", expires_in: lifetimeSeconds })
    }

    const userinfo = async ({ headers: { authorization = "" } }: Received) => {
      const verified = await jwtVerify(authorization.replace(/^bearer +/i, ""), public_key, {
        issuer,
        typ: "at+jwt",
        currentDate: toDate(clock.now())
      }).catch(() => undefined)
      if (verified === undefined) {
        return json(401, { error: "invalid_token" }, { "www-authenticate": `Bearer error="invalid_token"` })
      }
      const { email, email_verified, name, sub } = verified.payload
      return json(200, { sub, email, email_verified, name })
    }

    /** A page on which one says who one is, for whoever comes with a browser. */
    const authorize = ({ query }: Received) => {
      if (query.get("response_type") !== "id_token" || query.get("response_mode") !== "form_post") {
        return page(400, "<p>Only response_type=id_token with response_mode=form_post is known here.</p>")
      }
      const hint = query.get("login_hint")
      if (hint !== null) return signedIn(hint, query)
      return page(
        200,
        `<h1>Sandbox sign-in</h1><p>Be whoever you like.</p><form method="post" action="${issuer}/authorize">${hidden(query)}
<label>Email <input name="email" value="demo@example.com"></label> <button>Continue</button></form>`
      )
    }

    const authorized = async ({ body }: Received) => {
      const form = new URLSearchParams(body.toString())
      return signedIn(form.get("email") ?? "", form)
    }

    /** Back to whoever asked, as the person of this address, or of this name. */
    const signedIn = async (who: string, asked: URLSearchParams) => {
      const { email, name } = personOf(who)
      const iat = seconds()
      const id_token = await sign("JWT", {
        iss: issuer,
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
      // Where nobody needs to choose, the form goes on by itself, as those of other providers do.
      const script = asked.has("login_hint") ? "<script>document.forms[0].submit()</script>" : ""
      return page(
        200,
        `<p>Signed in as ${escape(email)}.</p><form method="post" action="${escape(asked.get("redirect_uri") ?? "")}">${hidden(answer)}
<button>Go on</button></form>${script}`
      )
    }

    const document = json(200, {
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
    const keys = json(200, { keys: [public_jwk] })
    const provider = { issuer, audiences: [audience] }

    return {
      service: "identity",
      routes: [
        { method: "GET", path: "/issuer/.well-known/openid-configuration", answer: () => document },
        { method: "GET", path: "/issuer/jwks", answer: () => keys },
        { method: "GET", path: "/issuer/userinfo", answer: userinfo }
      ],
      levers: [
        {
          method: "POST",
          path: "/issuer/token",
          does: "Signs anybody in: answers the id_token that POST /v1/auth/google takes",
          body: { email: "ada@example.com", name: "Ada", email_verified: true },
          answer: token
        },
        {
          method: "GET",
          path: "/issuer/authorize",
          does: "The provider's page for a person in a browser, of the sign-in with OpenID Connect",
          query: {
            client_id: "{client_id}",
            redirect_uri: "{redirect_uri}",
            response_type: "code",
            scope: "openid email"
          },
          answer: authorize
        },
        { method: "POST", path: "/issuer/authorize", does: "The form of that page", answer: authorized }
      ],
      configuration: { identity: { google: provider, microsoft: provider } }
    }
  })

const escape = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

const hidden = (fields: URLSearchParams): string =>
  [...fields].map(([name, value]) => `<input type="hidden" name="${escape(name)}" value="${escape(value)}">`).join("")

const page = (status: number, body: string): Answer => ({
  status,
  headers: { "content-type": "text/html; charset=utf-8" },
  body: `<!doctype html><meta charset="utf-8"><title>Sandbox sign-in</title>${body}`
})

/** Whoever is named without an address has one of that name. */
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

/** The same person each time, however the address is written. */
const subjectOf = (email: string): string => createHash("sha256").update(email.toLowerCase()).digest("hex").slice(0, 32)

/** The signing key: as it was kept, so that what an earlier run published stays true, or a new one. */
const keyOf = (data_dir: string | undefined) =>
  Effect.tryPromise({
    try: async () => {
      const kept = Kept.read(data_dir, name)
      const jwk = kept === undefined ? await fresh() : (JSON.parse(kept) as JWK)
      const key = await importJWK(jwk, algorithm)
      if (key instanceof Uint8Array || key.type !== "private") throw new Error("it holds no private key")
      if (kept === undefined) Kept.write(data_dir, name, JSON.stringify(jwk))
      const { crv, kty, x, y } = jwk
      const kid = await calculateJwkThumbprint(jwk)
      const public_jwk = { kty, crv, x, y, kid, alg: algorithm, use: "sig" } as JWK & { readonly kid: string }
      return { key, public_jwk, public_key: await importJWK(public_jwk, algorithm) }
    },
    catch: (error): SandboxFailed => ({
      _tag: "SandboxFailed",
      message: `DATA_DIR: ${data_dir}/${name} is not usable: ${error instanceof Error ? error.message : error}`
    })
  })

const fresh = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
  return exportJWK(privateKey)
}
