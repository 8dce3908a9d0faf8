/**
 * A clock that can be advanced. It shows real time plus an offset. The offset survives a restart. Advancing the clock wakes every sleeper that is
 * due.
 */
import { Clock, Duration, Effect } from "effect"
import * as FileStore from "./FileStore.ts"
import type { SandboxFailed } from "./Outside.ts"

export interface SteeredClock {
  readonly clock: Clock.Clock
  readonly now: () => number
  /** Advances the clock by whole milliseconds and returns the new time. The offset is on disk before any sleeper wakes. */
  readonly advance: (millis: number) => Effect.Effect<number>
}

/** The latest supported time. Years must have four digits. */
export const latest = Date.UTC(9999, 0)

const name = "sandbox-clock"

export const make = (data_dir: string | undefined): Effect.Effect<SteeredClock, SandboxFailed> =>
  Effect.map(keptOffset(data_dir), (kept) => {
    const clock = new Steered(kept)
    return {
      clock,
      now: () => clock.unsafeCurrentTimeMillis(),
      advance: (millis) =>
        Effect.sync(() => {
          FileStore.write(data_dir, name, String(clock.offset + millis))
          clock.move(millis)
          return clock.unsafeCurrentTimeMillis()
        })
    }
  })

const keptOffset = (data_dir: string | undefined): Effect.Effect<number, SandboxFailed> =>
  Effect.try({
    try: () => {
      const text = FileStore.read(data_dir, name)?.trim() ?? "0"
      if (!/^\d{1,15}$/.test(text)) throw new Error("it does not contain a number of milliseconds")
      return Number(text)
    },
    catch: (error) => ({
      _tag: "SandboxFailed",
      message: `DATA_DIR: ${data_dir}/${name} cannot be read: ${error instanceof Error ? error.message : error}`
    })
  })

interface Sleeper {
  readonly due: number
  readonly wake: () => void
  timer: NodeJS.Timeout
}

// Node fires longer timers after a millisecond.
const timerMax = 2 ** 31 - 1

class Steered implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  offset: number
  // `process.hrtime` has an arbitrary origin. Adding `origin` gives Unix time in nanoseconds, including the offset.
  private origin: bigint
  private readonly sleepers = new Set<Sleeper>()

  constructor(offset: number) {
    this.offset = offset
    this.origin = BigInt(this.unsafeCurrentTimeMillis()) * 1_000_000n - process.hrtime.bigint()
  }

  unsafeCurrentTimeMillis(): number {
    return Date.now() + this.offset
  }

  unsafeCurrentTimeNanos(): bigint {
    return this.origin + process.hrtime.bigint()
  }

  readonly currentTimeMillis: Effect.Effect<number> = Effect.sync(() => this.unsafeCurrentTimeMillis())
  readonly currentTimeNanos: Effect.Effect<bigint> = Effect.sync(() => this.unsafeCurrentTimeNanos())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async((resume) => {
      const millis = Duration.toMillis(duration)
      if (millis === Number.POSITIVE_INFINITY) return
      const due = this.unsafeCurrentTimeMillis() + millis
      const sleeper: Sleeper = { due, wake: () => resume(Effect.void), timer: this.arm(() => sleeper, millis) }
      this.sleepers.add(sleeper)
      return Effect.sync(() => {
        clearTimeout(sleeper.timer)
        this.sleepers.delete(sleeper)
      })
    })
  }

  move(millis: number): void {
    this.offset += millis
    this.origin += BigInt(millis) * 1_000_000n
    const now = this.unsafeCurrentTimeMillis()
    for (const sleeper of [...this.sleepers].sort((one, other) => one.due - other.due)) {
      clearTimeout(sleeper.timer)
      // An earlier sleeper may have interrupted this one.
      if (!this.sleepers.has(sleeper)) continue
      if (sleeper.due <= now) this.wake(sleeper)
      else sleeper.timer = this.arm(() => sleeper, sleeper.due - now)
    }
  }

  private arm(sleeper: () => Sleeper, left: number): NodeJS.Timeout {
    return setTimeout(
      () => {
        if (left <= timerMax) this.wake(sleeper())
        else sleeper().timer = this.arm(sleeper, left - timerMax)
      },
      Math.min(left, timerMax)
    )
  }

  private wake(sleeper: Sleeper): void {
    this.sleepers.delete(sleeper)
    sleeper.wake()
  }
}
