/**
 * The clock of a sandbox: real time plus an offset that only grows. Moving it wakes every sleeper that is due by then, so a month
 * of waiting passes in the call that says so. The offset survives a restart.
 */
import { Clock, Duration, Effect } from "effect"
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface SteeredClock {
  readonly clock: Clock.Clock
  /** Milliseconds since 1970, as the sandbox has it. */
  readonly now: () => number
  /** Moves the clock forward, and on disk before anybody can tell. */
  readonly advance: (millis: number) => void
}

interface Sleeper {
  readonly due: number
  readonly wake: () => void
  timer: NodeJS.Timeout
}

/** The longest time that a timer of node's takes. */
const timerMax = 2 ** 31 - 1

export const make = (data_dir: string): SteeredClock => {
  const path = join(data_dir, "sandbox-clock")
  let offset = readOffset(path)
  const sleepers = new Set<Sleeper>()
  const now = () => Date.now() + offset

  const arm = (sleeper: Sleeper): NodeJS.Timeout =>
    setTimeout(() => {
      if (sleeper.due > now()) sleeper.timer = arm(sleeper)
      else {
        sleepers.delete(sleeper)
        sleeper.wake()
      }
    }, Math.min(Math.max(sleeper.due - now(), 0), timerMax))

  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: now,
    unsafeCurrentTimeNanos: () => process.hrtime.bigint() + BigInt(offset) * 1_000_000n,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanos: Effect.sync(() => process.hrtime.bigint() + BigInt(offset) * 1_000_000n),
    sleep: (duration) =>
      Effect.async<void>((resume) => {
        const sleeper = { due: now() + Duration.toMillis(duration), wake: () => resume(Effect.void) } as Sleeper
        sleeper.timer = arm(sleeper)
        sleepers.add(sleeper)
        return Effect.sync(() => {
          clearTimeout(sleeper.timer)
          sleepers.delete(sleeper)
        })
      })
  }

  const advance = (millis: number) => {
    mkdirSync(data_dir, { recursive: true })
    writeFileSync(`${path}.new`, String(offset + millis))
    renameSync(`${path}.new`, path)
    offset += millis
    for (const sleeper of [...sleepers]) {
      if (sleeper.due > now()) continue
      clearTimeout(sleeper.timer)
      sleepers.delete(sleeper)
      sleeper.wake()
    }
  }

  return { clock, now, advance }
}

const readOffset = (path: string): number => {
  try {
    const offset = Number(readFileSync(path, "utf8"))
    return Number.isSafeInteger(offset) && offset > 0 ? offset : 0
  } catch {
    return 0
  }
}
