/** Submits, polls, fetches and cancels jobs at vendors that queue images and videos, such as fal. Only this module knows their wire format. */
import { Data, Effect, Redacted } from "effect"
import type { Admission } from "../../books/gate/Gate.ts"
import { isObject, messageOf, readJson, refusalOf, retryAfterOf } from "../wire/Failures.ts"
import type { UpstreamWords } from "../wire/Failures.ts"
import { jsonOf } from "../wire/LongText.ts"
import type { LongTexts } from "../wire/LongText.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import { exceeded } from "../../kernel/JsonText.ts"
import type { ReadOnPolicy } from "../../kernel/ReadOn.ts"
import { isStorable } from "../../kernel/StoredText.ts"
import type { Upstream } from "../models/Upstreams.ts"
import type { Whole, WireRequest } from "../wire/Wire.ts"

/** The vendor rejected the job. `words` contains its message. */
export class JobRejected extends Data.TaggedError("JobRejected")<{ readonly words: UpstreamWords }> {}

/** The vendor is currently not accepting jobs. `retry_after` is in seconds, if the vendor sends it. */
export class VendorBusy extends Data.TaggedError("VendorBusy")<{
  readonly words: { readonly retry_after?: number }
}> {}

/** The vendor sent no response or an unexpected one. The reason is for the log and must never reach a caller. */
export class VendorUnavailable extends Data.TaggedError("VendorUnavailable")<{ readonly reason: string }> {}

export type NotTaken = JobRejected | VendorBusy | VendorUnavailable

export interface Taken {
  readonly vendor_id: string
  readonly queue_position: number | null
}

/** The state of a job. `gone` means that the vendor does not know the job. `failed` is a final failure with an error message. */
export type Standing =
  | { readonly how: "queued"; readonly queue_position: number | null }
  | { readonly how: "running" }
  | { readonly how: "completed"; readonly inference_time: number | null }
  | { readonly how: "failed"; readonly error: string }
  | { readonly how: "cancelled" }
  | { readonly how: "gone" }

/** The result of a finished job: its output, or a final failure. */
export type Result =
  | { readonly how: "output"; readonly output: Record<string, unknown> }
  | { readonly how: "failed"; readonly error_type: "media_rejected" | "media_failed"; readonly error: string }

const answerMegabytesMax = 8
const answerBytesMax = answerMegabytesMax * 1024 * 1024

/** The maximum number of values and names in a result. The main thread parses and stores results; long strings take it little time. */
const resultPartsMax = 20_000

/** The members to omit from a result that is too long, so that its other members can still be read. */
const longOutput: LongMembers = { names: new Set(["url"]), depth: 3 }

const whole = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null

const isJobId = (value: unknown): value is string => typeof value === "string" && value !== "" && isStorable(value)

const seconds = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null

const ask = (
  upstream: Upstream,
  admission: Admission,
  method: WireRequest["method"],
  path: string,
  {
    body,
    long,
    read_on = admission.to_its_end
  }: { readonly body?: WireRequest["body"]; readonly long?: LongMembers; readonly read_on?: ReadOnPolicy } = {}
): Effect.Effect<Whole, VendorUnavailable> =>
  upstream
    .wire(admission)
    .exchange(
      {
        method,
        path,
        headers: {
          authorization: `Key ${Redacted.value(upstream.key)}`,
          ...(body !== undefined && { "content-type": "application/json" })
        },
        ...(body !== undefined && { body })
      },
      { limit: answerBytesMax, long, read_on }
    )
    .pipe(Effect.mapError(({ reason }) => new VendorUnavailable({ reason })))

/** Options for polls and results. These requests cost nothing, so they are aborted if the caller disconnects. */
const looking = { read_on: false } as const

const unavailable = ({ status }: Whole) => new VendorUnavailable({ reason: `status ${status}` })

export const submit = Effect.fnUntraced(function* (
  upstream: Upstream,
  admission: Admission,
  endpoint: string,
  input: object,
  texts?: LongTexts
): Effect.fn.Return<Taken, NotTaken> {
  const answer = yield* ask(upstream, admission, "POST", `/${endpoint}`, { body: yield* jsonOf(input, texts) })
  const { body, headers, status } = answer
  const parsed = readJson(body)?.value
  if (status >= 200 && status < 300 && isJobId(parsed?.request_id)) {
    return { vendor_id: parsed.request_id, queue_position: whole(parsed.queue_position) }
  }
  if (status === 429) return yield* new VendorBusy({ words: yield* retryAfterOf(headers) })
  if (status === 400 || status === 404 || status === 413 || status === 422) {
    return yield* new JobRejected({ words: refusalOf(parsed) })
  }
  return yield* unavailable(answer)
})

const jobPath = (endpoint: string, vendor_id: string) => `/${endpoint}/requests/${encodeURIComponent(vendor_id)}`

export const standing = Effect.fnUntraced(function* (
  upstream: Upstream,
  admission: Admission,
  endpoint: string,
  vendor_id: string
): Effect.fn.Return<Standing, VendorUnavailable> {
  const answer = yield* ask(upstream, admission, "GET", `${jobPath(endpoint, vendor_id)}/status`, looking)
  if (answer.status === 404) return { how: "gone" }
  const parsed = answer.status < 300 ? readJson(answer.body)?.value : undefined
  switch (parsed?.status) {
    case "IN_QUEUE":
      return { how: "queued", queue_position: whole(parsed.queue_position) }
    case "IN_PROGRESS":
      return { how: "running" }
    case "COMPLETED":
      if (typeof parsed.error === "string")
        return { how: "failed", error: messageOf(parsed) ?? "the generation failed" }
      return {
        how: "completed",
        inference_time: isObject(parsed.metrics) ? seconds(parsed.metrics.inference_time) : null
      }
    case "FAILED":
    case "ERROR":
      return { how: "failed", error: messageOf(parsed) ?? "the generation failed" }
    case "CANCELLED":
    case "CANCELED":
      return { how: "cancelled" }
    default:
      return yield* unavailable(answer)
  }
})

export const result = Effect.fnUntraced(function* (
  upstream: Upstream,
  admission: Admission,
  endpoint: string,
  vendor_id: string
): Effect.fn.Return<Result, VendorUnavailable> {
  const answer = yield* ask(upstream, admission, "GET", jobPath(endpoint, vendor_id), { ...looking, long: longOutput })
  const { lost, status } = answer
  // The result would be equally long if it were requested again.
  if (lost !== undefined && status >= 200 && status < 300) {
    return { how: "failed", error_type: "media_failed", error: `the result is longer than ${answerMegabytesMax} MiB` }
  }
  if (status >= 200 && status < 300 && exceeded(answer.body, resultPartsMax, Infinity) !== undefined) {
    const error = `the result has more than ${resultPartsMax} values and names`
    return { how: "failed", error_type: "media_failed", error }
  }
  const parsed = readJson(answer.body)?.value
  if (status >= 200 && status < 300 && parsed !== undefined) return { how: "output", output: parsed }
  if (status === 400 || status === 422) {
    return { how: "failed", error_type: "media_rejected", error: messageOf(parsed) ?? "the request was rejected" }
  }
  return yield* unavailable(answer)
})

/** Asks the vendor to cancel a job. Returns `completed` if the job had already completed, otherwise `asked`. */
export const cancel = Effect.fnUntraced(function* (
  upstream: Upstream,
  admission: Admission,
  endpoint: string,
  vendor_id: string
): Effect.fn.Return<"asked" | "completed", VendorUnavailable> {
  const answer = yield* ask(upstream, admission, "PUT", `${jobPath(endpoint, vendor_id)}/cancel`)
  if (answer.status < 300 || answer.status === 404) return "asked"
  if (answer.status === 400) return "completed"
  return yield* unavailable(answer)
})
