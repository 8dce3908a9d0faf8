/**
 * Long work on the serving thread, in pieces: other work waits for one piece at most, and gets as much time as the pieces take, if it needs
 * it.
 */
import { Effect } from "effect"

/** The numbers from `from` on, without `to`. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** How many records are read in one go where many must be: a millisecond or two. */
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

/** Milliseconds in which the loop of this thread did something, and waited. */
interface LoopTime {
  readonly active: number
  readonly idle: number
}

/** The time of the loop so far, or since an earlier look. The compiler finds the types of a browser first, which has none. */
const loopTime = (performance as unknown as { readonly eventLoopUtilization: (since?: LoopTime) => LoopTime })
  .eventLoopUtilization

const waiting: Array<() => void> = []
/** Whether the next turn is scheduled, by an immediate or a timer. */
let scheduled = false

/** Milliseconds of pieces since the others had their time. */
let owed = 0
/** Shorter pieces are taken together, with one look at the sockets between them: no rest is shorter than a millisecond. */
const owedLeast = 4
/**
 * No piece works for longer. A longer piece has waited, for a disk or in a stopped process, and the others with it: no extra pause is
 * needed after it.
 */
const owedMost = 250
/** How much of what is owed the others have in any case, to be asked whether they need more. */
const restLeast = 1 / 4
let began = 0
/** The time of the loop when the last piece ended. */
let ended = loopTime()

/**
 * Lets everybody else go first: of all work that is done in pieces there is one piece between two looks at the sockets, so such works
 * take turns. A call looks at its sockets several times, so behind a piece the others have a quarter of the time that it took, and as long as
 * it took while they use more than half of that. (Not `yieldNow`, which goes on before the loop looks at its sockets.)
 */
export const turn: Effect.Effect<void> = Effect.async<void>((resume) => {
  waiting.push(() => resume(Effect.void))
  if (!scheduled) schedule()
})

const schedule = (): void => {
  scheduled = true
  if (isOwed()) return void setTimeout(schedule, 1)
  // Behind one another in one turn of the loop: between them is the piece, and nothing else.
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
