/**
 * Work that a service repeats, such as sending emails, expiring transfers and polling jobs. A service describes the work as a `Job`, and its
 * `layerJobs` runs the job in a loop. The loop continues after a failed iteration, even after a defect. It reports every iteration, so a stuck loop
 * is visible (`operations/ops/Loops`). If several processes share a database, only one of them runs the loop (`Leadership`). Iterations on two nodes
 * can still overlap, so the conditions in their statements must prevent duplicate work.
 */
import { Cause, Context, Duration, Effect, Layer, Option, Queue } from "effect"
import type { Scope } from "effect"

/** A loop's report. The observer adds the times. */
export type LoopEvent =
  | { readonly _tag: "Began" }
  /** The iteration ended. The loop now waits for `pause_ms`. If that is `undefined`, it waits until it is woken. */
  | { readonly _tag: "Turned"; readonly failed: boolean; readonly pause_ms: number | undefined }
  /** The loop has stopped although its scope is still open. */
  | { readonly _tag: "Stopped" }
  /** The loop need not run here, because its scope was closed or another node runs it. */
  | { readonly _tag: "Ended" }

export type LoopListener = (loop: string, event: LoopEvent) => void

/** Observes every loop, by name. Loops call the listener synchronously at the start and end of each iteration, so it must be fast. */
export class LoopObserver extends Context.Reference<LoopObserver>()("tollgate/kernel/LoopObserver", {
  defaultValue: (): LoopListener => () => {}
}) {}

/**
 * A handle that ends a loop's pause early, except the pause after a failure. A call during an iteration, or before the loop runs, ends the next
 * pause. Several calls before then count as one.
 */
export interface Waker {
  readonly wake: Effect.Effect<void>
  /** Works like `wake`, for code outside an effect. */
  readonly wakeNow: () => void
  readonly woken: Effect.Effect<void>
}

export const waker: Effect.Effect<Waker> = Effect.map(Queue.dropping<void>(1), (calls) => {
  const wakeNow = () => void Queue.unsafeOffer(calls, undefined)
  return { wake: Effect.sync(wakeNow), wakeNow, woken: Queue.take(calls) }
})

export interface LeadershipContract {
  /** Returns whether this node is the leader, the node that runs the loops for all nodes. */
  readonly leads: () => boolean
  readonly gained: Effect.Effect<void>
  /** Starts a loop's next iteration early, on the leader. */
  readonly wakeLeader: (loop: string) => Effect.Effect<void>
  /** Calls `wake` when another node wakes the loop while this node leads. */
  readonly onWake: (loop: string, wake: () => void) => Effect.Effect<void, never, Scope.Scope>
}

/** Determines which node runs the loops; `undefined` for a single process. */
export class Leadership extends Context.Reference<Leadership>()("tollgate/kernel/Leadership", {
  defaultValue: (): LeadershipContract | undefined => undefined
}) {}

/** Reports the end of this process's replaced services, which stop their loops and finish their open work (`app/Deployment`). */
export interface HandoversContract {
  /** Calls `takeOver` once replaced services have finished. */
  readonly on: (takeOver: () => void) => Effect.Effect<void, never, Scope.Scope>
}

/** Notifies loops of work that was handed over; `undefined` if services are never replaced. */
export class Handovers extends Context.Reference<Handovers>()("tollgate/kernel/Handovers", {
  defaultValue: (): HandoversContract | undefined => undefined
}) {}

/** Repeated work. A program without loops can run `turn` directly. */
export interface Job {
  /** The name in logs and metrics, such as `outbox`. */
  readonly name: string
  /** Performs one iteration. Returns the pause before the next one, or `undefined` to wait until the job is woken. */
  readonly turn: Effect.Effect<Duration.DurationInput | undefined, unknown>
  /** Starts iterations early. Absent if nothing wakes the job during a pause. */
  readonly waker?: Waker
  /** Whether every node runs the job, because the job concerns the node's own memory or because any node can do the work first. */
  readonly everywhere?: boolean
  /**
   * Loads work that others have begun. For the work of other nodes, it runs before a new leader's first iteration and whenever another node wakes the
   * job. For the work of replaced services, it runs before the first iteration and once those services have finished.
   */
  readonly takeOver?: Effect.Effect<unknown, unknown>
}

/** The pause after a failed iteration, in milliseconds. It doubles with each failure, from the first value up to the last. */
const pauseFirst = 1_000
const pauseLast = 5_000

/** The minimum pause between the wake-ups that a node sends to the leader. */
const wakePause = Duration.seconds(1)

/** Registers `takeOver` for the work of other nodes and replaced services. Returns whether there can be other nodes or replaced services. */
const registerTakeOver = Effect.fnUntraced(function* (
  { name, waker }: Job,
  leadership: LeadershipContract | undefined,
  takeOver: () => void
) {
  const handovers = yield* Handovers
  if (leadership !== undefined && waker !== undefined) yield* leadership.onWake(name, takeOver)
  if (handovers !== undefined) yield* handovers.on(takeOver)
  return leadership !== undefined || handovers !== undefined
})

/** Runs the job in a loop until the scope closes. A failed iteration is logged and retried after a pause. */
export const fork = (job: Job): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { name, takeOver = Effect.void, turn, waker } = job
    const observe = yield* LoopObserver
    const leadership = job.everywhere === true ? undefined : yield* Leadership
    const woken = waker?.woken ?? Effect.never
    let failures = 0
    /** Whether other nodes or services might have begun work that is not loaded yet. */
    let hasUnloadedWork = false
    hasUnloadedWork = yield* registerTakeOver(job, leadership, () => {
      hasUnloadedWork = true
      waker?.wakeNow()
    })

    /** Waits until this node leads. Until then, it forwards local wake-ups to the leader. */
    const waitToLead =
      leadership === undefined
        ? Effect.void
        : Effect.suspend(() => {
            if (leadership.leads()) return Effect.void
            // Another node runs the loop, so this node must not report it as late.
            observe(name, { _tag: "Ended" })
            hasUnloadedWork = true
            if (waker === undefined) return leadership.gained
            // Forward a wake-up immediately, because the last local wake-up might not have been handled.
            const passOn = leadership
              .wakeLeader(name)
              .pipe(Effect.zipRight(Effect.sleep(wakePause)), Effect.zipRight(woken), Effect.forever)
            return Effect.raceFirst(leadership.gained, passOn)
          })

    const turnNow = Effect.suspend(() => {
      if (!hasUnloadedWork) return turn
      hasUnloadedWork = false
      return Effect.zipRight(
        Effect.tapErrorCause(takeOver, () => Effect.sync(() => (hasUnloadedWork = true))),
        turn
      )
    })

    const once = Effect.gen(function* () {
      yield* waitToLead
      observe(name, { _tag: "Began" })
      const exit = yield* Effect.exit(turnNow)
      if (exit._tag === "Success") {
        failures = 0
        const pause = exit.value === undefined ? undefined : Math.max(0, Duration.toMillis(exit.value))
        observe(name, { _tag: "Turned", failed: false, pause_ms: pause })
        return yield* pause === undefined ? woken : Effect.race(woken, Effect.sleep(pause))
      }
      if (Cause.isInterruptedOnly(exit.cause)) return yield* Effect.failCause(exit.cause as Cause.Cause<never>)
      const pause = Math.min(pauseLast, pauseFirst * 2 ** failures++)
      observe(name, { _tag: "Turned", failed: true, pause_ms: pause })
      yield* Effect.logError(
        `an iteration of the loop failed and will be retried in ${pause / 1_000} s`,
        exit.cause
      ).pipe(Effect.annotateLogs("loop", name))
      // Wake-ups do not shorten this pause. Otherwise, a failing iteration would be retried as often as the job is woken.
      return yield* Effect.sleep(pause)
    })

    yield* once.pipe(
      Effect.forever,
      Effect.ensuring(Effect.sync(() => observe(name, { _tag: "Stopped" }))),
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
    yield* Effect.addFinalizer(() => Effect.sync(() => observe(name, { _tag: "Ended" })))
  })

/** Runs the loops of a service's jobs, as a layer that requires the service. */
export const layer = <Self, Service>(
  tag: Context.Tag<Self, Service>,
  jobsOf: (service: Service) => ReadonlyArray<Job>
): Layer.Layer<never, never, Self> =>
  Layer.scopedDiscard(Effect.flatMap(tag, (service) => Effect.forEach(jobsOf(service), fork, { discard: true })))

/**
 * Handles each item separately. An item that fails or dies is logged with its id and does not affect the others. Returns the failure count.
 */
export const each = <A, E, R>(
  loop: string,
  items: Iterable<A>,
  idOf: (item: A) => string,
  handle: (item: A) => Effect.Effect<unknown, E, R>,
  options: { readonly concurrency: number } = { concurrency: 1 }
): Effect.Effect<number, never, R> =>
  Effect.map(
    Effect.forEach(
      items,
      (item) =>
        Effect.matchCauseEffect(handle(item), {
          onSuccess: () => Effect.succeed(0),
          onFailure: (cause) =>
            Option.isSome(Cause.interruptOption(cause))
              ? Effect.interrupt
              : Effect.as(
                  Effect.annotateLogs(Effect.logError("an item of the loop failed", cause), { loop, item: idOf(item) }),
                  1
                )
        }),
      options
    ),
    (failed) => failed.reduce<number>((sum, one) => sum + one, 0)
  )
