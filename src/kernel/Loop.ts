/**
 * Work that a service repeats: letters to send, transfers to expire, jobs to look after. A service describes it as a `Job`; its
 * `layerJobs` runs the job in a loop. A loop survives every failure of a turn, defects included, and reports each turn, so that
 * one that no longer turns can be seen (`operations/ops/Loops`). Of several nodes over one database one turns it (`Leadership`); a turn that
 * begins while another node's is not over must do nothing twice, by the conditions of its statements.
 */
import { Cause, Context, Duration, Effect, Layer, Option, Queue } from "effect"
import type { Scope } from "effect"

/** The report of a loop. Times are left to the listener. */
export type LoopEvent =
  | { readonly _tag: "Began" }
  /** The turn is over. `pause_ms` is how long the loop waits now; `undefined`: until it is woken. */
  | { readonly _tag: "Turned"; readonly failed: boolean; readonly pause_ms: number | undefined }
  /** The loop will not turn again, though its scope is open. */
  | { readonly _tag: "Stopped" }
  /** The loop's scope was closed: it is not expected to turn again. */
  | { readonly _tag: "Ended" }

export type LoopListener = (loop: string, event: LoopEvent) => void

/** Listens to every loop, by name. Called at the beginning and end of each turn: it must return at once. */
export class LoopObserver extends Context.Reference<LoopObserver>()("tollgate/kernel/LoopObserver", {
  defaultValue: (): LoopListener => () => {}
}) {}

/**
 * Starts the next turn of a job early: now, or when the present turn is over. A call before the loop runs is kept for its first
 * pause. Several calls before a turn start one turn.
 */
export interface Waker {
  readonly wake: Effect.Effect<void>
  /** The same for code that is not an effect. */
  readonly wakeNow: () => void
  /** Waits for the next call. */
  readonly woken: Effect.Effect<void>
}

export const waker: Effect.Effect<Waker> = Effect.map(Queue.dropping<void>(1), (calls) => {
  const wakeNow = () => void Queue.unsafeOffer(calls, undefined)
  return { wake: Effect.sync(wakeNow), wakeNow, woken: Queue.take(calls) }
})

export interface LeadershipContract {
  /** Whether this node turns the loops that one node turns for all. */
  readonly leads: () => boolean
  /** Waits until it does. */
  readonly gained: Effect.Effect<void>
  /** Starts the next turn of a loop early, on the node that leads. */
  readonly wakeLeader: (loop: string) => Effect.Effect<void>
  /** `wake` is called when another node woke the loop, and this one leads. */
  readonly onWake: (loop: string, wake: () => void) => Effect.Effect<void, never, Scope.Scope>
}

/** Which of several nodes turns the loops; `undefined` where there is one process. */
export class Leadership extends Context.Reference<Leadership>()("tollgate/kernel/Leadership", {
  defaultValue: (): LeadershipContract | undefined => undefined
}) {}

/** Services of this process whose loops are stopped, and that still finish what they had begun (`app/Deployment`). */
export interface HandoversContract {
  /** `takeOver` is called when such services have finished. */
  readonly on: (takeOver: () => void) => Effect.Effect<void, never, Scope.Scope>
}

/** Tells loops that work was handed over to them; `undefined` if services are never replaced. */
export class Handovers extends Context.Reference<Handovers>()("tollgate/kernel/Handovers", {
  defaultValue: (): HandoversContract | undefined => undefined
}) {}

/** Work that is repeated. Without a loop, a program runs `turn` itself. */
export interface Job {
  /** As logs and metrics show it: `outbox`. */
  readonly name: string
  /** Does what is due now. Gives how long to wait before the next turn; `undefined`: until the job is woken. */
  readonly turn: Effect.Effect<Duration.DurationInput | undefined, unknown>
  /** Starts turns early; none where a job only follows its pauses. */
  readonly waker?: Waker
  /** Each node turns it, since it is about what the node itself remembers, or because the first to come may as well do it. */
  readonly everywhere?: boolean
  /**
   * Takes in what others have begun. Of another node: before the first turn of a node that begins to lead, and when another node woke the
   * job. Of services that were replaced: before the first turn, and when they have finished.
   */
  readonly takeOver?: Effect.Effect<unknown, unknown>
}

/** The pause after a failed turn: it doubles from the first to the last. */
const pauseFirst = 1_000
const pauseLast = 5_000

/** How often a node at most wakes a job of the node that leads. */
const wakePause = Duration.seconds(1)

/** Calls back when others hand work to the job. Answers whether there are others. */
const followed = Effect.fnUntraced(function* (
  { name, waker }: Job,
  leadership: LeadershipContract | undefined,
  takeOver: () => void
) {
  const handovers = yield* Handovers
  if (leadership !== undefined && waker !== undefined) yield* leadership.onWake(name, takeOver)
  if (handovers !== undefined) yield* handovers.on(takeOver)
  return leadership !== undefined || handovers !== undefined
})

/** Runs the job in a loop until the scope closes. A turn that fails is logged, and tried again after a pause. */
export const fork = (job: Job): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { name, takeOver = Effect.void, turn, waker } = job
    const observe = yield* LoopObserver
    const leadership = job.everywhere === true ? undefined : yield* Leadership
    const woken = waker?.woken ?? Effect.never
    let failures = 0
    /** Whether others may have begun something that is not taken in. */
    let behind = false
    behind = yield* followed(job, leadership, () => {
      behind = true
      waker?.wakeNow()
    })

    /** Waits until this node leads, and passes on meanwhile what wakes the job here. */
    const follow =
      leadership === undefined
        ? Effect.void
        : Effect.suspend(() => {
            if (leadership.leads()) return Effect.void
            // Another node turns it: it is not late here.
            observe(name, { _tag: "Ended" })
            behind = true
            if (waker === undefined) return leadership.gained
            // At once too: the last wake-up here may be unhandled.
            const passOn = leadership
              .wakeLeader(name)
              .pipe(Effect.zipRight(Effect.sleep(wakePause)), Effect.zipRight(woken), Effect.forever)
            return Effect.raceFirst(leadership.gained, passOn)
          })

    const turnNow = Effect.suspend(() => {
      if (!behind) return turn
      behind = false
      return Effect.zipRight(
        Effect.tapErrorCause(takeOver, () => Effect.sync(() => (behind = true))),
        turn
      )
    })

    const once = Effect.gen(function* () {
      yield* follow
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
      yield* Effect.logError(`a turn of the loop failed, it is tried again in ${pause / 1_000} s`, exit.cause).pipe(
        Effect.annotateLogs("loop", name)
      )
      // Not woken earlier: a failing turn must not be retried at the rate of the wake-ups.
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

/** The loops of a service's jobs, as a layer that needs the service. */
export const layer = <Self, Service>(
  tag: Context.Tag<Self, Service>,
  jobsOf: (service: Service) => ReadonlyArray<Job>
): Layer.Layer<never, never, Self> =>
  Layer.scopedDiscard(Effect.flatMap(tag, (service) => Effect.forEach(jobsOf(service), fork, { discard: true })))

/**
 * Handles each item by itself: one that fails, by a defect too, is logged under its id and does not keep the others from being
 * handled. Answers how many failed.
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
