/** Long work on the thread that serves, in pieces: whoever waits for something else waits for one piece at the most. */
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

const waiting: Array<() => void> = []

/**
 * Lets everybody else go first: of all work that is done in pieces there is one piece between two looks at the sockets, so such works
 * take turns. Not `yieldNow`, which goes on before the loop looks at its sockets.
 */
export const turn: Effect.Effect<void> = Effect.async<void>((resume) => {
  waiting.push(() => resume(Effect.void))
  if (waiting.length === 1) setImmediate(next)
})

const next = () => {
  const go = waiting.shift()
  if (waiting.length > 0) setImmediate(next)
  go?.()
}
