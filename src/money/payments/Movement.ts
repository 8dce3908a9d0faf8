/**
 * What moved of a payment after it was made, as the processor reports it: refunds, disputes, and what came back of them. The same facts
 * make the same sum, in whichever order and however often they are reported.
 *
 * Where the specification is silent:
 * - What is told of refunds and disputes is kept as facts (`money/payments/Movement`): a refund, a total of refunds, a dispute, and whether its
 *   money came back. What is due of a payment follows from all facts together, never more than the payment; so order and repetition do not
 *   matter, and no event needs to be remembered. Facts of a payment that is not known wait for it: 90 days, 10,000 of them, logged, and
 *   listed by `tollgate owed`.
 * - What is due is taken back with a debit of source `purchase`, giftable credit first, never below zero. The account owes what is spent,
 *   set aside or in escrow at that moment (`books/ledger/Books`): it is taken from whatever becomes free or arrives, and until then `tollgate owed`
 *   lists it. Of a dispute only the withdrawal and the reinstatement of money count.
 */
import type { Nano } from "../../kernel/Money.ts"

export interface Movement {
  /** The processor's: of a refund, or a dispute; the payment's own for a total. */
  readonly id: string
  /** `total`: all refunds of the payment together, as they stood at some time. */
  readonly kind: "refund" | "total" | "dispute"
  readonly amount: Nano
  /** The refund failed, or the dispute's money was reinstated: for good. */
  readonly returned: boolean
}

/** The known movements with those that are received now; the same objects where nothing of one is new. */
export const merged = (known: ReadonlyArray<Movement>, received: ReadonlyArray<Movement>): ReadonlyArray<Movement> => {
  const all = new Map(known.map((one) => [one.id, one]))
  for (const one of received) {
    const before = all.get(one.id) ?? one
    const amount = one.amount > before.amount ? one.amount : before.amount
    const returned = before.returned || one.returned
    const same = amount === before.amount && returned === before.returned
    all.set(one.id, same ? before : { ...before, amount, returned })
  }
  return [...all.values()]
}

const sumOf = (movements: ReadonlyArray<Movement>): Nano => movements.reduce((sum, { amount }) => sum + amount, 0n)

/**
 * What of a payment is to be taken back, never more than it was. Refunds are reported one by one, as totals, or both ways: a total counts
 * where not all of its refunds were reported by themselves.
 */
export const dueOf = (payment: Nano, movements: ReadonlyArray<Movement>): Nano => {
  const of = (kind: Movement["kind"], returned: boolean) =>
    sumOf(movements.filter((one) => one.kind === kind && one.returned === returned))
  const single = of("refund", false)
  const total = of("total", false) - of("refund", true)
  const due = (single > total ? single : total) + of("dispute", false)
  return due < payment ? due : payment
}
