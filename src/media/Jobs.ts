/**
 * Jobs of a generation vendor, from the quote to the charge. The quote is reserved while the job runs, by a call that outlives
 * the process; the job is settled once, in one transaction with its charge, by whoever sees its end first: a client that asks, or
 * the service itself, which looks after every open job, also after a restart.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Deferred, Duration, Effect, FiberId, Layer } from "effect"
import { failure, Gate } from "../gate/Gate.ts"
import type { Admission, Measured } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Beside } from "../idempotency/Idempotency.ts"
import * as Ids from "../kernel/Ids.ts"
import * as Loop from "../kernel/Loop.ts"
import type { AccountId } from "../kernel/Ids.ts"
import { fromRow } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import type { UnitPrice } from "../kernel/Price.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { isObject } from "../upstream/Failures.ts"
import * as Vendor from "../upstream/GenerationQueue.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import type { Upstream } from "../upstream/Upstreams.ts"
import { Watch } from "./Watch.ts"

/** What is to be made, at which price. */
export interface Order {
  /** The route that took it; others do not see it. */
  readonly route: "media" | "images"
  readonly type: "video" | "image"
  readonly model: string
  readonly provider: string
  readonly upstream: string
  readonly endpoint: string
  readonly input: Record<string, unknown>
  readonly units: number
  readonly unit: string
  readonly price: UnitPrice
}

/** Why a generation came to nothing. */
export type FailureType = "media_rejected" | "media_failed" | "media_rate_limited" | "media_unavailable"

export interface Job {
  readonly id: string
  readonly model: string
  readonly provider: string
  readonly status: "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "CANCELLED"
  readonly queue_position: number | null
  readonly units: number
  readonly unit: string
  readonly quote: Nano
  readonly settled: boolean
  /** The charge, once it is settled. */
  readonly cost: Nano
  readonly inference_time: number | null
  /** A valid result: `null` until there is one. */
  readonly output: Record<string, unknown> | null
  readonly error: string | null
  readonly error_type: FailureType | null
}

export interface Contract {
  /** Reserves the quote and hands the job to the vendor; `refuse` makes a problem of the vendor's no. */
  readonly submit: <E extends ProblemInstance<string>>(
    caller: Caller,
    order: Order,
    beside: Beside | undefined,
    refuse: (no: Vendor.NotTaken) => E
  ) => Effect.Effect<Job, E | InsufficientCredits | BooksUnavailable>
  /**
   * The job as it stands now, after a look at the vendor, unless that has been asked too often; `undefined` where the account has
   * no such job on this route.
   */
  readonly look: (account: AccountId, route: Order["route"], id: string) => Effect.Effect<Job | undefined>
  /** The same for the job that this call made. */
  readonly ofCall: (account: AccountId, route: Order["route"], call: string) => Effect.Effect<Job | undefined>
  /** Asks the vendor to stop, best effort, and answers as `look` does. */
  readonly cancel: (account: AccountId, route: Order["route"], id: string) => Effect.Effect<Job | undefined>
  /** What the vendor calls the job. */
  readonly vendorId: (id: string) => Effect.Effect<string | undefined>
}

/** How long a job may take before it counts as failed. */
export const lifetime = Duration.hours(24)
const loopName = "media jobs"

export class Jobs extends Context.Tag("tollgate/media/Jobs")<Jobs, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Jobs, make))
}

interface Row {
  readonly id: string
  readonly call: string
  readonly account_id: AccountId
  readonly type: Order["type"]
  readonly model: string
  readonly provider: string
  readonly upstream: string
  readonly endpoint: string
  readonly vendor_id: string | null
  readonly status: Job["status"] | "SUBMITTING"
  readonly queue_position: number | null
  readonly units: number
  readonly unit: string
  readonly quote: string
  readonly settled: number
  readonly cost: string
  readonly inference_time: number | null
  readonly output: string | null
  readonly error: string | null
  readonly error_type: FailureType | null
  readonly cancel_requested: number
  readonly created_at: number
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const gate = yield* Gate
  const upstreams = yield* Upstreams
  const versions = yield* PriceVersions
  const scope = yield* Effect.scope
  const waker = yield* Loop.waker
  const watched = new Map<string, Watch<Row>>()
  const watchOf = (id: string, now: number): Watch<Row> => {
    let watch = watched.get(id)
    if (watch === undefined) watched.set(id, (watch = new Watch(now)))
    return watch
  }

  const write = (...statements: ReadonlyArray<Statement>) => Effect.orDie(writer.submit({ postings: [], statements }))

  const columns = sql.literal(`id, call, account_id, type, model, provider, upstream, endpoint, vendor_id, status,
    queue_position, units, unit, CAST(quote AS TEXT) AS quote, settled, CAST(cost AS TEXT) AS cost, inference_time, output,
    error, error_type, cancel_requested, created_at`)

  const byId = (id: string) =>
    Effect.map(Effect.orDie(sql<Row>`SELECT ${columns} FROM tollgate_media_jobs WHERE id = ${id}`), ([row]) => row)

  const ofAccount = (account: AccountId, route: Order["route"], column: "id" | "call", value: string) =>
    Effect.map(
      Effect.orDie(
        sql<Row>`SELECT ${columns} FROM tollgate_media_jobs WHERE ${sql(column)} = ${value} AND account_id = ${account}
          AND route = ${route} AND status <> 'SUBMITTING'`
      ),
      ([row]) => row
    )

  // ---- submit -------------------------------------------------------------------------------------------------------------

  const submit: Contract["submit"] = (caller, order, beside, refuse) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const id = Ids.at("med", now)
      const quote = charge([{ units: order.units, price: order.price }])
      const upstream = upstreams.get(order.upstream)!
      const price = yield* versions.of([{ quantity: "units", unit: order.unit, price: order.price }])
      const row = (call: string) =>
        statement(
          sql`INSERT INTO tollgate_media_jobs ${sql.insert({
            id,
            call,
            account_id: caller.account_id,
            route: order.route,
            type: order.type,
            model: order.model,
            provider: order.provider,
            upstream: order.upstream,
            endpoint: order.endpoint,
            status: "SUBMITTING",
            units: order.units,
            unit: order.unit,
            quote,
            settled: 0,
            cost: 0n,
            cancel_requested: 0,
            created_at: now,
            updated_at: now
          })}`
        )
      const claim = {
        caller,
        usage_type: "tool",
        endpoint: `${order.route}/generate`,
        model: order.model,
        provider: order.provider,
        price,
        most: quote,
        least: quote,
        held: true,
        beside: (call: string) => [row(call), ...(beside === undefined ? [] : beside(call))]
      } as const
      yield* gate.meter(claim, (admission) =>
        Vendor.submit(upstream, admission, order.endpoint, order.input).pipe(
          Effect.catchAll((no) => {
            const problem = refuse(no)
            // In one transaction: a call that is held and has no job would never end.
            const gone = statement(sql`DELETE FROM tollgate_media_jobs WHERE id = ${id}`)
            const end = admission.settleBeside(failure(problem.body.code ?? problem._tag), [gone])
            return Effect.zipRight(Effect.ignore(end), Effect.fail(problem))
          }),
          Effect.flatMap(({ queue_position, vendor_id }) => {
            // From here on the vendor has it: it is looked after even where the caller is told that the books are unavailable.
            watchOf(id, now)
            return admission.hold(undefined, [
              statement(sql`UPDATE tollgate_media_jobs SET vendor_id = ${vendor_id}, status = 'IN_QUEUE',
                queue_position = ${queue_position}, updated_at = ${now} WHERE id = ${id}`)
            ])
          }),
          Effect.ensuring(waker.wake)
        )
      )
      return jobOf((yield* byId(id))!)
    })

  // ---- looking ------------------------------------------------------------------------------------------------------------

  const lookBy = (column: "id" | "call"): Contract["look"] =>
    Effect.fn("Jobs.look")(function* (account, route, value) {
      const row = yield* ofAccount(account, route, column, value)
      return row === undefined ? undefined : jobOf(yield* observed(row, "client"))
    })
  const look = lookBy("id")
  const ofCall = lookBy("call")

  /**
   * The job after a look at the vendor. Looks at one job never overlap: who comes while one is under way waits for that, whoever
   * began it has left or not; a client who comes too often sees what is known.
   */
  const observed = (row: Row, by: "client" | "service"): Effect.Effect<Row> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (row.settled === 1) return Effect.succeed(row)
      const watch = watchOf(row.id, now)
      if (watch.looking !== undefined) return Deferred.await(watch.looking)
      if (by === "client" && !watch.lookPace.take(now)) return Effect.succeed(row)
      const looking = (watch.looking = Deferred.unsafeMake<Row>(FiberId.none))
      return Effect.interruptible(seen(row, watch, by)).pipe(
        Effect.onExit((exit) => {
          watch.looking = undefined
          if (exit._tag === "Success" && exit.value.settled === 1) watched.delete(row.id)
          return Deferred.done(looking, exit)
        }),
        Effect.forkIn(scope),
        Effect.zipRight(Deferred.await(looking))
      )
    })

  /** Asks the vendor; what is over for it is settled here. */
  const seen = Effect.fnUntraced(function* (
    row: Row,
    watch: Watch<Row>,
    by: "client" | "service"
  ): Effect.fn.Return<Row> {
    const admission = yield* gate.resume(row.call)
    // Nothing is reserved for it any more. Either it was settled a moment ago, or its submission broke off.
    if (admission === undefined || row.vendor_id === null) {
      const current = (yield* byId(row.id)) ?? row
      if (current.settled === 1 || admission !== undefined) return current
      const gone = ended(current, "COMPLETED", 0n, { error: "it was interrupted", error_type: "media_failed" })
      yield* Effect.ignore(writer.submit({ postings: [], statements: [yield* gone] }))
      return (yield* byId(row.id)) ?? current
    }
    const upstream = upstreams.get(row.upstream)
    const now = yield* Clock.currentTimeMillis
    if (upstream === undefined) {
      return yield* fail(row, admission, "media_unavailable", "the configuration names its vendor no more")
    }
    if (now - row.created_at > Duration.toMillis(lifetime)) {
      yield* Effect.ignore(Vendor.cancel(upstream, admission, row.endpoint, row.vendor_id))
      return yield* fail(row, admission, "media_failed", "it took longer than a day")
    }
    if (by === "service" && row.cancel_requested === 1) yield* cancelAt(upstream, row, admission, watch, now)
    const standing = yield* Effect.either(Vendor.standing(upstream, admission, row.endpoint, row.vendor_id))
    // It could not be asked just now: what was known stands.
    if (standing._tag === "Left") return row
    switch (standing.right.how) {
      case "queued":
        return yield* stands(row, "IN_QUEUE", standing.right.queue_position)
      case "running":
        return yield* stands(row, "IN_PROGRESS", null)
      case "cancelled":
        return yield* settle(row, admission, failure("cancelled"), ended(row, "CANCELLED", 0n))
      case "gone":
        // After a cancel too: a job that runs on is charged, and a 404 may be a mistake of the moment.
        if (!watch.struck()) return row
        return row.cancel_requested === 1
          ? yield* settle(row, admission, failure("cancelled"), ended(row, "CANCELLED", 0n))
          : yield* fail(row, admission, "media_unavailable", "the vendor lost it")
      case "failed":
        return yield* fail(row, admission, "media_failed", standing.right.error)
      case "completed":
        return yield* fetched(row, watch, admission, standing.right.inference_time)
    }
  })

  /** The vendor says that it is done: charged if what it made is there, and is what was asked for. */
  const fetched = Effect.fnUntraced(function* (
    row: Row,
    watch: Watch<Row>,
    admission: Admission,
    inference_time: number | null
  ) {
    const upstream = upstreams.get(row.upstream)!
    const result = yield* Effect.either(Vendor.result(upstream, admission, row.endpoint, row.vendor_id!))
    if (result._tag === "Left") {
      return watch.struck() ? yield* fail(row, admission, "media_failed", "its result could not be fetched") : row
    }
    if (result.right.how === "failed") return yield* fail(row, admission, result.right.error_type, result.right.error)
    const output = outputOf(row.type, result.right.output)
    if (output === undefined) {
      return watch.struck() ? yield* fail(row, admission, "media_failed", "its result is not valid") : row
    }
    // The quote, whatever was made: a longer video than was asked for is the vendor's affair.
    const cost = fromRow(row.quote)
    const measured: Measured = {
      cost,
      prompt_tokens: 0,
      completion_tokens: 0,
      units: row.units,
      provider: row.provider,
      success: true,
      error_type: null,
      usage_source: "counted"
    }
    return yield* settle(row, admission, measured, ended(row, "COMPLETED", cost, { inference_time, output }))
  })

  const fail = (row: Row, admission: Admission, error_type: FailureType, error: string) =>
    settle(row, admission, failure(error_type), ended(row, "COMPLETED", 0n, { error_type, error }))

  /** Charge and end in one transaction; lost to somebody who was faster, their end is the one. */
  const settle = Effect.fnUntraced(function* (
    row: Row,
    admission: Admission,
    measured: Measured,
    ended: Effect.Effect<Statement>
  ) {
    yield* Effect.ignore(admission.settleBeside(measured, [yield* ended]))
    return (yield* byId(row.id)) ?? row
  })

  const ended = (
    row: Row,
    status: "COMPLETED" | "CANCELLED",
    cost: Nano,
    more: {
      readonly error_type?: FailureType
      readonly error?: string
      readonly output?: Record<string, unknown>
      readonly inference_time?: number | null
    } = {}
  ): Effect.Effect<Statement> =>
    Effect.map(Clock.currentTimeMillis, (now) =>
      statement(
        sql`UPDATE tollgate_media_jobs SET status = ${status}, settled = 1, cost = ${cost}, queue_position = NULL,
          error_type = ${more.error_type ?? null}, error = ${more.error?.slice(0, 2_000) ?? null},
          output = ${more.output === undefined ? null : JSON.stringify(more.output)},
          inference_time = ${more.inference_time ?? null}, updated_at = ${now}
          WHERE id = ${row.id} AND settled = 0 RETURNING id`,
        1
      )
    )

  const stands = Effect.fnUntraced(function* (
    row: Row,
    status: "IN_QUEUE" | "IN_PROGRESS",
    queue_position: number | null
  ) {
    // Who has cancelled sees that, until the vendor says how it ended.
    const shown: Row["status"] = row.cancel_requested === 1 ? "CANCELLED" : status
    if (row.status === shown && row.queue_position === queue_position) return row
    const now = yield* Clock.currentTimeMillis
    const seen = { ...row, status: shown, queue_position }
    return yield* writer
      .submit({
        postings: [],
        statements: [
          statement(sql`UPDATE tollgate_media_jobs SET status = ${shown}, queue_position = ${queue_position}, updated_at = ${now}
            WHERE id = ${row.id} AND settled = 0`)
        ]
      })
      .pipe(
        Effect.flatMap(() => Effect.map(byId(row.id), (current) => current ?? seen)),
        // It is so whether that can be written just now or not.
        Effect.catchTag("BooksUnavailable", () => Effect.succeed(seen)),
        Effect.orDie
      )
  })

  // ---- cancelling ---------------------------------------------------------------------------------------------------------

  const cancel: Contract["cancel"] = Effect.fn("Jobs.cancel")(function* (account, route, id) {
    const row = yield* ofAccount(account, route, "id", id)
    if (row === undefined) return undefined
    if (row.settled === 1) return jobOf(row)
    const admission = yield* gate.resume(row.call)
    const upstream = upstreams.get(row.upstream)
    if (admission !== undefined && upstream !== undefined) {
      const now = yield* Clock.currentTimeMillis
      const answer = yield* cancelAt(upstream, row, admission, watchOf(id, now), now)
      // What the vendor was not asked, or did not hear, it is asked again at the service's next look.
      if (answer !== "completed" && row.cancel_requested === 0) {
        yield* write(
          statement(sql`UPDATE tollgate_media_jobs SET cancel_requested = 1, status = 'CANCELLED', updated_at = ${now}
            WHERE id = ${id} AND settled = 0`)
        )
      }
    }
    return jobOf(yield* observed((yield* byId(id)) ?? row, "client"))
  })

  /** Asks the vendor to stop until it has heard that, but not too often. */
  const cancelAt = (
    upstream: Upstream,
    row: Row,
    admission: Admission,
    watch: Watch<Row>,
    now: number
  ): Effect.Effect<"asked" | "completed" | undefined> =>
    watch.cancelled !== undefined || row.vendor_id === null || !watch.cancelPace.take(now)
      ? Effect.succeed(watch.cancelled)
      : Effect.match(Vendor.cancel(upstream, admission, row.endpoint, row.vendor_id), {
          onFailure: () => undefined,
          onSuccess: (answer) => (watch.cancelled = answer)
        })

  const vendorId = (id: string) => Effect.map(byId(id), (row) => row?.vendor_id ?? undefined)

  // ---- the service's own eye ------------------------------------------------------------------------------------------------

  /** So many looks of the service's own at a vendor at once. */
  const turns = new Map([...upstreams.keys()].map((name) => [name, Effect.unsafeMakeSemaphore(8)]))

  const lookAfter = Effect.fnUntraced(function* (id: string) {
    const row = yield* byId(id)
    if (row === undefined || row.settled === 1) return watched.delete(id)
    const look = observed(row, "service")
    yield* turns.get(row.upstream)?.withPermits(1)(look) ?? look
  })

  // The looks of a turn are not waited for: a vendor that is silent must not hold up the jobs of others.
  const turn = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    let wait = Number.POSITIVE_INFINITY
    for (const [id, watch] of watched) {
      if (watch.wait(now) === 0 && watch.begin(now)) {
        const look = Effect.ensuring(
          lookAfter(id),
          Effect.sync(() => watch.end())
        )
        yield* Effect.forkIn(
          Loop.each(loopName, [id], String, () => look),
          scope
        )
      }
      wait = Math.min(wait, watch.wait(now))
    }
    return wait === Number.POSITIVE_INFINITY ? undefined : wait
  })

  const now = yield* Clock.currentTimeMillis
  for (const { id } of yield* Effect.orDie(
    sql<{ id: string }>`SELECT id FROM tollgate_media_jobs WHERE settled = 0 AND vendor_id IS NOT NULL`
  )) {
    watchOf(id, now)
  }
  yield* Loop.fork({ name: loopName, turn, waker })

  /** Ends what runs that have ended left between its reservation and the vendor. */
  const reclaim = Effect.gen(function* () {
    const submitting = yield* Effect.orDie(
      sql<Row>`SELECT ${columns} FROM tollgate_media_jobs WHERE settled = 0 AND vendor_id IS NULL`
    )
    const orphans = yield* Effect.filter(submitting, ({ call }) => gate.isOrphan(call))
    // Whether the vendor has them cannot be known; nobody was told of them, and nobody is charged.
    yield* Loop.each(
      loopName,
      orphans,
      ({ id }) => id,
      (row) =>
        Effect.flatMap(gate.resume(row.call), (admission) =>
          admission === undefined
            ? observed(row, "service")
            : fail(row, admission, "media_failed", "the service stopped while it was submitted")
        )
    )
  })
  yield* Effect.catchAllCause(reclaim, (cause) =>
    Effect.logError("the media jobs of runs that have ended could not be ended", cause)
  )
  yield* Loop.fork({ name: "abandoned media jobs", turn: Effect.as(reclaim, Duration.minutes(1)) })

  return { submit, look, ofCall, cancel, vendorId } satisfies Contract
})

const jobOf = (row: Row): Job => ({
  id: row.id,
  model: row.model,
  provider: row.provider,
  status: row.status === "SUBMITTING" ? "IN_QUEUE" : row.status,
  queue_position: row.queue_position,
  units: row.units,
  unit: row.unit,
  quote: fromRow(row.quote),
  settled: row.settled === 1,
  cost: fromRow(row.cost),
  inference_time: row.inference_time,
  // It may be megabytes long, and who asks for the status does not want it.
  get output() {
    return row.output === null ? null : (JSON.parse(row.output) as Record<string, unknown>)
  },
  error: row.error,
  error_type: row.error_type
})

/** The output in the documented shape; `undefined` where what was to be made is not in it. */
const outputOf = (type: Order["type"], output: Record<string, unknown>): Record<string, unknown> | undefined => {
  if (type === "video") {
    const { video } = output
    return isObject(video) && isAddress(video.url) ? output : undefined
  }
  const { images } = output
  if (!Array.isArray(images) || images.length === 0) return undefined
  const whole = images.every((image: unknown) => isObject(image) && isAddress(image.url))
  return whole ? output : undefined
}

const isAddress = (url: unknown): boolean => typeof url === "string" && /^(https?:\/\/|data:)/.test(url)
