/**
 * Splits long work on the main thread into slices, so that other work waits for at most one slice. Under load, other work gets as much time as the
 * slices.
 */
import { Effect } from "effect"

/** The numbers from `from` (inclusive) to `to` (exclusive). */
export interface Range {
  readonly from: number
  readonly to: number
}

/** The number of records per slice. A slice of this size takes a millisecond or two. */
export const sliceSize = 2048

/** Reads a range slice by slice, in order, with a `turn` between slices. */
export const inSlices = <A, E>(range: Range, read: (piece: Range) => Effect.Effect<A, E>, size = sliceSize) =>
  allInSlices([range], read, size)

/** Reads several ranges slice by slice, in order, with a `turn` between slices. */
export const allInSlices = <R extends Range, A, E>(
  ranges: ReadonlyArray<R>,
  read: (piece: R) => Effect.Effect<A, E>,
  size = sliceSize
): Effect.Effect<ReadonlyArray<A>, E> =>
  Effect.forEach(
    ranges.flatMap((range) =>
      Array.from({ length: Math.max(0, Math.ceil((range.to - range.from) / size)) }, (_, i) => ({
        ...range,
        from: range.from + i * size,
        to: Math.min(range.to, range.from + (i + 1) * size)
      }))
    ),
    (piece, i) => (i === 0 ? read(piece) : Effect.zipRight(turn, read(piece)))
  )

// ---- turns ----------------------------------------------------------------------------------------------------------------------

/** How long this thread's event loop was active and idle, in milliseconds. */
interface LoopTime {
  readonly active: number
  readonly idle: number
}

/** Returns the event loop's total time, or its time since an earlier reading. The cast is needed because the compiler uses browser types. */
const loopTime = (performance as unknown as { readonly eventLoopUtilization: (since?: LoopTime) => LoopTime })
  .eventLoopUtilization

const waiting: Array<() => void> = []
/** Whether an immediate or a timer is scheduled for the next slice. */
let scheduled = false

/** How long slices have run since other work last received its share, in milliseconds. */
let owed = 0
/** The minimum time owed before slices pause, in milliseconds. A shorter time does not justify a pause of at least a millisecond. */
const owedMin = 4
/** The maximum time owed, in milliseconds. A longer slice has only waited, for a disk or in a stopped process, and needs no longer pause. */
const owedMax = 250
/** The share of the owed time that other work always receives. How much of it other work uses shows whether it needs more. */
const restLeast = 1 / 4
let began = 0
/** The event loop's time when the last slice ended. */
let ended = loopTime()

/**
 * Yields to all other work. Only one slice of all split work runs between two socket polls, so split tasks alternate. A call needs several polls.
 * Slices therefore pause for a quarter of the time that they ran. The pause grows up to the full time while other work is active for
 * more than half of the pause. Effect's `yieldNow` would continue before the event loop polls the sockets.
 */
export const turn: Effect.Effect<void> = Effect.async<void>((resume) => {
  waiting.push(() => resume(Effect.void))
  if (!scheduled) schedule()
})

const schedule = (): void => {
  scheduled = true
  if (isOwed()) return void setTimeout(schedule, 1)
  // Both run in the same iteration of the event loop, with only the slice between them.
  setImmediate(begin)
  setImmediate(end)
}

const isOwed = (): boolean => {
  if (owed < owedMin) return false
  const { active, idle } = loopTime(ended)
  const had = active + idle
  if (had < owed && (had < owed * restLeast || active > idle)) return true
  owed = 0
  return false
}

const begin = (): void => {
  began = performance.now()
  waiting.shift()!()
}

const end = (): void => {
  owed = Math.min(owedMax, owed + performance.now() - began)
  ended = loopTime()
  scheduled = false
  if (waiting.length > 0) schedule()
}
