/** The end of transfers that nobody accepted in time. */
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Duration, Effect } from "effect"
import * as Loop from "../../kernel/Loop.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import type { Escrow } from "./Escrow.ts"
import type { Reading, Row } from "./Reading.ts"

/** As logs and metrics show the job. */
const name = "transfers"
/**
 * How long the job waits at most: a timer of the process holds no thirty days. Also where no transfer is pending: one whose commit was
 * answered too late woke nobody.
 */
const pauseMax = Duration.days(1)

export const make = (reading: Reading, escrow: Escrow, waker: Loop.Waker) => {
  /** Another look at the same moment may have ended it: then it is over all the same. */
  const expire = (row: Row): Effect.Effect<void, BooksUnavailable> =>
    escrow.end(row, "expire").pipe(Effect.catchTags({ Conflict: () => Effect.void, TransferInvalid: Effect.die }))

  /** Ends those that are due, each by itself. Gives how many there were, and how many of them could not be ended. */
  const expireDue = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    let [due, failed] = [0, 0]
    let unavailable: BooksUnavailable | undefined
    let before = "~"
    for (;;) {
      const rows = yield* reading.expired(now, before)
      if (rows.length === 0) return { due, failed }
      due += rows.length
      failed += yield* Loop.each(
        name,
        rows,
        ({ id }) => id,
        (row) =>
          unavailable !== undefined
            ? Effect.void
            : Effect.catchAll(expire(row), (error) => Effect.sync(() => (unavailable = error)))
      )
      // Books that cannot be written for one cannot be written for the others.
      if (unavailable !== undefined) return yield* unavailable
      before = rows.at(-1)!.id
    }
  })

  /** The row as it is now: a transfer that is due is ended first. While that cannot be written it is given as it was. */
  const current = Effect.fnUntraced(function* (condition: Fragment) {
    const row = yield* reading.one(condition)
    if (row === undefined || row.status !== "pending") return row
    if (row.expires_at > (yield* Clock.currentTimeMillis)) return row
    yield* Effect.catchAll(expire(row), () => Effect.void)
    return yield* reading.one(condition)
  })

  const turn = Effect.gen(function* () {
    const { failed } = yield* expireDue
    const next = yield* reading.nextExpiry
    if (failed > 0) return Duration.minutes(1)
    if (next === null) return pauseMax
    return Math.min(next - (yield* Clock.currentTimeMillis), Duration.toMillis(pauseMax))
  })

  const job: Loop.Job = { name, turn, waker }
  return { current, expireDue, job }
}

export type Expiry = ReturnType<typeof make>
