/**
 * A request as data, which can be saved and sent again. A plan consists of content, framing and delivery. Ids and credentials are placeholders
 * (`⟦tenant_id⟧`), because they differ from world to world.
 */
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"

export type CredentialName =
  | "none"
  | "key"
  | "key as x-api-key"
  | "token"
  | "other person's token"
  | "operator's token"
  | "expired token"
  | "application's token"
  | "client token"
  | "wrong"

export type Framing =
  | "length"
  | "chunked"
  | "none"
  | "length too short"
  | "length too long"
  | "length twice"
  | "length negative"
  | "length huge"
  | "length no number"
  | "both"
  | "chunked, cut"
  | "chunked, bad size"
  | "chunked, long extension"
  | "chunked, twice"
  | "encoding unknown"

export type Coding =
  | "none"
  | "gzip"
  | "br"
  | "deflate"
  | "gzip, cut"
  | "gzip, untrue"
  | "gzip of zeros"
  | "unknown"
  | "twice"

export interface Plan {
  /** The name of the targeted route in the document. */
  readonly route: string
  readonly credential: CredentialName
  /** The invalid credential to send. */
  readonly wrong: string
  readonly method: string
  readonly target: string
  readonly version: string
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string | undefined
  /** Changes to the body's bytes: each position, as a fraction of the length, and the new value. */
  readonly bodyBytes: ReadonlyArray<readonly [at: number, byte: number]>
  readonly coding: Coding
  readonly framing: Framing
  /** Changes to the entire request's bytes, in the same form as `bodyBytes`. */
  readonly bytes: ReadonlyArray<readonly [at: number, byte: number]>
  /** How often the request is sent, without waiting for responses in between. */
  readonly times: number
  readonly pieces: number
  readonly pause_ms: number
  readonly end: "wait" | "half" | "cut"
  /** The fraction of the bytes to send. */
  readonly upTo: number
  readonly from: number
}

/** The values that replace the placeholders in a world. */
export type Known = Readonly<Record<string, string>>

const named = (text: string, known: Known): string =>
  text.replaceAll(/⟦(\w+)⟧/g, (_, name: string) => known[name] ?? `no_${name}`)

/** Returns whether the document determines the response, because the framing is valid and the request matches its route. */
export const isExact = ({ bytes, framing, method, route, target, upTo, version }: Plan): boolean =>
  bytes.length === 0 &&
  upTo === 1 &&
  version === "HTTP/1.1" &&
  method === route.split(" ")[0] &&
  !/[^\x21-\x7e⟦⟧]/.test(target) &&
  (framing === "length" || framing === "chunked" || framing === "none")

const changed = (bytes: Buffer, changes: Plan["bytes"]): Buffer => {
  const copy = Buffer.from(bytes)
  for (const [at, byte] of changes)
    if (copy.length > 0) copy[Math.min(copy.length - 1, Math.floor(at * copy.length))] = byte
  return copy
}

const coded = (coding: Coding, body: Buffer): Buffer => {
  switch (coding) {
    case "gzip":
      return gzipSync(body)
    case "br":
      return brotliCompressSync(body)
    case "deflate":
      return deflateSync(body)
    case "gzip, cut":
      return gzipSync(body).subarray(0, -9)
    case "gzip of zeros":
      return gzipSync(Buffer.alloc(32 * 1024 * 1024))
    default:
      return body
  }
}

const codingNames: Readonly<Record<Coding, string | undefined>> = {
  none: undefined,
  gzip: "gzip",
  br: "br",
  deflate: "deflate",
  "gzip, cut": "gzip",
  "gzip, untrue": "gzip",
  "gzip of zeros": "gzip",
  unknown: "zstd",
  twice: "gzip, gzip"
}

const chunk = (bytes: Buffer, extension = ""): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}${extension}\r\n`), bytes, Buffer.from("\r\n")])

const lastChunk = Buffer.from("0\r\n\r\n")

/** Returns the framing headers and the bytes to send as the body. */
const framed = (framing: Framing, body: Buffer): readonly [headers: ReadonlyArray<string>, bytes: Buffer] => {
  const length = (value: number | string) => `content-length: ${value}`
  const chunks = "transfer-encoding: chunked"
  const half = Math.ceil(body.length / 2)
  const whole =
    body.length === 0
      ? lastChunk
      : Buffer.concat([
          chunk(body.subarray(0, half)),
          ...(half < body.length ? [chunk(body.subarray(half))] : []),
          lastChunk
        ])
  switch (framing) {
    case "none":
      return [[], Buffer.alloc(0)]
    case "chunked":
      return [[chunks], whole]
    case "length too short":
      return [[length(half)], body]
    case "length too long":
      return [[length(body.length + 7)], body]
    case "length twice":
      return [[length(body.length), length(body.length + 1)], body]
    case "length negative":
      return [[length(-1)], body]
    case "length huge":
      return [[length("99999999999999999999")], body]
    case "length no number":
      return [[length("0x10")], body]
    case "both":
      return [[length(body.length), chunks], whole]
    case "chunked, cut":
      return [[chunks], whole.subarray(0, -5)]
    case "chunked, bad size":
      return [[chunks], Buffer.concat([Buffer.from("-1\r\n"), body, Buffer.from("\r\n0\r\n\r\n")])]
    case "chunked, long extension":
      return [
        [chunks],
        Buffer.concat([chunk(body.length === 0 ? Buffer.from(" ") : body, `;x=${"y".repeat(20_000)}`), lastChunk])
      ]
    case "chunked, twice":
      return [[chunks, chunks], whole]
    case "encoding unknown":
      return [["transfer-encoding: gzip, chunked"], whole]
    default:
      return [[length(body.length)], body]
  }
}

const credentialOf = ({ credential, wrong }: Plan, known: Known): ReadonlyArray<string> => {
  if (credential === "none") return []
  if (credential === "wrong") return [wrong]
  if (credential === "key as x-api-key") return [`x-api-key: ${known["key"]}`]
  return [`authorization: Bearer ${known[credential]}`]
}

/** Returns a plan's bytes in a world, for one request. */
export const bytesOf = (plan: Plan, known: Known): Buffer => {
  const body = coded(plan.coding, changed(Buffer.from(named(plan.body ?? "", known)), plan.bodyBytes))
  const [lengths, content] = framed(plan.framing, body)
  const coding = plan.framing === "none" ? undefined : codingNames[plan.coding]
  const lines = [
    `${plan.method} ${named(plan.target, known)} ${plan.version}`,
    ...credentialOf(plan, known),
    ...plan.headers.map(([name, value]) => `${name}: ${named(value, known)}`),
    ...(coding === undefined ? [] : [`content-encoding: ${coding}`]),
    ...lengths
  ]
  const whole = Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), content])
  const sent = changed(whole, plan.bytes)
  return sent.subarray(0, Math.ceil(sent.length * plan.upTo))
}

/** Returns all of a plan's bytes to send, in chunks. */
export const piecesOf = (plan: Plan, known: Known): ReadonlyArray<Buffer> => {
  const one = bytesOf(plan, known)
  const all = plan.times === 1 ? one : Buffer.concat(Array.from({ length: plan.times }, () => one))
  const size = Math.max(1, Math.ceil(all.length / plan.pieces))
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
    all.subarray(index * size, (index + 1) * size)
  )
}
