/**
 * Fibers that outlive what they run. Making one is cheap, but the runtime keeps its root fibers in a `Set`, and the tables that a
 * busy set leaves behind hold on to whole calls until the next full collection. What runs once for every call runs here.
 *
 * A job cannot be interrupted, but where it says `Effect.interruptible`; a fiber that has been is not used again.
 */
import { Effect, FiberId, Runtime } from "effect"
import type { Duration, Fiber, Scope } from "effect"
import { poolScheduler } from "./PoolScheduler.ts"

export interface FiberPool {
  /**
   * Runs the job now, on a fiber that waits, or on a new one. A job handles its own failures. What is returned interrupts the job; it must
   * not be used once the job is over, since its fiber has another job then.
   */
  readonly run: (job: Effect.Effect<void>) => Interruptible
  /** Counts work on another fiber until its `end`: `quiet` waits for it too. */
  readonly begin: () => void
  readonly end: () => void
  /** Waits until nothing runs, or for so long; also where nothing else could interrupt the wait, as at the end of a scope. */
  readonly quiet: (limit: Duration.DurationInput) => Effect.Effect<void>
}

export interface Interruptible {
  readonly interrupt: () => void
}

type Job = Effect.Effect<void>

/** How many fibers without work are kept for what comes next. */
const idleMax = 256

/** The pool's fibers have the clock, the loggers and the other references that this effect finds. */
export const make: Effect.Effect<FiberPool, never, Scope.Scope> = Effect.gen(function* () {
  const idle: Array<Worker> = []
  let running = 0
  let onQuiet: Array<() => void> = []

  const done = () => {
    if (--running > 0) return
    for (const tell of onQuiet.splice(0)) tell()
  }

  /** A fiber, and what is made once for all its jobs. */
  class Worker implements Interruptible {
    fiber: Fiber.RuntimeFiber<void> | undefined
    resume: (job: Effect.Effect<Job>) => void = () => {}
    private interrupted = false

    interrupt(): void {
      this.interrupted = true
      this.fiber?.unsafeInterruptAsFork(FiberId.none)
    }

    private readonly wait = Effect.async<Job>((resume) => {
      this.resume = resume
      idle.push(this)
    })
    /** A fiber that was interrupted would interrupt its next job too. */
    private readonly next = (): Effect.Effect<void> => {
      done()
      return idle.length < idleMax && !this.interrupted ? Effect.flatMap(this.wait, this.work) : Effect.void
    }
    readonly work = (job: Job): Effect.Effect<void> =>
      Effect.matchCauseEffect(job, { onFailure: this.next, onSuccess: this.next })
  }

  // A fiber made for it has the tracer off: every call would open spans that are never read.
  const runtime = Effect.withScheduler(Effect.runtime<never>(), poolScheduler)
  const fork = Runtime.runFork(yield* Effect.withTracerEnabled(runtime, false))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const worker of idle.splice(0)) worker.resume(Effect.interrupt)
    })
  )

  return {
    begin: () => {
      running++
    },
    end: done,
    run: (job) => {
      running++
      const waiting = idle.pop()
      if (waiting !== undefined) {
        waiting.resume(Effect.succeed(job))
        return waiting
      }
      const worker = new Worker()
      worker.fiber = fork(Effect.uninterruptible(worker.work(job)))
      return worker
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
