/**
 * Signatures of thoughts. A vendor takes a thought back only with its own signature, and a client returns the thoughts it got, whichever
 * vendor answers next. So a signature in the protocol of another vendor goes with the name of its signer: `google:EsYB...`.
 *
 * Where the specification is silent:
 * - A thought goes back to the family of models that signed it, and is left out for every other: none takes it. Unsigned thoughts go to
 *   upstreams of `chat` only, as `reasoning_content`.
 * - A request with such a name in it does not pass untouched, even to an upstream that speaks its protocol: it is translated, which leaves
 *   the thought out (`isForeign`).
 */
import type { Protocol, Signer, ThinkingPart } from "./Conversation.ts"

/** The signer of answers from a vendor of a protocol. */
export const home: Readonly<Record<Protocol, Signer>> = {
  messages: "anthropic",
  bedrock: "anthropic",
  responses: "openai",
  google: "google",
  chat: "unknown"
}

export interface Signature {
  readonly signature: string | undefined
  readonly signer: Signer
  readonly redacted: boolean
}

const named = /^(anthropic|openai|google|unknown)(!?):/

/** How a signature is written in a protocol whose vendor is `home`; `undefined` where there is none. */
export const signatureIn = (home: Signer, { redacted, signature, signer }: Signature): string | undefined =>
  signer === home ? signature : `${signer}${redacted ? "!" : ""}:${signature ?? ""}`

/** The content of a signature in a protocol whose vendor is `home`. */
export const signatureOf = (home: Signer, value: unknown): Signature => {
  if (typeof value !== "string" || value === "") return { signature: undefined, signer: home, redacted: false }
  const [prefix, signer, redacted] = named.exec(value) ?? []
  if (prefix === undefined) return { signature: value, signer: home, redacted: false }
  const rest = value.slice(prefix.length)
  return { signature: rest === "" ? undefined : rest, signer: signer as Signer, redacted: redacted === "!" }
}

/** Whether the JSON of a request gives back a thought that another vendor signed than the client's protocol has. */
export const isForeign = (json: string): boolean => foreign.test(json)
const foreign = /"(?:signature|encrypted_content|data)"\s*:\s*"(?:anthropic|openai|google|unknown)!?:/

/** Whether the vendor takes this thought back. */
export const isTakenBy = (home: Signer, { signature, signer }: ThinkingPart): boolean =>
  signer === home && signature !== undefined
