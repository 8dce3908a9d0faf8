/** What a command that takes long says on stderr while it works. */
import { Clock, Console, Effect } from "effect"

/** The time between two lines of progress, in milliseconds. */
const interval = 5_000

/** What prints a line where the last one was long enough ago. `line` is given the seconds since the beginning. */
export const everyInterval = Effect.map(Clock.currentTimeMillis, (began) => {
  let printedAt = began
  return (line: (seconds: number) => string): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now - printedAt < interval) return Effect.void
      printedAt = now
      return Console.error(line(Math.round((now - began) / 1_000)))
    })
})
