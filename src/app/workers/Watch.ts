/**
 * Detects a worker that hangs, for example in an endless loop or because it was stopped. A hung worker holds its connections without responding and
 * never exits, so the owner kills it.
 */
import type { Channel } from "./Channel.ts"
import * as Subjects from "./Subjects.ts"

/** The pause between pings, in milliseconds. */
const pause = 2_000

/** After this many consecutive unanswered pings, a worker may hang. */
const missesMin = 3

/** How much later than planned a timeout may fire and still count, in milliseconds. If it fires later, this process itself was stopped or busy. */
const lateMax = 1_000

export interface Watch {
  /** Whether no ping has been missed since the worker's last reply or since the start. */
  readonly answers: () => boolean
  readonly end: () => void
}

/** Pings a worker repeatedly. From the third consecutive miss on, calls `hangs` with the number of misses. */
export const watch = ({ ask }: Pick<Channel, "ask">, hangs: (misses: number) => void): Watch => {
  let misses = 0
  let isOver = false
  let timer: NodeJS.Timeout
  const sendPing = async (): Promise<void> => {
    const sentAt = performance.now()
    const isAlive = await ask(Subjects.alive, null, Subjects.replyTimeouts.alive).then(
      () => true,
      () => false
    )
    if (isOver) return
    const isLate = performance.now() - sentAt > Subjects.replyTimeouts.alive + lateMax
    if (isAlive) misses = 0
    else if (!isLate && ++misses >= missesMin) hangs(misses)
    if (!isOver) next()
  }
  const next = (): void => {
    timer = setTimeout(() => void sendPing(), pause)
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
