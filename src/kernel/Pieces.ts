/**
 * Splits long work on the main thread into slices. Other work waits for at most one slice and, if necessary, gets as much time as the slices.
 */
import { Effect } from "effect"

/** The numbers from `from` (inclusive) to `to` (exclusive). */
export interface Range {
  readonly from: number
  readonly to: number
}

/** The number of records per slice, which takes a millisecond or two. */
export const pieceSize = 2048

/** Reads a range slice by slice, in order, with a `turn` before each slice except the first. */
export const inPieces = <A, E>(
  { from, to }: Range,
  read: (piece: Range) => Effect.Effect<A, E>,
  size = pieceSize
): Effect.Effect<ReadonlyArray<A>, E> =>
  Effect.forEach(
    Array.from({ length: Math.max(0, Math.ceil((to - from) / size)) }, (_, i) => from + i * size),
    (first) => {
      const piece = read({ from: first, to: Math.min(to, first + size) })
      return first === from ? piece : Effect.zipRight(turn, piece)
    }
  )

// ---- turns ----------------------------------------------------------------------------------------------------------------------

/** The milliseconds that the event loop of this thread was active and idle. */
interface LoopTime {
  readonly active: number
  readonly idle: number
}

/** The time of the event loop so far, or since an earlier reading. The cast is needed because the compiler uses the types of a browser. */
const loopTime = (performance as unknown as { readonly eventLoopUtilization: (since?: LoopTime) => LoopTime })
  .eventLoopUtilization

const waiting: Array<() => void> = []
/** Whether the next slice is scheduled, by an immediate or a timer. */
let scheduled = false

/** Milliseconds of slices since other work last had its time. */
let owed = 0
/** The minimum sum of slices before a pause, in milliseconds, because a pause lasts at least a millisecond. */
const owedLeast = 4
/** The maximum counted for a slice. A longer one has only waited, for a disk or in a stopped process, and needs no extra pause. */
const owedMost = 250
/** The share of the owed time that other work always gets, to measure whether it needs more. */
const restLeast = 1 / 4
let began = 0
/** The event loop's time when the last slice ended. */
let ended = loopTime()

/**
 * Yields to all other work. Only one slice of all such work runs between two polls of the sockets, so the tasks alternate. A call needs several
 * polls. After a slice, other work therefore gets a quarter of the slice's time or, while it uses more than half of that, the whole time. Effect's
 * `yieldNow` would continue before the event loop polls the sockets.
 */
export const turn: Effect.Effect<void> = Effect.async<void>((resume) => {
  waiting.push(() => resume(Effect.void))
  if (!scheduled) schedule()
})

const schedule = (): void => {
  scheduled = true
  if (isOwed()) return void setTimeout(schedule, 1)
  // Both run in the same iteration of the event loop, with only the slice in between.
  setImmediate(begin)
  setImmediate(end)
}

const isOwed = (): boolean => {
  if (owed < owedLeast) return false
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
  owed = Math.min(owedMost, owed + performance.now() - began)
  ended = loopTime()
  scheduled = false
  if (waiting.length > 0) schedule()
}
