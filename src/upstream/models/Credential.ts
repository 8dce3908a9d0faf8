/**
 * How an upstream is told who asks: by its key in a header that its vendor reads, or by a signature of each request (AWS).
 *
 * Where the specification is silent:
 * - Where the configuration names no credential, it is the one that the vendor of the request's protocol reads: `x-api-key` for
 *   Anthropic's messages, `x-goog-api-key` for Google, else a bearer token, which OpenAI and nearly all others read, Bedrock's API keys
 *   among them. Azure OpenAI reads `api-key`.
 * - What an AWS access key signs is the host, the path, the body and the time of the service's clock. Temporary credentials are those of the
 *   environment at the start; a deployment whose credentials change is started again.
 */
import aws4 from "aws4"
import { Redacted } from "effect"
import { toDate } from "../../kernel/Moment.ts"
import type { ProtocolName } from "./Protocol.ts"
import type { WireRequest } from "../wire/Wire.ts"

/** The headers in which vendors read a key. */
export const keyHeaders = ["bearer", "x-api-key", "api-key", "x-goog-api-key"] as const
export type KeyHeader = (typeof keyHeaders)[number]

/** An AWS access key, which signs requests (Signature Version 4). */
export interface AwsCredential {
  /** `us-east-1`. */
  readonly region: string
  readonly access_key_id: Redacted.Redacted
  readonly secret_access_key: Redacted.Redacted
  /** Of temporary credentials. */
  readonly session_token?: Redacted.Redacted | undefined
}

/** The header in which the vendor of a protocol reads its key. */
export const usualHeader = (protocol: ProtocolName): KeyHeader =>
  protocol === "messages" ? "x-api-key" : protocol === "google" ? "x-goog-api-key" : "bearer"

export const headerOf = (header: KeyHeader, key: Redacted.Redacted): Readonly<Record<string, string>> =>
  header === "bearer" ? { authorization: `Bearer ${Redacted.value(key)}` } : { [header]: Redacted.value(key) }

/** Signs requests to one address for Bedrock. A body that streams cannot be signed, and is a defect. */
export const signer = (base_url: string, credential: AwsCredential) => {
  const { host, pathname } = new URL(base_url)
  const prefix = pathname.replace(/\/+$/, "")
  return (request: WireRequest, now: number): WireRequest => {
    const { body, headers, method, path } = request
    if (body !== undefined && typeof body !== "string" && !Buffer.isBuffer(body)) {
      throw new Error("a body that streams cannot be signed")
    }
    const signed = aws4.sign(
      {
        service: "bedrock",
        region: credential.region,
        host,
        method,
        path: prefix + path,
        headers: { ...headers, "X-Amz-Date": timestamp(now) },
        ...(body !== undefined && { body })
      },
      {
        accessKeyId: Redacted.value(credential.access_key_id),
        secretAccessKey: Redacted.value(credential.secret_access_key),
        ...(credential.session_token !== undefined && { sessionToken: Redacted.value(credential.session_token) })
      }
    )
    // The host and the length are the connection's to say, as they were signed.
    const { "Content-Length": _, Host: __, ...sent } = signed.headers as Record<string, string | number>
    return { ...request, headers: Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, `${value}`])) }
  }
}

/** `20260102T030405Z`. */
const timestamp = (now: number): string =>
  toDate(now)
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, "")
