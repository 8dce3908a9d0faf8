/**
 * Renews an allowance: takes back the unused part of the last period and grants the next amount. A charge spends granted credit before purchased
 * credit, and the allowance before other granted credit. The unused part is therefore the last grant minus the charges since then, and at most the
 * unreserved granted credit.
 *
 * Credit that is taken back (a refund, a mistaken grant) reduces other granted credit first, then the allowance. A renewal never takes back other
 * credit that was granted later.
 *
 * The charges since a grant are computed as the balance after the grant, plus all movements except charges, minus the current balance. Those
 * movements are few and indexed, so an allowance adds nothing to the cost of a charge.
 */
import { Either } from "effect"
import { amountMax } from "../../../kernel/Money.ts"
import type { Nano } from "../../../kernel/Money.ts"
import type { Draft } from "./Books.ts"
import { balanceOf, giftableSources } from "./Transaction.ts"
import type { Account, Entry, LastAllowance, Posting, Refusal } from "./Transaction.ts"

type Renew = Extract<Posting, { readonly _tag: "Renew" }>

/** Takes back the unused part, and grants the amount plus the part to carry over. Returns both parts. */
export const renew = (
  draft: Draft,
  found: Account,
  { amount, description, keep, last, reference }: Renew
): Either.Either<{ readonly unused: Nano; readonly kept: Nano }, Refusal> => {
  const unused = last === undefined ? 0n : unusedOf(draft, found, last)
  const kept = keep < unused ? keep : unused
  const granted = amount + kept
  if (amount < 0n || kept < 0n || balanceOf(found) - unused + granted > amountMax)
    return Either.left({ _tag: "BalanceTooLarge", account: found.id })
  let account = found
  if (unused > 0n) {
    account = { ...account, granted: account.granted - unused, entries: account.entries + 1 }
    draft.enter(account, "debit", unused, "allowance", reference, "unused allowance")
  }
  if (granted > 0n) {
    account = { ...account, granted: account.granted + granted, entries: account.entries + 1 }
    draft.enter(account, "credit", granted, "allowance", reference, description)
  }
  return Either.right({ unused, kept })
}

const unusedOf = (draft: Draft, account: Account, last: LastAllowance): Nano => {
  const moved = movedIn(draft, account.id, last.entries)
  const chargeless = moved.reduce((sum, one) => sum + signed(one), last.chargeless)
  return unusedAt(account, { ...last, chargeless, others: moved.reduce(othersAfter, last.others) })
}

/** Computes the last grant's unused part. The grant and the account must come from the same snapshot. */
export const unusedAt = (account: Account, { amount, chargeless, others }: LastAllowance): Nano => {
  const left = amount - (chargeless - balanceOf(account))
  const unused = [left, account.granted - account.reserved, account.granted - others].reduce(smaller)
  return unused > 0n ? unused : 0n
}

const smaller = (one: Nano, other: Nano): Nano => (one < other ? one : other)

/** A movement other than a charge. */
export type Moved = Pick<Entry, "type" | "source" | "amount">

export const signed = ({ amount, type }: Moved): Nano => (type === "credit" ? amount : -amount)

/**
 * Computes the other granted credit after a movement. A refund counts entirely as taken from it, although refunds take giftable credit first, so the
 * sum is never too high. If a grant is taken back, the sum is exact.
 */
export const othersAfter = (others: Nano, { amount, source, type }: Moved): Nano => {
  if (source === null || source === "transfer_escrow") return others
  if (type === "credit") return giftableSources.has(source) ? others : others + amount
  return others > amount ? others - amount : 0n
}

/** Returns the current batch's movements after this entry number, except charges, oldest first. */
const movedIn = (draft: Draft | undefined, account: string, after: number): ReadonlyArray<Moved> =>
  draft === undefined
    ? []
    : [
        ...movedIn(draft.below, account, after),
        ...draft.entries.filter(
          ({ billing_account_id, number, source }) =>
            billing_account_id === account && number > after && source !== null
        )
      ]
