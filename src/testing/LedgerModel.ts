/**
 * The rules of the books as a bystander would keep them in a notebook: one entry after the other, no database, no concurrency. What
 * a ledger answers is held against what the notebook says that it must.
 */
import type { CreditSource, Posting, Refusal, Result } from "../ledger/Transaction.ts"

/** What the notebook knows of an account. */
export interface Purse {
  giftable: bigint
  granted: bigint
  held: bigint
  reserved: bigint
  /** What came in from outside, and what went out in charges and purchases taken back. */
  came: bigint
  went: bigint
}

export interface Notebook {
  readonly purses: Map<string, Purse>
  /** Open calls: who pays, and how much is set aside. */
  readonly calls: Map<string, { readonly account: string; readonly amount: bigint }>
  readonly settled: Set<string>
  /** Escrows that are open: whose, and how much. */
  readonly escrows: Map<string, { readonly account: string; readonly amount: bigint }>
  /** Transfers whose escrow has ended: no other bears their name. */
  readonly ended: Set<string>
}

export const empty = (): Notebook => ({
  purses: new Map(),
  calls: new Map(),
  settled: new Set(),
  escrows: new Map(),
  ended: new Set()
})

/** What a ledger must answer: the name of its result or refusal. */
export type Expected = Result["_tag"] | Refusal["_tag"]

const giftableSources: ReadonlySet<CreditSource> = new Set(["purchase", "transfer_release", "transfer_return"])

const available = (purse: Purse): bigint => purse.giftable + purse.granted - purse.reserved

/** Writes the posting into the notebook if it can be done, and says what must be answered. */
export const apply = (notebook: Notebook, posting: Posting): Expected => {
  switch (posting._tag) {
    case "Open": {
      if (notebook.purses.has(posting.account)) return "AccountExists"
      notebook.purses.set(posting.account, { giftable: 0n, granted: 0n, held: 0n, reserved: 0n, came: 0n, went: 0n })
      return "Opened"
    }
    case "SetStatus":
      return notebook.purses.has(posting.account) ? "Changed" : "AccountMissing"
    case "Credit": {
      const purse = notebook.purses.get(posting.account)
      if (purse === undefined) return "AccountMissing"
      if (giftableSources.has(posting.source)) purse.giftable += posting.amount
      else purse.granted += posting.amount
      purse.came += posting.amount
      return "Credited"
    }
    case "TakeBack": {
      const purse = notebook.purses.get(posting.account)
      if (purse === undefined) return "AccountMissing"
      const taken = posting.amount < available(purse) ? posting.amount : available(purse)
      const fromGiftable = taken < purse.giftable ? taken : purse.giftable
      purse.giftable -= fromGiftable
      purse.granted -= taken - fromGiftable
      purse.went += taken
      return "TakenBack"
    }
    case "Escrow": {
      const purse = notebook.purses.get(posting.account)
      if (purse === undefined) return "AccountMissing"
      if (posting.amount > available(purse)) return "InsufficientCredits"
      if (posting.amount > purse.giftable) return "InsufficientGiftable"
      purse.giftable -= posting.amount
      purse.held += posting.amount
      notebook.escrows.set(posting.transfer, { account: posting.account, amount: posting.amount })
      return "Escrowed"
    }
    case "EndEscrow": {
      const from = notebook.purses.get(posting.from)
      const to = notebook.purses.get(posting.to)
      if (from === undefined || to === undefined) return "AccountMissing"
      if (posting.amount > from.held) return "NotHeld"
      from.held -= posting.amount
      to.giftable += posting.amount
      notebook.escrows.delete(posting.transfer)
      notebook.ended.add(posting.transfer)
      return "EscrowEnded"
    }
    case "Reserve": {
      const affording = posting.sources.filter(({ billing_account_id }) => {
        const purse = notebook.purses.get(billing_account_id)
        return purse !== undefined && available(purse) >= posting.least
      })
      const payer =
        affording.find(
          ({ billing_account_id }) =>
            available(notebook.purses.get(billing_account_id)!) >= (posting.enough ?? posting.least)
        ) ?? affording[0]
      const [first] = posting.sources
      if (first?.kind === "own" && !notebook.purses.has(first.billing_account_id)) return "AccountMissing"
      if (payer === undefined) return "InsufficientCredits"
      const purse = notebook.purses.get(payer.billing_account_id)!
      const amount = available(purse) < posting.most ? available(purse) : posting.most
      purse.reserved += amount
      notebook.calls.set(posting.call, { account: payer.billing_account_id, amount })
      return "Reserved"
    }
    case "Settle": {
      const call = notebook.calls.get(posting.call)
      if (call === undefined) return "AlreadySettled"
      const purse = notebook.purses.get(call.account)!
      purse.reserved -= call.amount
      const paid = posting.outcome.cost < available(purse) ? posting.outcome.cost : available(purse)
      const fromGranted = paid < purse.granted ? paid : purse.granted
      purse.granted -= fromGranted
      purse.giftable -= paid - fromGranted
      purse.went += paid
      notebook.calls.delete(posting.call)
      notebook.settled.add(posting.call)
      return "Settled"
    }
  }
}
