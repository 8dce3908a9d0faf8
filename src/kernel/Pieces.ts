/**
 * Splits long work on the main thread into pieces. Other work waits for at most one piece and, if it needs it, gets as much time as the
 * pieces.
 */
import { Effect } from "effect"

/** The numbers from `from` (inclusive) to `to` (exclusive). */
export interface Range {
  readonly from: number
  readonly to: number
}

/** The number of records per piece, which takes a millisecond or two. */
export const pieceSize = 2048

/** Reads a range piece by piece, in order, with a `turn` before each piece but the first. */
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
/** Whether the next turn is scheduled, by an immediate or a timer. */
let scheduled = false

/** Milliseconds of pieces since other work last had its time. */
let owed = 0
/** Shorter pieces are summed up first, because a pause lasts at least a millisecond. */
const owedLeast = 4
/** The maximum counted for a piece. A longer piece has only waited, for a disk or in a stopped process, and needs no extra pause. */
const owedMost = 250
/** The share of the owed time that other work always gets, to measure whether it needs more. */
const restLeast = 1 / 4
let began = 0
/** The event loop's time when the last piece ended. */
let ended = loopTime()

/**
 * Yields to all other work. Only one piece, of all work in pieces, runs between two polls of the sockets, so such tasks take turns. A call needs
 * several polls. So after a piece other work gets a quarter of the piece's time or, while it uses more than half of that, the whole time. (Effect's
 * `yieldNow` continues before the event loop polls the sockets.)
 */
export const turn: Effect.Effect<void> = Effect.async<void>((resume) => {
  waiting.push(() => resume(Effect.void))
  if (!scheduled) schedule()
})

const schedule = (): void => {
  scheduled = true
  if (isOwed()) return void setTimeout(schedule, 1)
  // Both run in the same turn of the event loop, with only the piece in between.
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
