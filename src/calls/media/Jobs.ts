/**
 * Jobs of a generation vendor, from the quote to the charge. The quote is reserved while the job runs, by a call that outlives the process.
 * The job is settled once, in one transaction with its charge, by the first to see its end: a client that asks, or the service itself
 * (`layerJobs`), which polls every open job, also after a restart. Of two that see the end at once, on two nodes too, one settles it: the
 * job's row must not be settled (`Rows.end`), and the reservation must be there.
 *
 * Where the specification is silent:
 * - A generation job holds its quote by a reservation that belongs to no run of the process (`Gate.resume`). It is settled together with
 *   its row, by a client's look or the service's own, which come at growing distances. What came without a valid result after five looks,
 *   or takes longer than a day, has failed. A job that was being submitted when the process stopped is ended without a charge.
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
import * as Look from "./Look.ts"
import { jobOf } from "./Rows.ts"
import type { Row } from "./Rows.ts"

export interface JobsContract {
  /** Reserves the quote and hands the job to the vendor. `beside` stands or falls with the reservation. */
  readonly submit: (request: {
    readonly caller: Caller
    readonly order: Order
    readonly beside?: Claim["beside"]
  }) => Effect.Effect<Job, Vendor.NotTaken | GateRefusal>
  /**
   * The current state of the job, after a poll of the vendor unless polls were too frequent; `undefined` if the caller reaches no such job
   * on this route.
   */
  readonly look: (job: JobKey) => Effect.Effect<Job | undefined>
  /** The same for the job that this metered call made. */
  readonly ofCall: (made: {
    readonly caller: JobCaller
    readonly route: JobRoute
    readonly call: string
  }) => Effect.Effect<Job | undefined>
  /** A page of the caller's jobs in the state of their last polls, the newest first, and their number. */
  readonly page: (
    caller: JobCaller,
    route: JobRoute,
    page: PageOf
  ) => Effect.Effect<{ readonly jobs: ReadonlyArray<Job>; readonly total: number }>
  /** Asks the vendor to stop, best effort, and answers as `look` does. */
  readonly cancel: (job: JobKey) => Effect.Effect<Job | undefined, BooksUnavailable>
  /** The vendor's id of the job. */
  readonly vendorId: (request_id: string) => Effect.Effect<string | undefined>
  /** Makes the service's own looks that are due, and waits for them. */
  readonly turn: Effect.Effect<void>
  /** Looks after open jobs, and ends what programs that have ended left between its reservation and the vendor. */
  readonly jobs: ReadonlyArray<Loop.Job>
}

const loopName = "media jobs"
/** How many looks of the service's own one vendor answers at once. */
const looksAtOnce = 8

export class Jobs extends Context.Tag("tollgate/media/Jobs")<Jobs, JobsContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Jobs, make))
  /** Without it a job is settled when a client asks, or when the host runs `turn`. */
  static readonly layerJobs = Loop.layer(Jobs, ({ jobs }) => jobs)
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const gate = yield* Gate
  const upstreams = yield* Upstreams
  const versions = yield* PriceVersions
  const scope = yield* Effect.scope
  const waker = yield* Loop.waker
  const { cancelAt, fail, look: lookAt, rows, watches, watchOf } = Look.make({ sql, writer, gate, upstreams, scope })

  // ---- submitting -----------------------------------------------------------------------------------------------------------

  const submit: JobsContract["submit"] = Effect.fn("Jobs.submit")(function* ({ beside, caller, order }) {
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
    yield* gate.meter(claim, (admission) => handOver(upstream, admission, id, order, now))
    return jobOf((yield* rows.byId(id))!)
  })

  const handOver = (upstream: Upstream, admission: Admission, id: string, order: Order, now: number) =>
    Vendor.submit(upstream, admission, order.endpoint, order.input).pipe(
      Effect.catchAllCause((cause) => {
        // In one transaction: a call that is held and has no job would never end.
        const end = admission.settleBeside(failure(errorTypeOf(order, cause)), [rows.remove(id)])
        return Effect.zipRight(Effect.ignore(end), Effect.failCause(cause))
      }),
      Effect.flatMap((taken) => {
        // From here on the vendor has it: it is looked after even where the caller is told that the books are unavailable.
        watchOf(id, now)
        return admission.hold(undefined, [rows.take(id, taken, now)])
      }),
      Effect.ensuring(waker.wake)
    )

  // ---- looking --------------------------------------------------------------------------------------------------------------

  const looked = (row: Row | undefined): Effect.Effect<Job | undefined> =>
    row === undefined ? Effect.succeed(undefined) : Effect.map(lookAt(row, "client"), jobOf)

  const look: JobsContract["look"] = ({ caller, request_id, route }) =>
    Effect.flatMap(rows.ofCaller(caller, route, "id", request_id), looked).pipe(Effect.withSpan("Jobs.look"))

  const ofCall: JobsContract["ofCall"] = ({ call, caller, route }) =>
    Effect.flatMap(rows.ofCaller(caller, route, "call", call), looked)

  const vendorId: JobsContract["vendorId"] = (id) => Effect.map(rows.byId(id), (row) => row?.vendor_id ?? undefined)

  const cancel: JobsContract["cancel"] = Effect.fn("Jobs.cancel")(function* ({ caller, request_id, route }) {
    const row = yield* rows.ofCaller(caller, route, "id", request_id)
    if (row === undefined) return undefined
    if (row.settled === 1) return jobOf(row)
    const admission = yield* gate.resume(row.call)
    const upstream = upstreams.get(row.upstream)
    if (admission !== undefined && upstream !== undefined) {
      const now = yield* Clock.currentTimeMillis
      const answer = yield* cancelAt(upstream, row, admission, now)
      // A request that did not reach the vendor is repeated at the service's next poll.
      if (answer !== "completed" && row.cancel_requested === 0) {
        yield* Statements.write(writer, rows.requestCancel(request_id, now))
      }
    }
    return yield* looked((yield* rows.byId(request_id)) ?? row)
  })

  // ---- the service's own looks ----------------------------------------------------------------------------------------------

  const permits = new Map([...upstreams.keys()].map((name) => [name, Effect.unsafeMakeSemaphore(looksAtOnce)]))

  const lookAfter = Effect.fnUntraced(function* (id: string) {
    const row = yield* rows.byId(id)
    if (row === undefined || row.settled === 1) return watches.delete(id)
    const look = lookAt(row, "service")
    yield* permits.get(row.upstream)?.withPermits(1)(look) ?? look
  })

  /** Begins the looks that are due. The pause is until the next one; `undefined` where no job is open. */
  const begin = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const looks: Array<Fiber.Fiber<unknown>> = []
    let pause = Number.POSITIVE_INFINITY
    for (const [id, watch] of watches) {
      if (watch.wait(now) === 0 && watch.begin(now)) {
        const look = Effect.ensuring(
          lookAfter(id),
          Effect.sync(() => watch.end())
        )
        looks.push(
          yield* Effect.forkIn(
            Loop.each(loopName, [id], String, () => look),
            scope
          )
        )
      }
      pause = Math.min(pause, watch.wait(now))
    }
    return { looks, pause: pause === Number.POSITIVE_INFINITY ? undefined : pause }
  })

  /** Watches the open jobs, those too that another node was asked for. */
  const watchAll = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (const { id } of yield* rows.running) watchOf(id, now)
  })
  yield* watchAll

  /** Forgets the jobs whose end another node has seen. None is open for longer than its lifetime. */
  const forget = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (const [id, { since }] of watches) {
      if (now - since <= Duration.toMillis(lifetime)) continue
      if ((yield* rows.byId(id))?.settled !== 0) watches.delete(id)
    }
  })

  /** Ends what runs that have ended left between its reservation and the vendor. */
  const reclaim = Effect.gen(function* () {
    const orphans = yield* Effect.filter(yield* rows.submitting, ({ call }) => gate.isOrphan(call))
    // Whether the vendor has them is unknown. Their ids were not handed out, and no call is charged.
    yield* Loop.each(
      loopName,
      orphans,
      ({ id }) => id,
      (row) =>
        Effect.flatMap(gate.resume(row.call), (admission) =>
          admission === undefined
            ? lookAt(row, "service")
            : fail(row, admission, "media_failed", "the service stopped while it was submitted")
        )
    )
  })
  yield* Effect.catchAllCause(reclaim, (cause) =>
    Effect.logError("the media jobs of runs that have ended could not be ended", cause)
  )

  return {
    submit,
    look,
    ofCall,
    page: (caller, route, page) =>
      Effect.map(rows.page(caller, route, page), ({ rows, total }) => ({ jobs: rows.map(jobOf), total })),
    cancel,
    vendorId,
    turn: Effect.flatMap(begin, ({ looks }) => Fiber.awaitAll(looks)),
    jobs: [
      // Its looks are not waited for: a vendor that is silent must not hold up the jobs of others.
      { name: loopName, turn: Effect.map(begin, ({ pause }) => pause), waker, takeOver: watchAll },
      {
        name: "abandoned media jobs",
        turn: Effect.as(Effect.zipRight(forget, reclaim), Duration.minutes(1)),
        everywhere: true
      }
    ]
  } satisfies JobsContract
})

/** The `error_type` of a job that the vendor did not accept. */
const errorTypeOf = ({ error_types }: Order, cause: Cause.Cause<Vendor.NotTaken>): string => {
  const no = Option.getOrUndefined(Cause.failureOption(cause))
  if (no !== undefined) return error_types[no._tag]
  return Cause.isInterrupted(cause) ? "client_disconnected" : "internal_error"
}
