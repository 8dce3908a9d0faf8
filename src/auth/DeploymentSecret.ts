/**
 * The one secret of a deployment. Keys and tokens are stored only as its keyed hashes, private keys only sealed by it; a copy of
 * the database alone is worth nothing to a thief.
 */
import { Context, Effect, Layer } from "effect"
import { CompactEncrypt, compactDecrypt } from "jose"
import { createHmac, hkdfSync } from "node:crypto"

/** What a hash is for: a value hashed for one purpose matches no other. */
export const purposes = [
  "api_key",
  "refresh_token",
  "tenant_invite",
  "transfer_invite",
  "authorization_code",
  "client_token",
  "browser"
] as const
export type Purpose = (typeof purposes)[number]

interface Contract {
  /** HMAC-SHA256 as 64 hex digits. */
  readonly hash: (purpose: Purpose, value: string) => string
  readonly seal: (text: string) => Effect.Effect<string>
  /** Dies on what was sealed by another secret: the deployment's own has been lost or swapped. */
  readonly unseal: (sealed: string) => Effect.Effect<string>
}

export class DeploymentSecret extends Context.Tag("tollgate/auth/DeploymentSecret")<DeploymentSecret, Contract>() {}

/** From at least 32 bytes of randomness. */
export const layer = (secret: Uint8Array) => Layer.sync(DeploymentSecret, () => make(secret))

const make = (secret: Uint8Array): Contract => {
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", secret, "", `tollgate/${purpose}`, 32))
  const hashKeys = new Map(purposes.map((purpose) => [purpose, derive(purpose)]))
  const sealingKey = derive("seal")
  return {
    hash: (purpose, value) => createHmac("sha256", hashKeys.get(purpose)!).update(value).digest("hex"),
    seal: (text) =>
      Effect.promise(() =>
        new CompactEncrypt(Buffer.from(text)).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(sealingKey)
      ),
    unseal: (sealed) =>
      Effect.tryPromise(() => compactDecrypt(sealed, sealingKey)).pipe(
        Effect.map(({ plaintext }) => Buffer.from(plaintext).toString("utf8")),
        Effect.orElse(() => Effect.dieMessage("something was sealed by another secret: TOLLGATE_SECRET has changed"))
      )
  }
}
