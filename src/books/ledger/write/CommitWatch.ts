/**
 * Detects a stalled writer. A writer is stalled if it has not replied within the limit while a caller waits. It then fails the waiting callers with
 * `BooksUnavailable`, and also new transactions until the stall ends. The watch uses real time, independently of the test clock.
 */
import { Effect } from "effect"

export interface CommitWatch {
  readonly isStalled: () => boolean
  /** Starts the watch. Call this before a caller begins to wait. */
  readonly begin: () => void
  /** Records a reply from the writer, which ends a stall. */
  readonly progress: () => void
  /** Stops watching and ends a stall. */
  readonly stop: () => void
}

export interface CommitWatchSettings {
  /** In milliseconds. */
  readonly limit: number
  readonly isAnyoneWaiting: () => boolean
  readonly onStall: () => void
  readonly log: (message: Effect.Effect<void>) => void
}

export const make = ({ isAnyoneWaiting, limit, log, onStall }: CommitWatchSettings): CommitWatch => {
  let stalled = false
  /** The time of the last reply, or the start of the wait if that was later. */
  let progressed = 0
  let timer: NodeJS.Timeout | undefined
  // The awaited commit keeps the process alive. The timer must not.
  const wait = (millis: number) => {
    timer = setTimeout(look, millis).unref()
  }
  const look = () => {
    timer = undefined
    if (!isAnyoneWaiting()) return
    const left = limit - (performance.now() - progressed)
    if (left > 0) {
      wait(left)
      return
    }
    stalled = true
    log(
      Effect.logFatal(
        `the database has not confirmed a commit for ${limit / 1_000} s: writes are refused until it does`
      )
    )
    onStall()
  }
  return {
    isStalled: () => stalled,
    begin: () => {
      if (!isAnyoneWaiting()) progressed = performance.now()
      if (timer === undefined) wait(limit)
    },
    progress: () => {
      progressed = performance.now()
      if (!stalled) return
      stalled = false
      log(Effect.logWarning("the database responds again"))
    },
    stop: () => {
      clearTimeout(timer)
      timer = undefined
      stalled = false
    }
  }
}
