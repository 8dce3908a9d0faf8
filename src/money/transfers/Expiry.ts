/** Expires transfers that were not accepted in time. */
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Duration, Effect } from "effect"
import * as Loop from "../../kernel/Loop.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Escrow } from "./Escrow.ts"
import type { Reading, Row } from "./Reading.ts"

const name = "transfers"
/** The job's maximum pause. A timer cannot run for 30 days, and a late-confirmed commit of a transfer does not wake the job. */
const pauseMax = Duration.days(1)

export const make = (reading: Reading, escrow: Escrow, waker: Loop.Waker) => {
  /** Expires a transfer. A conflict means that a concurrent request has already ended it. */
  const expire = (row: Row): Effect.Effect<void, BooksUnavailable> =>
    escrow.end(row, "expire").pipe(Effect.catchTags({ Conflict: () => Effect.void, TransferInvalid: Effect.die }))

  /** Expires each due transfer in a separate transaction. Returns the due and failed transfer counts. Fails if the books are unavailable. */
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
      // If the books are unavailable for one write, they are also unavailable for the others.
      if (unavailable !== undefined) return yield* unavailable
      before = rows.at(-1)!.id
    }
  })

  /** Reads a row, and expires it first if it is due. If the books are not writable, returns the row unchanged. */
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
