/**
 * The deployment's secret. Keys and tokens are stored only as hashes keyed with it, and private keys and emails only encrypted with it. A copy of the
 * database alone therefore reveals none of them.
 */
import { Context, Effect, Layer } from "effect"
import { CompactEncrypt, compactDecrypt } from "jose"
import { createHmac, hkdfSync } from "node:crypto"

/** The purposes of hashes. A hash for one purpose never matches a hash for another. */
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

/** The kinds of values that the secret protects: hashes by purpose, and encrypted values. */
export type Protected = Purpose | "signing_key" | "log_key" | "letter"

export interface DeploymentSecretContract {
  /** Hashes a value with HMAC-SHA256, as 64 hex digits. */
  readonly hash: (purpose: Purpose, value: string) => string
  readonly seal: (text: string) => Effect.Effect<string>
  /** Decrypts a value. Dies if the value was sealed with another secret, because the deployment's secret must then have been lost or replaced. */
  readonly unseal: (sealed: string) => Effect.Effect<string>
}

export class DeploymentSecret extends Context.Tag("tollgate/auth/DeploymentSecret")<
  DeploymentSecret,
  DeploymentSecretContract
>() {}

/** Provides the deployment's secret. It must consist of at least 32 random bytes. */
export const layer = (secret: Uint8Array) => Layer.sync(DeploymentSecret, () => make(secret))

const derived = (secret: Uint8Array, purpose: string) =>
  Buffer.from(hkdfSync("sha256", secret, "", `tollgate/${purpose}`, 32))

const decrypted = (key: Uint8Array, sealed: string) => Effect.tryPromise(() => compactDecrypt(sealed, key))

/** Returns whether the text was sealed with this secret. */
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
        Effect.orElse(() => Effect.dieMessage("a value was sealed with a secret other than the deployment's"))
      )
  }
}
