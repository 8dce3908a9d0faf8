/** Prints the progress of long commands on stderr. */
import { Clock, Console, Effect } from "effect"

/** The interval between progress lines, in milliseconds. */
const interval = 5_000

/** Returns a function that prints a line at most once per interval. `line` receives the elapsed seconds. */
export const everyInterval = Effect.map(Clock.currentTimeMillis, (began) => {
  let printedAt = began
  return (line: (seconds: number) => string): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now - printedAt < interval) return Effect.void
      printedAt = now
      return Console.error(line(Math.round((now - began) / 1_000)))
    })
})
