/**
 * Reusable fibers for jobs that run once per call. New fibers are cheap, but the runtime holds root fibers in a `Set`. A busy `Set` leaves old tables
 * that retain entire calls until the next full garbage collection.
 *
 * A job can be interrupted only inside `Effect.interruptible`. An interrupted fiber is not reused.
 */
import { Effect, FiberId, Runtime } from "effect"
import type { Duration, Fiber, Scope } from "effect"
import { poolScheduler } from "./PoolScheduler.ts"

export interface FiberPool {
  /**
   * Runs the job on an idle or a new fiber. The job must handle its own failures. The returned object can interrupt the job. Do not use it after the
   * job has ended, because the fiber might be running another job by then.
   */
  readonly run: (job: Effect.Effect<void>) => Interruptible
  /** Counts work on another fiber until `end`, so that `quiet` also waits for that work. */
  readonly begin: () => void
  readonly end: () => void
  /** Waits until no job is running, for at most `limit`. The wait can be interrupted even in a finalizer. */
  readonly quiet: (limit: Duration.DurationInput) => Effect.Effect<void>
}

export interface Interruptible {
  readonly interrupt: () => void
}

type Job = Effect.Effect<void>

const idleMax = 256

/** Creates a pool. Its fibers inherit the clock, loggers and other references of this effect. */
export const make: Effect.Effect<FiberPool, never, Scope.Scope> = Effect.gen(function* () {
  const idle: Array<Worker> = []
  let running = 0
  let onQuiet: Array<() => void> = []

  const done = () => {
    if (--running > 0) return
    for (const tell of onQuiet.splice(0)) tell()
  }

  /** A fiber and the objects that all its jobs share. */
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
    /** Ends a job. An interrupted fiber is not reused, because the interruption would affect the next job too. */
    private readonly next = (): Effect.Effect<void> => {
      done()
      return idle.length < idleMax && !this.interrupted ? Effect.flatMap(this.wait, this.work) : Effect.void
    }
    readonly work = (job: Job): Effect.Effect<void> =>
      Effect.matchCauseEffect(job, { onFailure: this.next, onSuccess: this.next })
  }

  // Disable the tracer, because calls would open spans that are never read.
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
