/**
 * Converts an upstream's failure to the caller's problem and the operator's log line.
 *
 * Where the specification is silent:
 * - A provider's invalid response is a failure and costs nothing unless it reports its usage. Audio that ends early costs nothing, and its response
 *   is aborted, so that no client mistakes it for complete audio. It is charged only if its client had delayed it for ten seconds in total. If the
 *   client of a speech request disconnects, the audio is read to its end and charged as usual.
 */
import { Clock, Effect } from "effect"
import { parsedOfVendor, written } from "../../protocols/conversation/Json.ts"
import { UpstreamBusy, UpstreamFailed, UpstreamRejected } from "./Problems.ts"
import * as Wire from "./Wire.ts"

/** An upstream's own reason for a rejection, for the caller. */
export interface UpstreamWords {
  readonly message?: string
  readonly field: string
  readonly rule: string
}

export type UpstreamProblem = UpstreamRejected | UpstreamBusy | UpstreamFailed

/**
 * Fails with a problem and logs the reason for the operator. The caller does not see the reason. `unserved` means that the upstream certainly did no
 * work for the request.
 */
export const failed = (
  upstream: string,
  reason: string,
  request_id?: string | undefined,
  unserved?: boolean | undefined
): Effect.Effect<never, UpstreamFailed> =>
  Effect.logWarning("an upstream failed").pipe(
    Effect.annotateLogs({ upstream, reason, ...(request_id !== undefined && { request_id }) }),
    Effect.andThen(new UpstreamFailed(unserved === true ? { upstream, unserved } : { upstream }))
  )

/** Fails with the problem for a missing response. */
export const unanswered = (
  upstream: string,
  { reason, unsent }: Wire.Unreachable,
  request_id?: string | undefined
): Effect.Effect<never, UpstreamFailed> => failed(upstream, reason, request_id, unsent)

export const isRefusal = ({ status }: { readonly status: number }): boolean => status < 200 || status > 299

/** Fails with the problem for an upstream's error response. The upstream's message is passed on only if it is about the request. */
export const refused = (
  upstream: string,
  { body, headers, status }: Wire.Whole,
  request_id?: string | undefined
): Effect.Effect<never, UpstreamProblem> => {
  if (status === 400 || status === 404 || status === 413 || status === 422) {
    const words = parse(body)
    if (isOfKey(words)) return failed(upstream, `status ${status}: the upstream does not accept the key`, request_id)
    return new UpstreamRejected(refusalOf(words))
  }
  if (status === 429)
    return Effect.flatMap(retryAfterOf(headers), ({ retry_after }) =>
      retry_after === undefined ? new UpstreamBusy({ upstream }) : new UpstreamBusy({ upstream, retry_after })
    )
  return failed(upstream, `status ${status}`, request_id, isOverloaded(status))
}

/** Returns whether the status means that the server did not start to work on the request: 503, or Anthropic's 529. */
const isOverloaded = (status: number): boolean => status === 503 || status === 529

/** Returns whether the error is about the key. Google rejects an invalid key with status 400. */
const isOfKey = (body: Record<string, unknown> | undefined): boolean =>
  isObject(body?.error) &&
  Array.isArray(body.error.details) &&
  body.error.details.some((one) => isObject(one) && one.reason === "API_KEY_INVALID")

/** Reads a `Retry-After` as the field `retry_after` of a problem, in seconds. */
export const retryAfterOf = (headers: Wire.WireHeaders): Effect.Effect<{ readonly retry_after?: number }> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const retry_after = retryAfterIn(headers, now)
    return retry_after === undefined ? {} : { retry_after }
  })

/** Reads a `Retry-After`, given in seconds or as a date, as seconds from `now`. `now` is in milliseconds since 1970. */
export const retryAfterIn = (headers: Wire.WireHeaders, now: number): number | undefined => {
  const value = Wire.header(headers, "retry-after")?.trim() ?? ""
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value))
  // HTTP dates begin with a weekday and are in UTC even if they state no time zone.
  const at = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/i.test(value) ? Date.parse(value.replace(/( GMT)?$/i, " GMT")) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1_000))
}

/** Returns `undefined` for any text that is not a JSON object. */
export const parse = (text: string | Buffer): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export interface VendorJson {
  readonly value: Record<string, unknown>
  /** The vendor's bytes, or rewritten JSON if they contain numbers that JSON does not allow. */
  readonly bytes: Buffer
}

/** Returns `undefined` unless the response is a JSON object, apart from the numbers that JSON does not allow. */
export const readJson = (bytes: Buffer): VendorJson | undefined => {
  const strict = parse(bytes)
  if (strict !== undefined) return { value: strict, bytes }
  const value = parsedOfVendor(bytes.toString("utf8"))
  const json = isObject(value) ? written(value) : undefined
  return json === undefined ? undefined : { value: value as Record<string, unknown>, bytes: Buffer.from(json) }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Finds the message in common error bodies: `{ error: { message } }`, `{ error }`, `{ message }`, `{ detail }` and `{ detail: [{ msg }] }`. Keys and
 * addresses are removed, because callers see the message.
 */
export const messageOf = (body: Readonly<Record<string, unknown>> | undefined): string | undefined => {
  const error = body?.error
  const [first] = Array.isArray(body?.detail) ? (body.detail as ReadonlyArray<unknown>) : []
  const message = isObject(error)
    ? error.message
    : (error ?? body?.message ?? (isObject(first) ? first.msg : body?.detail))
  return typeof message === "string" ? withoutSecrets(message.slice(0, 2_000)) : undefined
}

/** Extracts the information that the caller may see from an upstream's rejection: its message, and the field that it names, if any. */
export const refusalOf = (body: Record<string, unknown> | undefined): UpstreamWords => {
  const message = messageOf(body)
  return {
    ...(message !== undefined && { message }),
    field: fieldOf(body),
    rule: message ?? "refused by the model without a reason"
  }
}

/** Finds the field in common error bodies: `{ error: { param } }` and `{ detail: [{ loc: ["body", "prompt"] }] }`. */
const fieldOf = (body: Record<string, unknown> | undefined): string => {
  if (isObject(body?.error) && typeof body.error.param === "string") return body.error.param.slice(0, 200)
  const [first] = Array.isArray(body?.detail) ? (body.detail as ReadonlyArray<unknown>) : []
  if (!isObject(first) || !Array.isArray(first.loc)) return ""
  const path = first.loc.filter((step) => typeof step === "string" || typeof step === "number")
  return (path[0] === "body" ? path.slice(1) : path).join(".").slice(0, 200)
}

/** Removes keys and addresses, because upstreams often quote the rejected key or the internal address that failed. */
export const withoutSecrets = (message: string): string =>
  message
    .replace(/https?:\/\/\S+/gi, "[address]")
    .replace(/\bBearer\s+\S+/gi, "[key]")
    .replace(/\bsk-\S+/gi, "[key]")
