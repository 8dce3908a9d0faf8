import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

/** WebAuthn binds a passkey to a domain name that browsers must reach over a secure connection. */
export class PasskeysUnavailable extends Problem<PasskeysUnavailable>()("PasskeysUnavailable", {
  status: 409,
  error: "passkeys require a public_url with https and a domain name, or with localhost",
  code: "passkeys_unavailable"
}) {}

/**
 * The passkey or challenge is unknown, the browser or origin differs, the signature is wrong, or the counter has not grown. All of these cases have
 * the same text.
 */
export class PasskeyRejected extends Problem<PasskeyRejected>()("PasskeyRejected", {
  status: 401,
  error: "the passkey could not be verified; try again or sign in another way",
  code: "passkey_rejected"
}) {}

export class PasskeyRegistered extends Problem<PasskeyRegistered>()("PasskeyRegistered", {
  status: 409,
  error: "this passkey is already registered",
  code: "passkey_registered"
}) {}

export class TooManyPasskeys extends Problem<TooManyPasskeys>()("TooManyPasskeys", {
  status: 409,
  error: "this account has reached its limit of passkeys; delete one first",
  code: "too_many_passkeys",
  fields: { limit: Schema.Int }
}) {}

export class PasskeyNotFound extends Problem<PasskeyNotFound>()("PasskeyNotFound", {
  status: 404,
  error: "passkey not found",
  code: "passkey_not_found"
}) {}
