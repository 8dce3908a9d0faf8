/**
 * Converts reasoning signatures between protocols. A vendor accepts only reasoning that it signed, but a client sends back all reasoning that it
 * received, even if another vendor serves the next call. In another vendor's protocol, a signature is therefore prefixed with its signer's name
 * (`google:EsYB...`).
 *
 * Where the specification is silent:
 * - Reasoning is sent back only to the family of models that signed it, because other models reject it. Unsigned reasoning is sent only to chat
 *   upstreams, as `reasoning_content`.
 * - A request that contains a prefixed signature is always translated, even for an upstream that accepts its protocol (`isForeign`). The translation
 *   omits the reasoning.
 */
import type { Protocol, Signer, ThinkingPart } from "./Conversation.ts"

/** The signer of the reasoning in each protocol's responses. */
export const homeSigners: Readonly<Record<Protocol, Signer>> = {
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

/** Writes a signature for the protocol whose signer is `homeSigners`. Another signer's signature gets a prefix. */
export const signatureIn = (home: Signer, { redacted, signature, signer }: Signature): string | undefined =>
  signer === home ? signature : `${signer}${redacted ? "!" : ""}:${signature ?? ""}`

/** Reads a signature from the protocol whose signer is `homeSigners`. A prefix names another signer. */
export const signatureOf = (home: Signer, value: unknown): Signature => {
  if (typeof value !== "string" || value === "") return { signature: undefined, signer: home, redacted: false }
  const [prefix, signer, redacted] = named.exec(value) ?? []
  if (prefix === undefined) return { signature: value, signer: home, redacted: false }
  const rest = value.slice(prefix.length)
  return { signature: rest === "" ? undefined : rest, signer: signer as Signer, redacted: redacted === "!" }
}

/** Returns whether a request's JSON contains a prefixed signature, that is, reasoning that another vendor signed. */
export const isForeign = (json: string): boolean => foreign.test(json)
const foreign = /"(?:signature|encrypted_content|data)"\s*:\s*"(?:anthropic|openai|google|unknown)!?:/

/** Returns whether this family of models signed the reasoning and therefore accepts it. */
export const isSignedBy = (home: Signer, { signature, signer }: ThinkingPart): boolean =>
  signer === home && signature !== undefined
