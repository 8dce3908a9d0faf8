/** Schemas for passkeys and for the WebAuthn messages between the service and a browser. Bytes are base64url strings. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { StoredText } from "../../kernel/StoredText.ts"

export const PasskeyId = Schema.String.pipe(Schema.brand("PasskeyId"))
export type PasskeyId = typeof PasskeyId.Type

export const Passkey = Schema.Struct({
  id: PasskeyId,
  name: Schema.String,
  created_at: Moment,
  /** The time of the last sign-in; null until the first one. */
  last_used_at: Schema.NullOr(Moment)
}).annotations({ identifier: "Passkey" })
export interface Passkey extends Schema.Schema.Type<typeof Passkey> {}

export const Passkeys = Schema.Struct({ passkeys: Schema.Array(Passkey) }).annotations({ identifier: "Passkeys" })

const Bytes = Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]*$/), Schema.maxLength(20_000))

const Transports = Schema.Array(Schema.Literal("ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"))

/** Refers to a credential in the options. */
const CredentialDescriptor = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("public-key"),
  transports: Transports
})

/** Options for `navigator.credentials.create`. */
export const CreationOptions = Schema.Struct({
  challenge: Schema.String,
  rp: Schema.Struct({ id: Schema.String, name: Schema.String }),
  user: Schema.Struct({ id: Schema.String, name: Schema.String, displayName: Schema.String }),
  pubKeyCredParams: Schema.Array(Schema.Struct({ type: Schema.Literal("public-key"), alg: Schema.Int })),
  /** The time limit in milliseconds. */
  timeout: Schema.Int,
  attestation: Schema.Literal("none"),
  /** The user's passkeys. An authenticator that holds one of them does not create another. */
  excludeCredentials: Schema.Array(CredentialDescriptor),
  authenticatorSelection: Schema.Struct({
    residentKey: Schema.Literal("required"),
    requireResidentKey: Schema.Literal(true),
    userVerification: Schema.Literal("required")
  })
}).annotations({ identifier: "PasskeyCreationOptions" })
export interface CreationOptions extends Schema.Schema.Type<typeof CreationOptions> {}

/** Options for `navigator.credentials.get`. They list no credential, so the authenticator offers those that it stores. */
export const RequestOptions = Schema.Struct({
  challenge: Schema.String,
  rpId: Schema.String,
  /** The time limit in milliseconds. */
  timeout: Schema.Int,
  userVerification: Schema.Literal("required")
}).annotations({ identifier: "PasskeyRequestOptions" })
export interface RequestOptions extends Schema.Schema.Type<typeof RequestOptions> {}

const credential = { id: Bytes, rawId: Bytes, type: Schema.Literal("public-key") }

/** The credential that `navigator.credentials.create` returned. */
export const CreatedCredential = Schema.Struct({
  ...credential,
  response: Schema.Struct({
    clientDataJSON: Bytes,
    attestationObject: Bytes,
    transports: Schema.optionalWith(Schema.Array(Schema.String.pipe(Schema.maxLength(20))), { default: () => [] })
  })
}).annotations({ identifier: "PasskeyCreated" })
export interface CreatedCredential extends Schema.Schema.Type<typeof CreatedCredential> {}

/** The credential that `navigator.credentials.get` returned. */
export const Asserted = Schema.Struct({
  ...credential,
  response: Schema.Struct({
    clientDataJSON: Bytes,
    authenticatorData: Bytes,
    signature: Bytes,
    userHandle: Schema.optional(Schema.NullOr(Bytes))
  })
}).annotations({ identifier: "PasskeyAsserted" })
export interface Asserted extends Schema.Schema.Type<typeof Asserted> {}

export const NewPasskey = Schema.Struct({
  name: StoredText.pipe(Schema.minLength(1), Schema.maxLength(100)),
  credential: CreatedCredential
}).annotations({ identifier: "NewPasskey" })
export interface NewPasskey extends Schema.Schema.Type<typeof NewPasskey> {}

export type Transport = (typeof Transports.Type)[number]

/** Returns the known transports among `reported`. */
export const transportsIn = (reported: ReadonlyArray<string>): ReadonlyArray<Transport> =>
  reported.filter((one): one is Transport => Schema.is(Transports.value)(one))
