/**
 * Work that a service repeats by itself: letters to send, transfers to expire, jobs to look after. A loop survives every failure of
 * a turn, defects included, and reports each turn, so that one that no longer turns can be seen (`ops/Loops`).
 */
import { Cause, Context, Duration, Effect, Option, Queue } from "effect"
import type { Scope } from "effect"

/** What a loop reports. Times are left to the listener. */
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

export interface Loop {
  /** Begins the next turn now, or as soon as the present one is over. */
  readonly wake: Effect.Effect<void>
  /** The same, for what is called in the middle of something and is no effect. */
  readonly ring: () => void
}

export interface LoopSettings<E> {
  /** As logs and metrics show it: `outbox`. */
  readonly name: string
  /** One turn. Answers how long to wait before the next; `undefined`: until the loop is woken. */
  readonly turn: Effect.Effect<Duration.DurationInput | undefined, E>
}

/** The pause after a failed turn: it doubles from the first to the last. */
const pauseFirst = 1_000
const pauseLast = 5_000

/** Runs the loop until the scope closes. A turn that fails is logged, and tried again after a pause. */
export const fork = <E>({ name, turn }: LoopSettings<E>): Effect.Effect<Loop, never, Scope.Scope> =>
  Effect.gen(function* () {
    const observe = yield* LoopObserver
    const bell = yield* Queue.dropping<void>(1)
    const rung = Queue.take(bell)
    let failures = 0

    const once = Effect.gen(function* () {
      observe(name, { _tag: "Began" })
      const exit = yield* Effect.exit(turn)
      if (exit._tag === "Success") {
        failures = 0
        const pause = exit.value === undefined ? undefined : Math.max(0, Duration.toMillis(exit.value))
        observe(name, { _tag: "Turned", failed: false, pause_ms: pause })
        return yield* pause === undefined ? rung : Effect.race(rung, Effect.sleep(pause))
      }
      if (Cause.isInterruptedOnly(exit.cause)) return yield* Effect.failCause(exit.cause as Cause.Cause<never>)
      const pause = Math.min(pauseLast, pauseFirst * 2 ** failures++)
      observe(name, { _tag: "Turned", failed: true, pause_ms: pause })
      yield* Effect.logError(`a turn of the loop failed, it is tried again in ${pause / 1_000} s`, exit.cause).pipe(
        Effect.annotateLogs("loop", name)
      )
      // Not woken earlier: what fails must not be tried as fast as it is asked for.
      return yield* Effect.sleep(pause)
    })

    yield* once.pipe(
      Effect.forever,
      Effect.ensuring(Effect.sync(() => observe(name, { _tag: "Stopped" }))),
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
    yield* Effect.addFinalizer(() => Effect.sync(() => observe(name, { _tag: "Ended" })))
    const ring = () => void Queue.unsafeOffer(bell, undefined)
    return { wake: Effect.sync(ring), ring }
  })

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
