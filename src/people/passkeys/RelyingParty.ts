/** The service as a WebAuthn relying party: its domain name, its origin, and the verification of authenticators' signatures. */
import type { VerifiedAuthenticationResponse, VerifiedRegistrationResponse } from "@simplewebauthn/server"
import { Effect } from "effect"
import { isIP } from "node:net"
import type { Asserted, CreatedCredential, Transport } from "./Passkey.ts"
import { PasskeyRejected } from "./Problems.ts"

export interface RelyingParty {
  /** The domain name that passkeys are bound to. */
  readonly id: string
  readonly origin: string
}

/** Returns the relying party, or `undefined` if browsers do not offer passkeys at this address. */
export const relyingPartyOf = (public_url: string): RelyingParty | undefined => {
  const { hostname, origin, protocol } = new URL(public_url)
  const isLocal = hostname === "localhost" || hostname.endsWith(".localhost")
  const isName = !hostname.startsWith("[") && isIP(hostname) === 0
  return isName && (protocol === "https:" || isLocal) ? { id: hostname, origin } : undefined
}

/** The accepted algorithms ES256, EdDSA and RS256, by their COSE numbers. */
export const algorithms = [-7, -8, -257] as const

export interface StoredKey {
  readonly credential_id: string
  readonly public_key: string
  readonly counter: number
  readonly transports: ReadonlyArray<Transport>
}

/** Loaded on first use, because the library parses certificates and most processes never need it. */
const library = Effect.promise(() => import("@simplewebauthn/server"))

const verifyOrReject = <A>(verify: (webauthn: Effect.Effect.Success<typeof library>) => Promise<A>) =>
  Effect.flatMap(library, (webauthn) =>
    Effect.tryPromise({ try: () => verify(webauthn), catch: () => new PasskeyRejected() })
  )

/** Returns the challenge in the client data, or an empty string if there is none. */
export const challengeIn = ({ clientDataJSON }: { readonly clientDataJSON: string }): string => {
  try {
    const data = JSON.parse(Buffer.from(clientDataJSON, "base64url").toString("utf8")) as { challenge?: unknown } | null
    return typeof data?.challenge === "string" ? data.challenge : ""
  } catch {
    return ""
  }
}

export const verifiedCreation = Effect.fnUntraced(function* (
  party: RelyingParty,
  challenge: string,
  created: CreatedCredential
) {
  const { response, ...credential } = created
  const { attestationObject, clientDataJSON } = response
  const { registrationInfo }: VerifiedRegistrationResponse = yield* verifyOrReject(({ verifyRegistrationResponse }) =>
    verifyRegistrationResponse({
      response: { ...credential, response: { attestationObject, clientDataJSON }, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: [...algorithms]
    })
  )
  return registrationInfo === undefined ? yield* new PasskeyRejected() : registrationInfo.credential
})

/**
 * Verifies a sign-in and returns the passkey's new counter. Rejects a counter that has not grown, because the passkey may have been copied.
 * Authenticators that always report 0 are accepted.
 */
export const verifiedAssertion = Effect.fnUntraced(function* (
  party: RelyingParty,
  challenge: string,
  asserted: Asserted,
  key: StoredKey
) {
  const { response, ...credential } = asserted
  const { authenticatorData, clientDataJSON, signature } = response
  const answer: VerifiedAuthenticationResponse = yield* verifyOrReject(({ verifyAuthenticationResponse }) =>
    verifyAuthenticationResponse({
      response: {
        ...credential,
        response: { authenticatorData, clientDataJSON, signature },
        clientExtensionResults: {}
      },
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      credential: {
        id: key.credential_id,
        publicKey: new Uint8Array(Buffer.from(key.public_key, "base64url")),
        counter: key.counter
      }
    })
  )
  return answer.verified ? answer.authenticationInfo.newCounter : yield* new PasskeyRejected()
})
