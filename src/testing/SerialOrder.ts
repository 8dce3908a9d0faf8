/** Checks linearizability by finding a serial order of concurrent operations that explains their answers and the final state. */
import { Either } from "effect"

export interface Together<Notebook> {
  readonly notebook: Notebook
  readonly count: number
  /** Returns the notebook after the operation with this index, or the reason why its answer does not fit. */
  readonly apply: (notebook: Notebook, index: number) => Either.Either<Notebook, string>
  /** Returns the error in the state after all operations, or `undefined` if there is none. */
  readonly outcome: (notebook: Notebook) => string | undefined
}

interface Misfit {
  readonly order: ReadonlyArray<number>
  readonly why: string
}

/** Returns the notebook after an order that fits. If no order fits, returns the error of the order with the longest valid prefix. */
export const explain = <Notebook>({
  apply,
  count,
  notebook,
  outcome
}: Together<Notebook>): Either.Either<Notebook, string> => {
  let closest: Misfit = { order: [], why: "no answer fits" }
  const misfit = (order: ReadonlyArray<number>, why: string) => {
    if (order.length > closest.order.length) closest = { order, why }
    return undefined
  }
  const search = (before: Notebook, order: ReadonlyArray<number>): Notebook | undefined => {
    if (order.length === count) {
      const why = outcome(before)
      return why === undefined ? before : misfit([...order, count], why)
    }
    for (let index = 0; index < count; index++) {
      if (order.includes(index)) continue
      const after = apply(before, index)
      const taken = [...order, index]
      const found = Either.isLeft(after) ? misfit(taken, after.left) : search(after.right, taken)
      if (found !== undefined) return found
    }
    return undefined
  }
  const found = search(notebook, [])
  if (found !== undefined) return Either.right(found)
  const { order, why } = closest
  const numbers = order.filter((index) => index < count).map((index) => index + 1)
  return Either.left(
    count === 1 ? why : `${why}\n(no order of the ${count} fits; this error is from the order ${numbers.join(", ")})`
  )
}
