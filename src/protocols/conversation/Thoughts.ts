/**
 * Signatures of thoughts. A vendor accepts a thought only with its own signature, but a client returns the thoughts that it received, whichever
 * vendor answers next. So in another vendor's protocol, a signature has the name of its signer as prefix: `google:EsYB...`.
 *
 * Where the specification is silent:
 * - A thought goes back only to the family of models that signed it. It is omitted for all others, because none accepts it. Unsigned thoughts go
 *   only to `chat` upstreams, as `reasoning_content`.
 * - A request with such a prefix in a signature is always translated, even for an upstream that speaks its protocol. The translation omits the
 *   thought (`isForeign`).
 */
import type { Protocol, Signer, ThinkingPart } from "./Conversation.ts"

/** The signer of answers in a protocol. */
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

/** A signature for a protocol with the signer `home`; `undefined` if there is none. */
export const signatureIn = (home: Signer, { redacted, signature, signer }: Signature): string | undefined =>
  signer === home ? signature : `${signer}${redacted ? "!" : ""}:${signature ?? ""}`

/** Reads a signature in a protocol with the signer `home`. */
export const signatureOf = (home: Signer, value: unknown): Signature => {
  if (typeof value !== "string" || value === "") return { signature: undefined, signer: home, redacted: false }
  const [prefix, signer, redacted] = named.exec(value) ?? []
  if (prefix === undefined) return { signature: value, signer: home, redacted: false }
  const rest = value.slice(prefix.length)
  return { signature: rest === "" ? undefined : rest, signer: signer as Signer, redacted: redacted === "!" }
}

/** Whether the JSON of a request contains a thought signed by another vendor than that of the client's protocol. */
export const isForeign = (json: string): boolean => foreign.test(json)
const foreign = /"(?:signature|encrypted_content|data)"\s*:\s*"(?:anthropic|openai|google|unknown)!?:/

/** Whether the vendor accepts this thought. */
export const isTakenBy = (home: Signer, { signature, signer }: ThinkingPart): boolean =>
  signer === home && signature !== undefined
