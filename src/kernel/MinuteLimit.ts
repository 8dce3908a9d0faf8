/** Limits an account's requests per calendar minute (`Counts`). */
import { Effect } from "effect"
import { counts, leftOf } from "./Counts.ts"

const minute = 60_000

export interface MinuteLimit {
  /** Counts a request. Returns the number of seconds to wait if the account has exceeded its limit for this minute, otherwise `undefined`. */
  readonly take: (account: string, now: number) => Effect.Effect<number | undefined>
}

/** Creates a limit of `most` requests per minute. `name` separates its counters from those of other limits. */
export const make = (name: string, most: number): Effect.Effect<MinuteLimit> =>
  Effect.map(counts, ({ add }) => ({
    take: (account, now) =>
      Effect.map(add(`${name} ${account}`, minute, now), (count) =>
        count > most ? Math.ceil(leftOf(minute, now) / 1_000) : undefined
      )
  }))
