/**
 * Polls a vendor once about a job. If the vendor reports that the job has ended, the poll ends and charges the job in one transaction. Polls of one
 * job never overlap. `Watch` limits how often clients cause polls.
 *
 * Where the specification is silent:
 * - If the vendor delivers fewer images than ordered, the charge is their share of the quote. An output is invalid if an image lacks a URL. The
 *   service fetches an invalid output again. If the output is still invalid, the job costs nothing.
 */
import { Clock, Deferred, Duration, Effect, FiberId } from "effect"
import type { Context, Scope } from "effect"
import { failure } from "../../books/gate/Gate.ts"
import type { Admission, Gate, Measured } from "../../books/gate/Gate.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Writer } from "../../books/ledger/write/Writer.ts"
import type { Nano } from "../../kernel/Money.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import * as Vendor from "../../upstream/generation/GenerationQueue.ts"
import type { Upstream, Upstreams } from "../../upstream/models/Upstreams.ts"
import { measuredOf } from "../metered/Measured.ts"
import { lifetime } from "./Job.ts"
import type { FailureType, Order } from "./Job.ts"
import type { End, Row, Rows } from "./Rows.ts"
import { Watch } from "./Watch.ts"

export interface Parts {
  readonly rows: Rows
  readonly writer: Context.Tag.Service<Writer>
  readonly gate: Context.Tag.Service<Gate>
  readonly upstreams: Context.Tag.Service<Upstreams>
  /** The polls' scope. A client that disconnects therefore does not interrupt a poll that others are waiting for. */
  readonly scope: Scope.Scope
  /** The watches of open jobs, by job id. */
  readonly watches: Map<string, Watch<Row>>
}

export const watchOf = ({ watches }: Parts, id: string, now: number): Watch<Row> => {
  let watch = watches.get(id)
  if (watch === undefined) watches.set(id, (watch = new Watch(now)))
  return watch
}

/** Polls the vendor and returns the job. Concurrent polls of one job share a single request. A client that polls too often gets the cached state. */
export const poll = (parts: Parts, row: Row, by: "client" | "service"): Effect.Effect<Row> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    if (row.settled === 1) return Effect.succeed(row)
    const watch = watchOf(parts, row.id, now)
    if (watch.polling !== undefined) return Deferred.await(watch.polling)
    if (by === "client" && !watch.pollPace.take(now)) return Effect.succeed(row)
    const polling = (watch.polling = Deferred.unsafeMake<Row>(FiberId.none))
    return Effect.interruptible(pollNow(parts, row, watch, by)).pipe(
      Effect.onExit((exit) => {
        watch.polling = undefined
        if (exit._tag === "Success" && exit.value.settled === 1) parts.watches.delete(row.id)
        return Deferred.done(polling, exit)
      }),
      Effect.forkIn(parts.scope),
      Effect.zipRight(Deferred.await(polling))
    )
  })

const pollNow = Effect.fnUntraced(function* (
  parts: Parts,
  row: Row,
  watch: Watch<Row>,
  by: "client" | "service"
): Effect.fn.Return<Row> {
  const admission = yield* parts.gate.resume(row.call)
  if (admission === undefined || row.vendor_id === null) return yield* endInterrupted(parts, row, admission)
  const upstream = parts.upstreams.get(row.upstream)
  const now = yield* Clock.currentTimeMillis
  if (upstream === undefined) {
    return yield* fail(parts, row, admission, "media_unavailable", "the vendor is no longer configured")
  }
  if (now - row.created_at > Duration.toMillis(lifetime)) {
    yield* Effect.ignore(Vendor.cancel(upstream, admission, row.endpoint, row.vendor_id))
    return yield* fail(parts, row, admission, "media_failed", "the job took longer than a day")
  }
  if (by === "service" && row.cancel_requested === 1) yield* cancelAt(parts, upstream, row, admission, now)
  const standing = yield* Effect.option(Vendor.standing(upstream, admission, row.endpoint, row.vendor_id))
  // The poll failed, so the previous state still applies.
  if (standing._tag === "None") return row
  switch (standing.value.how) {
    case "queued":
      return yield* progress(parts, row, "IN_QUEUE", standing.value.queue_position)
    case "running":
      return yield* progress(parts, row, "IN_PROGRESS", null)
    case "cancelled":
      return yield* endCancelled(parts, row, admission)
    case "gone":
      // A 404 may be temporary, even after a cancellation. A job that continues is charged.
      if (!watch.isOneMistakeTooMany()) return row
      return row.cancel_requested === 1
        ? yield* endCancelled(parts, row, admission)
        : yield* fail(parts, row, admission, "media_unavailable", "the vendor lost the job")
    case "failed":
      return yield* fail(parts, row, admission, "media_failed", standing.value.error)
    case "completed":
      return yield* complete(parts, upstream, row, watch, admission, standing.value.inference_time)
  }
})

/** Ends a job without a reservation. A job that has since been settled, or has a reservation but no vendor id yet, is returned unchanged. */
const endInterrupted = Effect.fnUntraced(function* (
  { rows, writer }: Parts,
  row: Row,
  admission: Admission | undefined
) {
  const current = (yield* rows.byId(row.id)) ?? row
  if (current.settled === 1 || admission !== undefined) return current
  const end: End = {
    status: "COMPLETED",
    cost: 0n,
    error: "the submission was interrupted",
    error_type: "media_failed"
  }
  const now = yield* Clock.currentTimeMillis
  yield* Effect.ignore(writer.submit({ postings: [], statements: [rows.end(row.id, end, now)] }))
  return (yield* rows.byId(row.id)) ?? current
})

/** Fetches the result of a job that the vendor reports as complete. If the result is valid, charges and ends the job. */
const complete = Effect.fnUntraced(function* (
  parts: Parts,
  upstream: Upstream,
  row: Row,
  watch: Watch<Row>,
  admission: Admission,
  inference_time: number | null
) {
  const result = yield* Effect.option(Vendor.result(upstream, admission, row.endpoint, row.vendor_id!))
  if (result._tag === "None") {
    return watch.isOneMistakeTooMany()
      ? yield* fail(parts, row, admission, "media_failed", "the result could not be fetched")
      : row
  }
  if (result.value.how === "failed")
    return yield* fail(parts, row, admission, result.value.error_type, result.value.error)
  const output = outputOf(row.type, result.value.output)
  if (output === undefined) {
    return watch.isOneMistakeTooMany()
      ? yield* fail(parts, row, admission, "media_failed", "the result is not valid")
      : row
  }
  const { cost, units } = deliveredOf(row, output)
  const measured = measuredOf(cost, units, row.provider)
  return yield* settle(parts, row, admission, measured, { status: "COMPLETED", cost, inference_time, output })
})

export const fail = (parts: Parts, row: Row, admission: Admission, error_type: FailureType, error: string) =>
  settle(parts, row, admission, failure(error_type), { status: "COMPLETED", cost: 0n, error_type, error })

const endCancelled = (parts: Parts, row: Row, admission: Admission) =>
  settle(parts, row, admission, failure("cancelled"), { status: "CANCELLED", cost: 0n })

/** Charges and ends the job in one transaction. If another writer has already ended the job, returns that result. */
const settle = Effect.fnUntraced(function* (
  { rows }: Parts,
  row: Row,
  admission: Admission,
  measured: Measured,
  end: End
) {
  const now = yield* Clock.currentTimeMillis
  yield* Effect.ignore(admission.settleBeside(measured, [rows.end(row.id, end, now)]))
  return (yield* rows.byId(row.id)) ?? row
})

const progress = Effect.fnUntraced(function* (
  { rows, writer }: Parts,
  row: Row,
  reported: "IN_QUEUE" | "IN_PROGRESS",
  queue_position: number | null
) {
  // A client that cancelled sees `CANCELLED` until the vendor reports that the job has ended.
  const status: Row["status"] = row.cancel_requested === 1 ? "CANCELLED" : reported
  if (row.status === status && row.queue_position === queue_position) return row
  const now = yield* Clock.currentTimeMillis
  const updated = { ...row, status, queue_position }
  return yield* writer.submit({ postings: [], statements: [rows.progress(row.id, status, queue_position, now)] }).pipe(
    Effect.flatMap(() => Effect.map(rows.byId(row.id), (current) => current ?? updated)),
    // The state is valid even if it cannot be written now.
    Effect.catchTag("BooksUnavailable", () => Effect.succeed(updated)),
    Effect.orDie
  )
})

/** Asks the vendor to cancel, at a limited rate, until it responds. Returns its response, now or earlier, or `undefined` if there is none. */
export const cancelAt = (
  parts: Parts,
  upstream: Upstream,
  row: Row,
  admission: Admission,
  now: number
): Effect.Effect<"asked" | "completed" | undefined> => {
  const watch = watchOf(parts, row.id, now)
  return watch.cancelled !== undefined || row.vendor_id === null || !watch.cancelPace.take(now)
    ? Effect.succeed(watch.cancelled)
    : Effect.match(Vendor.cancel(upstream, admission, row.endpoint, row.vendor_id), {
        onFailure: () => undefined,
        onSuccess: (answer) => (watch.cancelled = answer)
      })
}

/**
 * Returns an output's charge: the quote, or a share of it if fewer images than ordered arrived. Output beyond the order, such as a longer video, is
 * free.
 */
const deliveredOf = (
  row: Row,
  { images }: Record<string, unknown>
): { readonly cost: Nano; readonly units: number } => {
  const quote = fromRow(row.quote)
  if (row.type === "video" || !Array.isArray(images) || images.length >= row.units)
    return { cost: quote, units: row.units }
  const ordered = BigInt(row.units)
  const cost = (2n * quote * BigInt(images.length) + ordered) / (2n * ordered)
  return { cost, units: images.length }
}

/** The maximum nesting depth of an output. Much deeper JSON can be parsed but not serialized. */
const nestedMax = 1_000

const isShallow = (value: unknown, most = nestedMax): boolean =>
  typeof value !== "object" ||
  value === null ||
  (most > 0 && Object.values(value).every((one) => isShallow(one, most - 1)))

/** Returns the output in the documented shape, or `undefined` if the ordered file is missing or the nesting is too deep. */
export const outputOf = (type: Order["type"], output: Record<string, unknown>): Record<string, unknown> | undefined => {
  if (!isShallow(output)) return undefined
  if (type === "video") {
    const { video } = output
    return isObject(video) && isAddress(video.url) ? output : undefined
  }
  const { images } = output
  if (!Array.isArray(images) || images.length === 0) return undefined
  const complete = images.every((image: unknown) => isObject(image) && isAddress(image.url))
  return complete ? output : undefined
}

const isAddress = (url: unknown): boolean => typeof url === "string" && /^(https?:\/\/|data:)/.test(url)
