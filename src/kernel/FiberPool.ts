/**
 * Fibers that outlive what they run. Making one is cheap, but the runtime keeps its root fibers in a `Set`, and the tables that a
 * busy set leaves behind hold on to whole calls until the next full collection. What runs once for every call runs here.
 *
 * Its fibers cannot be interrupted, but where what they run says `Effect.interruptible`; one that has been is not used again.
 */
import { Cause, Effect, FiberRef, Runtime } from "effect"
import type { Duration, Scope } from "effect"

export interface FiberPool {
  /** Runs it now, on a fiber that waits, or on a new one. What it fails with is its own affair: it must not fail. */
  readonly run: (effect: Effect.Effect<void>) => void
  /** Waits until nothing runs, or for so long; also where nothing else could interrupt the wait, as at the end of a scope. */
  readonly quiet: (limit: Duration.DurationInput) => Effect.Effect<void>
}

/** How many fibers without work are kept for what comes next. */
const idleMax = 256

/** The pool's fibers have the clock, the loggers and the other references that this effect finds. */
export const make: Effect.Effect<FiberPool, never, Scope.Scope> = Effect.gen(function* () {
  type Job = Effect.Effect<void>
  const idle: Array<(job: Effect.Effect<Job>) => void> = []
  let running = 0
  let onQuiet: Array<() => void> = []

  const wait = Effect.async<Job>((resume) => {
    idle.push(resume)
  })
  const done = () => {
    if (--running > 0) return
    for (const tell of onQuiet.splice(0)) tell()
  }
  const work = (job: Job): Effect.Effect<void> => Effect.matchCauseEffect(job, { onFailure: next, onSuccess: next })
  const next = (): Effect.Effect<void> => {
    done()
    return goOn
  }
  const goOn = Effect.flatMap(FiberRef.get(FiberRef.interruptedCause), (interrupted) =>
    idle.length < idleMax && Cause.isEmpty(interrupted) ? Effect.flatMap(wait, work) : Effect.void
  )

  // A fiber made for it has the tracer off: every call would open spans that nobody reads.
  const fork = Runtime.runFork(yield* Effect.withTracerEnabled(Effect.runtime<never>(), false))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const resume of idle.splice(0)) resume(Effect.interrupt)
    })
  )

  return {
    run: (job) => {
      running++
      const resume = idle.pop()
      if (resume === undefined) fork(Effect.uninterruptible(work(job)))
      else resume(Effect.succeed(job))
    },
    quiet: (limit) =>
      Effect.interruptible(
        Effect.async<void>((resume) => {
          if (running === 0) return resume(Effect.void)
          const tell = () => resume(Effect.void)
          onQuiet.push(tell)
          return Effect.sync(() => {
            onQuiet = onQuiet.filter((one) => one !== tell)
          })
        })
      ).pipe(Effect.timeout(limit), Effect.ignore)
  }
})
