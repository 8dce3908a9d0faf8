/**
 * Waits for external work that can cost money. If the waiting fiber is interrupted, the work can continue, so that the books record its outcome. A
 * policy determines for how long.
 */
import { Cause, Effect, FiberId, HashSet } from "effect"

/** How long reading continues, in milliseconds: for a stream after its caller has disconnected, for other calls after the host begins to close. */
export const readOnFor = 10_000

/** Calls that are read to their end after the caller has disconnected. When the host begins to close, they get another `readOnFor`. */
export class ReadToEnd {
  private closing = false
  private readonly works = new Set<() => void>()

  /** Calls `stop` once the host has been closing for `readOnFor`, unless the returned function is called first. */
  until(stop: () => void): () => void {
    let timer: NodeJS.Timeout | undefined
    const begin = () => {
      timer = setTimeout(stop, readOnFor)
    }
    if (this.closing) begin()
    else this.works.add(begin)
    return () => {
      clearTimeout(timer)
      this.works.delete(begin)
    }
  }

  /** Starts the time limit. Call this when the host begins to close. */
  close(): void {
    this.closing = true
    for (const begin of this.works) begin()
    this.works.clear()
  }
}

/** How long a call is read after its caller has disconnected: to its end, for `readOnFor` (`true`), or not at all (`false`). */
export type ReadOnPolicy = ReadToEnd | boolean

/** Added to the interruptors if the work had not started. */
const notStarted = FiberId.runtime(-1, 0)

/** Returns whether a call was interrupted before its work started. In that case, no upstream received a request. */
export const isNotStarted = (cause: Cause.Cause<unknown>): boolean => HashSet.has(Cause.interruptors(cause), notStarted)

/** External work, with its outcome, its waiting caller and a function that aborts it. */
export class Work<A, E> {
  private begun = false
  private aborted = false
  private outcome: Effect.Effect<A, E> | undefined
  private waiter: ((outcome: Effect.Effect<A, E>) => void) | undefined
  private stop: (() => void) | undefined
  private timer: NodeJS.Timeout | undefined
  private readonly reads_on: ReadOnPolicy

  constructor(reads_on: ReadOnPolicy = true) {
    this.reads_on = reads_on
  }

  /** Sets the function that aborts the work. Call this once the work can be aborted. */
  started(stop: () => void): void {
    this.stop = stop
    if (this.aborted) stop()
  }

  /** Sets the outcome. Later calls are ignored. */
  end(outcome: Effect.Effect<A, E>): void {
    if (this.outcome !== undefined) return
    this.outcome = outcome
    clearTimeout(this.timer)
    this.waiter?.(outcome)
  }

  /** Returns whether the work was aborted without an outcome. */
  get isLeft(): boolean {
    return this.aborted && this.outcome === undefined
  }

  abort(): void {
    this.aborted = true
    this.stop?.()
  }

  /** Aborts the work with this outcome unless it ends within `timeout` milliseconds. */
  within(timeout: number, outcome: Effect.Effect<A, E>): void {
    this.timer = setTimeout(() => {
      this.end(outcome)
      this.abort()
    }, timeout)
  }

  /**
   * Begins the work and waits for its outcome. The wait can be interrupted even in an uninterruptible region. An interruption aborts work that has
   * not `started`, and any work if `reads_on` is `false`. Otherwise, reading continues as long as the policy allows. The result is then the outcome
   * if the work succeeds, or the interruption if it fails or is aborted. Work that `started` before this call continues even if the caller has
   * already disconnected.
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
    const { reads_on } = this
    if (this.stop === undefined || reads_on === false) {
      const started = this.stop !== undefined
      // If the work has not started, for example because the request is still connecting, this cancels it.
      this.abort()
      return Effect.failCause(started ? cause : Cause.parallel(cause, Cause.interrupt(notStarted)))
    }
    return Effect.async<A, E>((resume) => {
      const stop = () => {
        resume(Effect.failCause(cause))
        this.abort()
      }
      const goOn = reads_on === true ? after(readOnFor, stop) : reads_on.until(stop)
      this.wait((outcome) => {
        goOn()
        resume(Effect.catchAll(outcome, () => Effect.failCause(cause)))
      })
    })
  }
}

/** Calls `stop` after `millis`, unless the returned function is called first. */
export const after = (millis: number, stop: () => void): (() => void) => {
  const timer = setTimeout(stop, millis)
  return () => clearTimeout(timer)
}
