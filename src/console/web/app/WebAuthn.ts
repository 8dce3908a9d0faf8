/** Passkeys in the browser. Converts the options for `navigator.credentials` from JSON, and its results to JSON. Bytes are base64url. */
import type { Schemas } from "./Client.ts"

export const hasPasskeys = (): boolean => typeof PublicKeyCredential === "function"

const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0))

const textOf = (bytes: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")

/** Returns whether the user closed the browser's dialog or the dialog timed out. */
export const isDismissed = (error: unknown): boolean =>
  error instanceof DOMException && error.name === "NotAllowedError"

/** Returns whether creation failed because the authenticator already has a passkey for this account. */
export const isKnown = (error: unknown): boolean => error instanceof DOMException && error.name === "InvalidStateError"

const named = (credential: PublicKeyCredential) => ({
  id: credential.id,
  rawId: textOf(credential.rawId),
  type: "public-key" as const
})

export const createPasskey = async (options: Schemas["PasskeyCreationOptions"]): Promise<Schemas["PasskeyCreated"]> => {
  const credential = (await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytesOf(options.challenge),
      user: { ...options.user, id: bytesOf(options.user.id) },
      excludeCredentials: options.excludeCredentials.map(({ id, transports, type }) => ({
        id: bytesOf(id),
        type,
        transports: [...transports] as Array<AuthenticatorTransport>
      }))
    }
  })) as PublicKeyCredential
  const response = credential.response as AuthenticatorAttestationResponse
  return {
    ...named(credential),
    response: {
      clientDataJSON: textOf(response.clientDataJSON),
      attestationObject: textOf(response.attestationObject),
      transports: response.getTransports()
    }
  }
}

export const signWithPasskey = async (
  options: Schemas["PasskeyRequestOptions"]
): Promise<Schemas["PasskeyAsserted"]> => {
  const { rpId, timeout, userVerification } = options
  const credential = (await navigator.credentials.get({
    publicKey: { rpId, timeout, userVerification, challenge: bytesOf(options.challenge) }
  })) as PublicKeyCredential
  const response = credential.response as AuthenticatorAssertionResponse
  return {
    ...named(credential),
    response: {
      clientDataJSON: textOf(response.clientDataJSON),
      authenticatorData: textOf(response.authenticatorData),
      signature: textOf(response.signature),
      userHandle: response.userHandle === null ? null : textOf(response.userHandle)
    }
  }
}
