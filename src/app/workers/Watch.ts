/**
 * Finds out that a worker hangs, such as in an endless loop or because it was stopped. Such a worker keeps its connections and never answers them. It
 * never exits, so the owner has to kill it.
 */
import type { Channel } from "./Channel.ts"
import * as Subjects from "./Subjects.ts"

/** The pause between two questions, in milliseconds. */
const pause = 2_000

/** The number of successive questions without a reply after which a worker may hang. */
const missesMin = 3

/** How much later than planned a timeout may fire and still count, in milliseconds. If it fires later, this process itself was stopped or busy. */
const lateMax = 1_000

export interface Watch {
  /** Whether the worker replied to the last question, or was not asked yet. */
  readonly answers: () => boolean
  readonly end: () => void
}

/** Asks a worker repeatedly whether it is alive. Calls `hangs` with the number of successive misses at each miss from the third. */
export const watch = ({ ask }: Pick<Channel, "ask">, hangs: (misses: number) => void): Watch => {
  let misses = 0
  let isOver = false
  let timer: NodeJS.Timeout
  const question = async (): Promise<void> => {
    const asked = performance.now()
    const isAlive = await ask(Subjects.alive, null, Subjects.patience.alive).then(
      () => true,
      () => false
    )
    if (isOver) return
    const isLate = performance.now() - asked > Subjects.patience.alive + lateMax
    if (isAlive) misses = 0
    else if (!isLate && ++misses >= missesMin) hangs(misses)
    if (!isOver) next()
  }
  const next = (): void => {
    timer = setTimeout(() => void question(), pause)
  }
  next()
  return {
    answers: () => misses === 0,
    end: () => {
      isOver = true
      clearTimeout(timer)
    }
  }
}
