/**
 * The one secret of a deployment. Keys and tokens are stored only as its keyed hashes, private keys only sealed by it; a copy of
 * the database alone gives away no key and no token.
 */
import { Context, Effect, Layer } from "effect"
import { CompactEncrypt, compactDecrypt } from "jose"
import { createHmac, hkdfSync } from "node:crypto"

/** The purpose of a hash: a value hashed for one purpose matches no other. */
export const purposes = [
  "api_key",
  "run_key",
  "refresh_token",
  "tenant_invite",
  "transfer_invite",
  "authorization_code",
  "sign_in",
  "device_code",
  "user_code",
  "client_token",
  "browser",
  "operator_code",
  "operator_cookie",
  "operator_token",
  "management_key",
  "console_link"
] as const
export type Purpose = (typeof purposes)[number]

/** Everything that the secret protects: what is hashed for each purpose, and what is stored sealed. */
export type Protected = Purpose | "signing_key" | "letter"

export interface DeploymentSecretContract {
  /** HMAC-SHA256 as 64 hex digits. */
  readonly hash: (purpose: Purpose, value: string) => string
  readonly seal: (text: string) => Effect.Effect<string>
  /** Dies on what was sealed by another secret: the deployment's own has been lost or swapped. */
  readonly unseal: (sealed: string) => Effect.Effect<string>
}

export class DeploymentSecret extends Context.Tag("tollgate/auth/DeploymentSecret")<
  DeploymentSecret,
  DeploymentSecretContract
>() {}

/** From at least 32 bytes of randomness. */
export const layer = (secret: Uint8Array) => Layer.sync(DeploymentSecret, () => make(secret))

const derived = (secret: Uint8Array, purpose: string) =>
  Buffer.from(hkdfSync("sha256", secret, "", `tollgate/${purpose}`, 32))

const decrypted = (key: Uint8Array, sealed: string) => Effect.tryPromise(() => compactDecrypt(sealed, key))

/** Whether the text was sealed by this secret. */
export const opens = (secret: Uint8Array, sealed: string): Effect.Effect<boolean> =>
  Effect.isSuccess(decrypted(derived(secret, "seal"), sealed))

const make = (secret: Uint8Array): DeploymentSecretContract => {
  const hashKeys = new Map(purposes.map((purpose) => [purpose, derived(secret, purpose)]))
  const sealingKey = derived(secret, "seal")
  return {
    hash: (purpose, value) => createHmac("sha256", hashKeys.get(purpose)!).update(value).digest("hex"),
    seal: (text) =>
      Effect.promise(() =>
        new CompactEncrypt(Buffer.from(text)).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(sealingKey)
      ),
    unseal: (sealed) =>
      decrypted(sealingKey, sealed).pipe(
        Effect.map(({ plaintext }) => Buffer.from(plaintext).toString("utf8")),
        Effect.orElse(() => Effect.dieMessage("a sealed text was sealed by another secret than the deployment's"))
      )
  }
}
