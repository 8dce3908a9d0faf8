/**
 * Refunds and disputes of a payment, and their reversals, as the processor reports them. A set of events always yields the same due amount,
 * regardless of order and repetition.
 *
 * Where the specification is silent:
 * - Every reported refund, refund total and dispute is saved, with a flag for whether its money was returned. The due amount of a
 *   payment is computed from all of them and never exceeds the payment. Therefore, order and repetition do not matter, and no event needs to be
 *   saved. Up to 10,000 refunds and disputes for unknown payments are retained for 90 days. The service logs them, and `tollgate owed` lists them.
 * - The due amount is taken back with a debit from the source `purchase`, giftable credit first, and never below zero. The account owes the part that
 *   is then spent, reserved or in escrow (`books/ledger/rules/Books`). The debt is collected as credit becomes free or is added. Until then,
 *   `tollgate owed` lists it. For a dispute, only the withdrawal and reinstatement of money count.
 */
import type { Nano } from "../../kernel/Money.ts"

export interface Movement {
  /** The processor's id for the refund or dispute. For a total, the payment's id. */
  readonly id: string
  /** `total` is the sum of all refunds of the payment at the time of the event. */
  readonly kind: "refund" | "total" | "dispute"
  readonly amount: Nano
  /** Whether the refund failed or the dispute's money was reinstated. Once true, it is final. */
  readonly returned: boolean
}

/**
 * Merges received movements into the known ones. Each keeps its largest amount, and `returned` is final. An unchanged movement remains the same
 * object.
 */
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
 * Computes the amount of a payment to take back, at most the payment itself. The processor reports refunds singly, as totals, or both ways. A total,
 * less the returned refunds, counts if it exceeds the sum of the other single refunds.
 */
export const dueOf = (payment: Nano, movements: ReadonlyArray<Movement>): Nano => {
  const of = (kind: Movement["kind"], returned: boolean) =>
    sumOf(movements.filter((one) => one.kind === kind && one.returned === returned))
  const single = of("refund", false)
  const total = of("total", false) - of("refund", true)
  const due = (single > total ? single : total) + of("dispute", false)
  return due < payment ? due : payment
}
