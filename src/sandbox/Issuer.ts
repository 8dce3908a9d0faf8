/**
 * An OpenID Connect issuer that vouches for anybody: `POST {issuer}/token` with an address answers a signed token for it. Both
 * identity providers of a sandbox are this one.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose"
import type { JWK } from "jose"
import { json } from "./Outside.ts"
import type { Service } from "./Outside.ts"

export const audience = "sandbox-google"
const kid = "sandbox"
const algorithm = "ES256"

/** The service, for an issuer at `address()`. */
export const make = async (data_dir: string, now: () => number, address: () => string): Promise<Service> => {
  const jwk = await keptKey(join(data_dir, "sandbox-issuer.json"))
  const key = await importJWK(jwk, algorithm)
  const { d: _, ...published } = jwk

  return async ({ body, method, path, response }) => {
    const issuer = address()
    if (method === "GET" && path.endsWith("/.well-known/openid-configuration")) {
      return json(response, 200, {
        issuer,
        jwks_uri: `${issuer}/jwks`,
        token_endpoint: `${issuer}/token`,
        id_token_signing_alg_values_supported: [algorithm],
        subject_types_supported: ["public"],
        response_types_supported: ["id_token"]
      })
    }
    if (method === "GET" && path.endsWith("/jwks")) {
      return json(response, 200, { keys: [{ ...published, kid, alg: algorithm, use: "sig" }] })
    }
    if (method !== "POST" || !path.endsWith("/token")) return json(response, 404, { error: "no such path" })

    const asked = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>
    if (typeof asked.email !== "string" || !asked.email.includes("@")) {
      return json(response, 400, { error: "email: an address" })
    }
    const seconds = Math.floor(now() / 1000)
    const id_token = await new SignJWT({
      email: asked.email,
      email_verified: asked.email_verified !== false,
      name: typeof asked.name === "string" ? asked.name : asked.email.split("@", 1)[0]!
    })
      .setProtectedHeader({ alg: algorithm, kid })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject(createHash("sha256").update(asked.email.toLowerCase()).digest("hex").slice(0, 24))
      .setIssuedAt(seconds)
      .setExpirationTime(seconds + 3_600)
      .sign(key)
    return json(response, 200, { id_token })
  }
}

/** The issuer's key is kept with the data, so that its tokens outlive a restart. */
const keptKey = async (path: string): Promise<JWK> => {
  if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")) as JWK
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
  const jwk = await exportJWK(privateKey)
  mkdirSync(join(path, ".."), { recursive: true })
  writeFileSync(path, JSON.stringify(jwk), { mode: 0o600 })
  return jwk
}
