/**
 * The renewal of an allowance: what is unused of the last period is taken back, and the next amount granted. A charge spends granted credit before
 * purchased credit, and the allowance before other granted credit. So the unused part is the last grant less the charges since, as far as
 * granted credit is there that no open call has reserved.
 *
 * The charges since a grant follow from the balance: it is what the other movements since then make of it, less the charges. Movements that
 * are no charges are few and have an index; an allowance costs a charge nothing.
 */
import { Either } from "effect"
import { amountMax } from "../../../kernel/Money.ts"
import type { Nano } from "../../../kernel/Money.ts"
import type { Draft } from "./Books.ts"
import { balanceOf } from "./Transaction.ts"
import type { Account, LastAllowance, Posting, Refusal } from "./Transaction.ts"

type Renew = Extract<Posting, { readonly _tag: "Renew" }>

/** Takes the unused part back and grants the amount, with the part that is kept. Answers these parts. */
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

const unusedOf = (draft: Draft, account: Account, last: LastAllowance): Nano =>
  unusedAt(account, { ...last, chargeless: last.chargeless + movedIn(draft, account.id, last.entries) })

/** The unused part of the last grant, where `last` was read at the same moment as the account. */
export const unusedAt = (account: Account, { amount, chargeless }: LastAllowance): Nano => {
  const left = amount - (chargeless - balanceOf(account))
  const free = account.granted - account.reserved
  const unused = left < free ? left : free
  return unused > 0n ? unused : 0n
}

/** Movements in the batch at hand that are no charges, after the entry of this number. */
const movedIn = (draft: Draft | undefined, account: string, after: number): Nano => {
  let moved = 0n
  for (let one = draft; one !== undefined; one = one.below)
    for (const { amount, billing_account_id, number, source, type } of one.entries)
      if (billing_account_id === account && number > after && source !== null)
        moved += type === "credit" ? amount : -amount
  return moved
}
