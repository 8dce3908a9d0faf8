/**
 * Waiting for outside work that may be charged. When the waiting fiber is interrupted, the work continues, so that the books get its
 * outcome: to its end if the call is read `ToItsEnd`, otherwise for up to `readOnFor`, after which it is aborted.
 */
import { Cause, Effect, FiberId, HashSet } from "effect"

/** How long a stream is read on after its caller has left, and any call after its host has begun to close: milliseconds. */
export const readOnFor = 10_000

/** The calls that are read on to their end after their caller has left. Once their host closes, they have `readOnFor` left. */
export class ToItsEnd {
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

  /** The host has begun to close. */
  close(): void {
    this.closing = true
    for (const begin of this.works) begin()
    this.works.clear()
  }
}

/** How a call is read on after its caller has left: to its end, for `readOnFor` (`true`), or not at all. */
export type ReadsOn = ToItsEnd | boolean

/** Stands beside who interrupted, where the work had not been started. */
const notStarted = FiberId.runtime(-1, 0)

/** Whether a call was interrupted before its work started: no upstream was asked. */
export const isNotStarted = (cause: Cause.Cause<unknown>): boolean => HashSet.has(Cause.interruptors(cause), notStarted)

/** One piece of work outside: what came of it, who waits for that, and how to end it early. */
export class Work<A, E> {
  private begun = false
  private aborted = false
  private outcome: Effect.Effect<A, E> | undefined
  private waiter: ((outcome: Effect.Effect<A, E>) => void) | undefined
  private stop: (() => void) | undefined
  private timer: NodeJS.Timeout | undefined
  private readonly reads_on: ReadsOn

  constructor(reads_on: ReadsOn = true) {
    this.reads_on = reads_on
  }

  /** It can be aborted from now on. */
  started(stop: () => void): void {
    this.stop = stop
    if (this.aborted) stop()
  }

  /** Its outcome; the first one stays. */
  end(outcome: Effect.Effect<A, E>): void {
    if (this.outcome !== undefined) return
    this.outcome = outcome
    clearTimeout(this.timer)
    this.waiter?.(outcome)
  }

  /** Whether it is aborted without an outcome, because its caller has left. */
  get isLeft(): boolean {
    return this.aborted && this.outcome === undefined
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
   * then never is; other work is read on, and its outcome is the answer where it succeeds, else the interruption. Work that
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
    const { reads_on } = this
    if (this.stop === undefined || reads_on === false) {
      const started = this.stop !== undefined
      // Work that has not started, such as a request whose connection is still being made, is cancelled.
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

/** Calls `stop` after so many milliseconds, unless the returned function is called first. */
export const after = (millis: number, stop: () => void): (() => void) => {
  const timer = setTimeout(stop, millis)
  return () => clearTimeout(timer)
}
