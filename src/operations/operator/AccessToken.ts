/**
 * The operator's access tokens. The database stores no tokens: each token contains its session's id, its expiry and a keyed hash. The prefix and the
 * dots distinguish a token from an API key.
 */
import { timingSafeEqual } from "node:crypto"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"

const prefix = "tgop"

export interface AccessToken {
  readonly session_id: string
  /** The expiry, in Unix milliseconds. */
  readonly expires_at: number
}

export const write = (secret: DeploymentSecretContract, { expires_at, session_id }: AccessToken): string => {
  const signed = `${session_id}.${expires_at}`
  return `${prefix}.${signed}.${secret.hash("operator_token", signed)}`
}

/** Reads the token in an `Authorization` header, even if it has expired. Returns `undefined` unless this service issued the token. */
export const read = (secret: DeploymentSecretContract, authorization: string): AccessToken | undefined => {
  const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""
  const match = /^tgop\.(ops_[0-9a-z]{22})\.(\d{1,15})\.([0-9a-f]{64})$/.exec(bearer)
  if (match === null) return undefined
  const [, session_id = "", expires_at = "", hash = ""] = match
  const expected = secret.hash("operator_token", `${session_id}.${expires_at}`)
  if (!timingSafeEqual(Buffer.from(hash), Buffer.from(expected))) return undefined
  return { session_id, expires_at: Number(expires_at) }
}
