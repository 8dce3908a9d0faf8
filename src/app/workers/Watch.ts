/**
 * Finds out that a worker hangs, such as in an endless loop or because it was stopped. Such a worker keeps its connections and never answers them. Its
 * exit never comes, so the owner has to end it.
 */
import type { Channel } from "./Channel.ts"
import * as Subjects from "./Subjects.ts"

/** The pause between two questions, in milliseconds. */
const pause = 2_000

/**
 * How many questions in a row may remain without a reply within their time (`Subjects.patience.alive`). One is not enough: after the computer was
 * suspended, the time of an open question is over before its reply is read.
 */
const missesMax = 3

/** Asks a worker again and again whether it is alive. Calls back once if it hangs. The returned function ends this. */
export const watch = ({ ask }: Pick<Channel, "ask">, hangs: () => void): (() => void) => {
  let misses = 0
  let isOver = false
  let timer: NodeJS.Timeout
  const question = async (): Promise<void> => {
    const isAlive = await ask(Subjects.alive, null, Subjects.patience.alive).then(
      () => true,
      () => false
    )
    if (isOver) return
    misses = isAlive ? 0 : misses + 1
    if (misses === missesMax) hangs()
    else next()
  }
  const next = (): void => {
    timer = setTimeout(() => void question(), pause)
  }
  next()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}
