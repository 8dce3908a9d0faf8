/**
 * An upstream's credential: a key in a header, or a signature on each request (AWS).
 *
 * Where the specification is silent:
 * - The default header is that of the protocol's vendor: `x-api-key` for Anthropic's messages, `x-goog-api-key` for Google, and otherwise a bearer
 *   token. OpenAI and nearly all other vendors accept bearer tokens, and so do Bedrock's API keys. Azure OpenAI reads `api-key`.
 * - An AWS access key signs the host, the path, the body and the service's time. Temporary credentials are read from the environment at startup, so
 *   the deployment must be restarted when they change.
 */
import aws4 from "aws4"
import { Effect, Redacted } from "effect"
import { createHash } from "node:crypto"
import { toDate } from "../../kernel/Moment.ts"
import { turn } from "../../kernel/Pieces.ts"
import type { ProtocolName } from "./Protocol.ts"
import type { WireRequest } from "../wire/Wire.ts"

export const keyHeaders = ["bearer", "x-api-key", "api-key", "x-goog-api-key"] as const
export type KeyHeader = (typeof keyHeaders)[number]

/** An AWS access key for signing requests (Signature Version 4). */
export interface AwsCredential {
  /** Such as `us-east-1`. */
  readonly region: string
  readonly access_key_id: Redacted.Redacted
  readonly secret_access_key: Redacted.Redacted
  /** The session token of temporary credentials. */
  readonly session_token?: Redacted.Redacted | undefined
}

export const usualHeader = (protocol: ProtocolName): KeyHeader =>
  protocol === "messages" ? "x-api-key" : protocol === "google" ? "x-goog-api-key" : "bearer"

/** Returns no header if the key is empty. */
export const headerOf = (header: KeyHeader, key: Redacted.Redacted): Readonly<Record<string, string>> => {
  const value = Redacted.value(key)
  if (value === "") return noHeader
  return header === "bearer" ? { authorization: `Bearer ${value}` } : { [header]: value }
}

const noHeader: Readonly<Record<string, string>> = {}

/** The maximum number of bytes to hash before other work runs. */
const hashedAtOnce = 256 * 1024

/** Adds the body's hash to a request that is to be signed. A long body is hashed in chunks, and the event loop runs between them. */
export const hashed = (request: WireRequest): Effect.Effect<WireRequest> =>
  Effect.suspend(() => {
    const { body, sha256 } = request
    if (body === undefined || sha256 !== undefined) return Effect.succeed(request)
    return Effect.map(hashOf(piecesOf(body)), (sha256) => ({ ...request, sha256 }))
  })

/** Returns the body in chunks. A streaming body is a defect, because it cannot be signed. */
const piecesOf = (body: NonNullable<WireRequest["body"]>): ReadonlyArray<Buffer> => {
  if (typeof body === "string") return [Buffer.from(body)]
  if (Buffer.isBuffer(body)) return [body]
  if (Array.isArray(body)) return body as ReadonlyArray<Buffer>
  throw new Error("a streaming body cannot be signed")
}

const hashOf = Effect.fnUntraced(function* (pieces: ReadonlyArray<Buffer>) {
  const hash = createHash("sha256")
  let since = 0
  for (const piece of pieces)
    for (let at = 0; at < piece.length; at += hashedAtOnce) {
      const part = piece.subarray(at, at + hashedAtOnce)
      since += part.length
      if (since > hashedAtOnce) {
        yield* turn
        since = part.length
      }
      hash.update(part)
    }
  return hash.digest("hex")
})

/** Creates a function that signs requests to one Bedrock address. The request must contain its body's hash (`hashed`). */
export const signer = (base_url: string, credential: AwsCredential) => {
  const { host, pathname } = new URL(base_url)
  const prefix = pathname.replace(/\/+$/, "")
  return (request: WireRequest, now: number): WireRequest => {
    const { headers, method, path, sha256 } = request
    const signed = aws4.sign(
      {
        service: "bedrock",
        region: credential.region,
        host,
        method,
        path: prefix + path,
        headers: {
          ...headers,
          "X-Amz-Date": timestamp(now),
          ...(sha256 !== undefined && { "X-Amz-Content-Sha256": sha256 })
        }
      },
      {
        accessKeyId: Redacted.value(credential.access_key_id),
        secretAccessKey: Redacted.value(credential.secret_access_key),
        ...(credential.session_token !== undefined && { sessionToken: Redacted.value(credential.session_token) })
      }
    )
    // The connection itself sends the host, with the signed value.
    const { Host: _, ...sent } = signed.headers as Record<string, string | number>
    return { ...request, headers: Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, `${value}`])) }
  }
}

/** Formats a time as `20260102T030405Z`. */
const timestamp = (now: number): string =>
  toDate(now)
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, "")
