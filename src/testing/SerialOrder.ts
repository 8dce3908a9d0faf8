/**
 * Operations that were under way together may have taken effect in any order, but in one. This finds such an order of a model's: one in
 * which each operation would have been answered as it was, with an outcome like the one that was found.
 */
import { Either } from "effect"

export interface Together<Notebook> {
  /** Before the operations. */
  readonly notebook: Notebook
  readonly count: number
  /** The notebook after the operation with that index, or why it could not have been answered as it was. */
  readonly apply: (notebook: Notebook, index: number) => Either.Either<Notebook, string>
  /** What is wrong where all of them have taken effect, if anything is. */
  readonly outcome: (notebook: Notebook) => string | undefined
}

interface Misfit {
  readonly order: ReadonlyArray<number>
  readonly why: string
}

/** The notebook after an order that fits; else what is wrong in the order that fits for longest. */
export const explain = <Notebook>({
  apply,
  count,
  notebook,
  outcome
}: Together<Notebook>): Either.Either<Notebook, string> => {
  let closest: Misfit = { order: [], why: "nothing was answered" }
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
    count === 1 ? why : `${why}\n(no order of the ${count} fits; this is in the order ${numbers.join(", ")})`
  )
}
