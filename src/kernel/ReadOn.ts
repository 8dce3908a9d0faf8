/**
 * Waiting for work of somebody outside that may be charged. When the waiting fiber is interrupted the work goes on for up to
 * `readOnFor`, so that what it comes to can be put into the books; then it is aborted.
 */
import { Cause, Effect, FiberId, HashSet } from "effect"

/** How long work is waited for after its caller has left: milliseconds. */
export const readOnFor = 10_000

/** Stands beside who interrupted, where the work had not been started. */
const notStarted = FiberId.runtime(-1, 0)

/** Whether a call was interrupted before its work was started: nobody outside was asked. */
export const isNotStarted = (cause: Cause.Cause<unknown>): boolean => HashSet.has(Cause.interruptors(cause), notStarted)

/** One piece of work outside: what came of it, who waits for that, and how to end it early. */
export class Work<A, E> {
  private begun = false
  private aborted = false
  private outcome: Effect.Effect<A, E> | undefined
  private waiter: ((outcome: Effect.Effect<A, E>) => void) | undefined
  private stop: (() => void) | undefined
  private timer: NodeJS.Timeout | undefined
  private readonly reads_on: boolean

  constructor(reads_on = true) {
    this.reads_on = reads_on
  }

  /** It can be aborted from now on. */
  started(stop: () => void): void {
    this.stop = stop
    if (this.aborted) stop()
  }

  /** What came of it; the first outcome stays. */
  end(outcome: Effect.Effect<A, E>): void {
    if (this.outcome !== undefined) return
    this.outcome = outcome
    clearTimeout(this.timer)
    this.waiter?.(outcome)
  }

  abort(): void {
    this.aborted = true
    this.stop?.()
  }

  /** Ends it with this outcome and aborts it, unless it ends within so many milliseconds. */
  within(timeout: number, outcome: Effect.Effect<A, E>): void {
    this.timer = setTimeout(() => {
      this.end(outcome)
      this.abort()
    }, timeout)
  }

  /**
   * Begins it and waits for its outcome. The wait can be interrupted in an uninterruptible region too. Work that has not been `started`
   * then never is; other work is read on, and its outcome is the answer where it succeeds in time, else the interruption. Work that
   * is under way already (`started`) goes on whenever its caller has left.
   */
  done(begin: (work: this) => void): Effect.Effect<A, E> {
    if (this.stop !== undefined) {
      this.begun = true
      begin(this)
    }
    return Effect.uninterruptible(
      Effect.catchAllCause(
        Effect.interruptible(
          Effect.async<A, E>((resume) => {
            this.wait(resume)
            if (this.begun) return
            this.begun = true
            begin(this)
          })
        ),
        (cause) => (Cause.isInterrupted(cause) ? this.interrupted(Cause.stripFailures(cause)) : Effect.failCause(cause))
      )
    )
  }

  private wait(waiter: (outcome: Effect.Effect<A, E>) => void): void {
    this.waiter = waiter
    if (this.outcome !== undefined) waiter(this.outcome)
  }

  private interrupted(cause: Cause.Cause<never>): Effect.Effect<A, E> {
    if (this.stop === undefined || !this.reads_on) {
      const started = this.stop !== undefined
      // What has not been started, such as a request whose connection is still being made, is not started any more.
      this.abort()
      return Effect.failCause(started ? cause : Cause.parallel(cause, Cause.interrupt(notStarted)))
    }
    return Effect.async<A, E>((resume) => {
      const limit = setTimeout(() => {
        resume(Effect.failCause(cause))
        this.abort()
      }, readOnFor)
      this.wait((outcome) => {
        clearTimeout(limit)
        resume(Effect.catchAll(outcome, () => Effect.failCause(cause)))
      })
    })
  }
}
