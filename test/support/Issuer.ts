/** An OpenID Connect issuer on its own port. It signs any claims, and tests can break it. */
import { Clock, Context, Effect, Layer } from "effect"
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import type { CryptoKey, JWK, JWTPayload } from "jose"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export const audience = "web-client"

interface SignAs {
  /** Signs with a different key under the published id. */
  readonly forged?: boolean
  readonly alg?: "ES256" | "HS256"
  /** Claims to omit from the token. */
  readonly without?: ReadonlyArray<string>
}

interface Contract {
  readonly url: string
  /** Signs an ID token for `audience` that is valid for an hour. `claims` adds or replaces claims. */
  readonly sign: (claims: JWTPayload, as?: SignAs) => Effect.Effect<string>
  /** Publishes a new key under a new id instead of the old key. */
  readonly rotate: Effect.Effect<void>
  /** Sets the response for the key set, and the status of the discovery document. */
  readonly answerKeysWith: (status: number, body?: string) => Effect.Effect<void>
  readonly close: Effect.Effect<void>
  /** The request count of each path. */
  readonly asked: Map<string, number>
}

export class Issuer extends Context.Tag("test/Issuer")<Issuer, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Issuer, make))
}

interface Key {
  readonly kid: string
  readonly key: CryptoKey
  readonly jwk: JWK
}

const makeKey = async (kid: string): Promise<Key> => {
  const { privateKey, publicKey } = await generateKeyPair("ES256")
  return { kid, key: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" } }
}

const make = Effect.gen(function* () {
  let number = 1
  let current = yield* Effect.promise(() => makeKey("key-1"))
  let broken: { readonly status: number; readonly body: string | undefined } | undefined
  const asked = new Map<string, number>()

  const server = createServer((request, response) => {
    const path = request.url ?? ""
    asked.set(path, (asked.get(path) ?? 0) + 1)
    if (path === "/.well-known/openid-configuration") {
      response.statusCode = broken?.status ?? 200
      response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/keys`, authorization_endpoint: `${url}/authorize` }))
    } else if (path === "/keys") {
      response.statusCode = broken?.status ?? 200
      response.end(broken?.body ?? JSON.stringify({ keys: [current.jwk] }))
    } else {
      response.statusCode = 404
      response.end("{}")
    }
  })
  const close = Effect.async<void>((resume) => {
    if (!server.listening) return resume(Effect.void)
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () => close
  )
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const sign: Contract["sign"] = (claims, { alg = "ES256", forged = false, without = [] } = {}) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.promise(async () => {
        const iat = Math.floor(now / 1000)
        const all: JWTPayload = { iss: url, aud: audience, sub: "person", iat, exp: iat + 3600, ...claims }
        for (const claim of without) delete all[claim]
        const key =
          alg === "HS256"
            ? // A known attack: the public key used as a shared secret.
              Buffer.from(JSON.stringify(current.jwk).padEnd(64))
            : forged
              ? (await makeKey("other")).key
              : current.key
        return new SignJWT(all).setProtectedHeader({ alg, kid: current.kid }).sign(key)
      })
    )

  const rotate = Effect.promise(async () => {
    current = await makeKey(`key-${++number}`)
  })

  const answerKeysWith = (status: number, body?: string) =>
    Effect.sync(() => {
      broken = { status, body }
    })

  return { url, sign, rotate, answerKeysWith, close, asked } satisfies Contract
})
