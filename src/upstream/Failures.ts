/** What an upstream's failure becomes for the caller, and what the operator reads of it. */
import { Effect } from "effect"
import { UpstreamBusy, UpstreamFailed, UpstreamRejected } from "./Problems.ts"
import * as Wire from "./Wire.ts"

export type UpstreamProblem = UpstreamRejected | UpstreamBusy | UpstreamFailed

/** The operator reads why; the caller only that. */
export const failed = (
  upstream: string,
  reason: string,
  request_id?: string | undefined
): Effect.Effect<never, UpstreamFailed> =>
  Effect.logWarning("an upstream failed").pipe(
    Effect.annotateLogs({ upstream, reason, ...(request_id !== undefined && { request_id }) }),
    Effect.andThen(new UpstreamFailed())
  )

/** An upstream's own refusal. Its words are passed on only where they speak of the request. */
export const refused = (
  upstream: string,
  { body, headers, status }: Wire.Whole,
  request_id?: string | undefined
): Effect.Effect<never, UpstreamProblem> => {
  if (status === 400 || status === 404 || status === 413 || status === 422) {
    const message = messageOf(parse(body))
    return new UpstreamRejected(message === undefined ? {} : { error: message })
  }
  if (status === 429) return new UpstreamBusy(retryAfterOf(headers))
  return failed(upstream, `status ${status}`, request_id)
}

/** The seconds of a `Retry-After`, as a problem says them. */
export const retryAfterOf = (headers: Wire.WireHeaders): { readonly retry_after?: number } => {
  const after = Number(Wire.header(headers, "retry-after"))
  return Number.isFinite(after) && after >= 0 ? { retry_after: Math.ceil(after) } : {}
}

/** A JSON object; `undefined` for anything else. */
export const parse = (text: string | Buffer): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The message in the error bodies that are common: `{ error: { message } }`, `{ error }`, `{ message }`, `{ detail }`, and
 * `{ detail: [{ msg }] }`.
 */
export const messageOf = (body: Record<string, unknown> | undefined): string | undefined => {
  const error = body?.error
  const [first] = Array.isArray(body?.detail) ? (body.detail as ReadonlyArray<unknown>) : []
  const message = isObject(error)
    ? error.message
    : (error ?? body?.message ?? (isObject(first) ? first.msg : body?.detail))
  return typeof message === "string" ? message.slice(0, 2_000) : undefined
}
