/**
 * Runs a generation vendor's jobs, from the quote to the charge. A call can outlive the process, so it reserves the quote while the job runs. The
 * first poll that finds the job ended, by a client or by the service (`layerJobs`), settles the job and its charge in one transaction. The service
 * polls every open job, even after a restart. Concurrent polls settle a job only once, even on two nodes: the transaction requires an unsettled row
 * (`Rows.end`) and an open reservation.
 *
 * Where the specification is silent:
 * - If the process stops, a generation job's quote remains reserved (`Gate.resume`). A poll by a client or by the service settles it together with
 *   the job's row. The service polls at growing intervals. A job fails if it still has no valid result after five polls, or if it takes longer than a
 *   day. A job whose submission was interrupted when the process stopped ends without a charge.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Clock, Context, Duration, Effect, Fiber, Layer, Option } from "effect"
import { failure, Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as Ids from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import type { PageOf } from "../../kernel/Page.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import * as Vendor from "../../upstream/generation/GenerationQueue.ts"
import { Upstreams } from "../../upstream/models/Upstreams.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import { lifetime, quoteOf } from "./Job.ts"
import type { Job, JobCaller, JobKey, JobRoute, Order } from "./Job.ts"
import * as Poll from "./Poll.ts"
import * as Rows from "./Rows.ts"
import type { Row } from "./Rows.ts"

export interface JobsContract {
  /** Reserves the quote and submits the job to the vendor. `beside` is committed together with the reservation. */
  readonly submit: (request: {
    readonly caller: Caller
    readonly order: Order
    readonly beside?: Claim["beside"]
  }) => Effect.Effect<Job, Vendor.NotTaken | GateRefusal>
  /** Returns the job's state, or `undefined` if the caller may not access it. Polls the vendor first, unless polls are too frequent. */
  readonly poll: (job: JobKey) => Effect.Effect<Job | undefined>
  /** Works like `poll`, for the job of this metered call. */
  readonly ofCall: (made: {
    readonly caller: JobCaller
    readonly route: JobRoute
    readonly call: string
  }) => Effect.Effect<Job | undefined>
  /** Returns a page of the caller's jobs, newest first, as of their last polls and without outputs. Also returns the number of jobs. */
  readonly page: (
    caller: JobCaller,
    route: JobRoute,
    page: PageOf
  ) => Effect.Effect<{ readonly jobs: ReadonlyArray<Job>; readonly total: number }>
  /** Asks the vendor to cancel the job, without a guarantee, and returns the result of `poll`. */
  readonly cancel: (job: JobKey) => Effect.Effect<Job | undefined, BooksUnavailable>
  /** Returns the vendor's id for the job. */
  readonly vendorId: (request_id: string) => Effect.Effect<string | undefined>
  /** Runs the service's due polls and waits for them. */
  readonly turn: Effect.Effect<void>
  /** Loops that poll open jobs and end jobs that a stopped process reserved but did not finish submitting. */
  readonly jobs: ReadonlyArray<Loop.Job>
}

const loopName = "media jobs"
/** The maximum number of concurrent polls by the service, per vendor. */
const pollsAtOnce = 8

export class Jobs extends Context.Tag("tollgate/media/Jobs")<Jobs, JobsContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Jobs, make))
  /** Runs `jobs` in the background. Without them, a generation job is settled only when a client polls or the host runs `turn`. */
  static readonly layerJobs = Loop.layer(Jobs, ({ jobs }) => jobs)
}

interface Parts extends Poll.Parts {
  readonly versions: PriceVersions["Type"]
  readonly waker: Loop.Waker
  /** Limits the service's polls, by upstream name. */
  readonly permits: ReadonlyMap<string, Effect.Semaphore>
}

const make = Effect.gen(function* () {
  const upstreams = yield* Upstreams
  const parts: Parts = {
    rows: Rows.make(yield* SqlClient),
    writer: yield* Writer,
    gate: yield* Gate,
    upstreams,
    versions: yield* PriceVersions,
    scope: yield* Effect.scope,
    waker: yield* Loop.waker,
    watches: new Map(),
    permits: new Map([...upstreams.keys()].map((name) => [name, Effect.unsafeMakeSemaphore(pollsAtOnce)]))
  }
  yield* watchAll(parts)
  yield* Effect.catchAllCause(reclaim(parts), (cause) =>
    Effect.logError("abandoned media jobs could not be ended", cause)
  )
  return {
    submit: submit(parts),
    poll: poll(parts),
    ofCall: ofCall(parts),
    page: page(parts),
    cancel: cancel(parts),
    vendorId: (id) => Effect.map(parts.rows.byId(id), (row) => row?.vendor_id ?? undefined),
    turn: Effect.flatMap(begin(parts), ({ polls }) => Fiber.awaitAll(polls)),
    jobs: loops(parts)
  } satisfies JobsContract
})

const loops = (parts: Parts): JobsContract["jobs"] => [
  // The loop does not wait for the polls, because one unresponsive vendor must not delay other vendors' jobs.
  {
    name: loopName,
    turn: Effect.map(begin(parts), ({ pause }) => pause),
    waker: parts.waker,
    takeOver: watchAll(parts)
  },
  {
    name: "abandoned media jobs",
    turn: Effect.as(Effect.zipRight(unwatchEnded(parts), reclaim(parts)), Duration.minutes(1)),
    everywhere: true
  }
]

// ---- submitting -----------------------------------------------------------------------------------------------------------

const submit = (parts: Parts): JobsContract["submit"] =>
  Effect.fn("Jobs.submit")(function* ({ beside, caller, order }) {
    const { gate, rows, upstreams, versions } = parts
    const upstream = upstreams.get(order.upstream)
    if (upstream === undefined) {
      return yield* new Vendor.VendorUnavailable({ reason: `there is no upstream ${order.upstream}` })
    }
    const now = yield* Clock.currentTimeMillis
    const id = Ids.at("med", now)
    const quote = quoteOf(order)
    const claim: Claim = {
      caller,
      usage_type: "tool",
      // A job's route name is also its capability.
      capability: order.route,
      endpoint: order.usage_endpoint,
      model: order.model,
      provider: order.provider,
      price: yield* versions.of([{ quantity: "units", unit: order.unit, price: order.price }]),
      most: quote,
      least: quote,
      held: true,
      beside: (call) => [
        rows.insert(id, call, caller, order, quote, now),
        ...(beside === undefined ? [] : beside(call))
      ]
    }
    const rates = yield* gate.meter(claim, (admission) => handOver(parts, upstream, admission, id, order, now))
    const job = Rows.jobOf((yield* rows.byId(id))!)
    return rates === undefined ? job : { ...job, rates }
  })

const handOver = (parts: Parts, upstream: Upstream, admission: Admission, id: string, order: Order, now: number) =>
  Vendor.submit(upstream, admission, order.endpoint, order.input, order.texts).pipe(
    Effect.catchAllCause((cause) => {
      // Both changes form one transaction, because a held call without a job would never end.
      const end = admission.settleBeside(failure(errorTypeOf(order, cause)), [parts.rows.remove(id)])
      return Effect.zipRight(Effect.ignore(end), Effect.failCause(cause))
    }),
    Effect.flatMap((taken) => {
      // The vendor has accepted the job, so it is polled even if the caller gets "books unavailable".
      Poll.watchOf(parts, id, now)
      return admission.hold(admission.rates, [parts.rows.take(id, taken, now)])
    }),
    Effect.ensuring(parts.waker.wake)
  )

// ---- polling --------------------------------------------------------------------------------------------------------------

const polled = (parts: Parts, row: Row | undefined): Effect.Effect<Job | undefined> =>
  row === undefined ? Effect.succeed(undefined) : Effect.map(Poll.poll(parts, row, "client"), Rows.jobOf)

const poll =
  (parts: Parts): JobsContract["poll"] =>
  ({ caller, request_id, route }) =>
    Effect.flatMap(parts.rows.ofCaller(caller, route, "id", request_id), (row) => polled(parts, row)).pipe(
      Effect.withSpan("Jobs.poll")
    )

const ofCall =
  (parts: Parts): JobsContract["ofCall"] =>
  ({ call, caller, route }) =>
    Effect.flatMap(parts.rows.ofCaller(caller, route, "call", call), (row) => polled(parts, row))

const page =
  ({ rows }: Parts): JobsContract["page"] =>
  (caller, route, page) =>
    Effect.map(rows.page(caller, route, page), ({ rows, total }) => ({ jobs: rows.map(Rows.jobOf), total }))

const cancel = (parts: Parts): JobsContract["cancel"] =>
  Effect.fn("Jobs.cancel")(function* ({ caller, request_id, route }) {
    const { gate, rows, upstreams, writer } = parts
    const row = yield* rows.ofCaller(caller, route, "id", request_id)
    if (row === undefined) return undefined
    if (row.settled === 1) return Rows.jobOf(row)
    const admission = yield* gate.resume(row.call)
    const upstream = upstreams.get(row.upstream)
    if (admission !== undefined && upstream !== undefined) {
      const now = yield* Clock.currentTimeMillis
      const answer = yield* Poll.cancelAt(parts, upstream, row, admission, now)
      // If the request did not reach the vendor, the service's next poll repeats it.
      if (answer !== "completed" && row.cancel_requested === 0) {
        yield* Statements.write(writer, rows.requestCancel(request_id, now))
      }
    }
    return yield* polled(parts, (yield* rows.byId(request_id)) ?? row)
  })

// ---- the service's polls --------------------------------------------------------------------------------------------------

const pollAgain = Effect.fnUntraced(function* (parts: Parts, id: string) {
  const { permits, rows, watches } = parts
  const row = yield* rows.byId(id)
  if (row === undefined || row.settled === 1) return watches.delete(id)
  const poll = Poll.poll(parts, row, "service")
  yield* permits.get(row.upstream)?.withPermits(1)(poll) ?? poll
})

/** Starts the polls that are due. `pause` is the time until the next poll in milliseconds, or `undefined` if no job is watched. */
const begin = Effect.fnUntraced(function* (parts: Parts) {
  const { scope, watches } = parts
  const now = yield* Clock.currentTimeMillis
  const polls: Array<Fiber.Fiber<unknown>> = []
  let pause = Number.POSITIVE_INFINITY
  for (const [id, watch] of watches) {
    if (watch.wait(now) === 0 && watch.begin(now)) {
      const poll = Effect.ensuring(
        pollAgain(parts, id),
        Effect.sync(() => watch.end())
      )
      polls.push(
        yield* Effect.forkIn(
          Loop.each(loopName, [id], String, () => poll),
          scope
        )
      )
    }
    pause = Math.min(pause, watch.wait(now))
  }
  return { polls, pause: pause === Number.POSITIVE_INFINITY ? undefined : pause }
})

/** Watches all open jobs, including those that other nodes submitted. */
const watchAll = Effect.fnUntraced(function* (parts: Parts) {
  const now = yield* Clock.currentTimeMillis
  for (const { id } of yield* parts.rows.running) Poll.watchOf(parts, id, now)
})

/** Stops watching jobs that another node has ended. A job ends soon after its lifetime, so only older jobs are checked. */
const unwatchEnded = Effect.fnUntraced(function* ({ rows, watches }: Parts) {
  const now = yield* Clock.currentTimeMillis
  for (const [id, { since }] of watches) {
    if (now - since <= Duration.toMillis(lifetime)) continue
    if ((yield* rows.byId(id))?.settled !== 0) watches.delete(id)
  }
})

/** Ends jobs that stopped processes reserved but did not finish submitting. */
const reclaim = Effect.fnUntraced(function* (parts: Parts) {
  const { gate, rows } = parts
  const orphans = yield* Effect.filter(yield* rows.submitting, ({ call }) => gate.isOrphan(call))
  // The vendor may have the job, but no client knows its id, and nothing is charged.
  yield* Loop.each(
    loopName,
    orphans,
    ({ id }) => id,
    (row) =>
      Effect.flatMap(gate.resume(row.call), (admission) =>
        admission === undefined
          ? Poll.poll(parts, row, "service")
          : Poll.fail(parts, row, admission, "media_failed", "the service stopped while the job was being submitted")
      )
  )
})

/** Returns the usage record's `error_type` for a job that the vendor did not accept. */
const errorTypeOf = ({ error_types }: Order, cause: Cause.Cause<Vendor.NotTaken>): string => {
  const no = Option.getOrUndefined(Cause.failureOption(cause))
  if (no !== undefined) return error_types[no._tag]
  return Cause.isInterrupted(cause) ? "client_disconnected" : "internal_error"
}
