/** A small second ledger, as somebody else might write it: no database, a few dozen lines. */
import type { Posting, Refusal, Result } from "../../src/entry/ledger.ts"
import type { EntryView, LedgerUnderTest } from "../../src/entry/testing.ts"

interface Purse {
  giftable: bigint
  granted: bigint
  held: bigint
  reserved: bigint
  readonly entries: Array<EntryView>
}

type Answer = { readonly results: ReadonlyArray<Result> } | { readonly refusal: Refusal }

/** Mistakes that such a ledger might have. */
export type Mistake = "gives back twice" | "spends gifts first" | "forgets what calls set aside" | "keeps what it held"

export const secondLedger = (mistake?: Mistake): LedgerUnderTest => {
  const purses = new Map<string, Purse>()
  const calls = new Map<string, { readonly purse: Purse; readonly amount: bigint }>()
  const done = (result: Result): Answer => ({ results: [result] })
  const no = (refusal: Refusal): Answer => ({ refusal })
  const balance = ({ giftable, granted }: Purse) => giftable + granted
  const free = (purse: Purse) => balance(purse) - (mistake === "forgets what calls set aside" ? 0n : purse.reserved)
  const enter = (
    purse: Purse,
    type: "credit" | "debit",
    amount: bigint,
    source: EntryView["source"],
    reference_id: string
  ) => purse.entries.push({ type, amount, balance: balance(purse), source, reference_id })

  const submit = (posting: Posting): Answer => {
    switch (posting._tag) {
      case "Open":
        purses.set(posting.account, { giftable: 0n, granted: 0n, held: 0n, reserved: 0n, entries: [] })
        return done({ _tag: "Opened" })
      case "SetStatus":
        return done({ _tag: "Changed" })
      case "Credit": {
        const purse = purses.get(posting.account)!
        purse[posting.source === "purchase" ? "giftable" : "granted"] += posting.amount
        enter(purse, "credit", posting.amount, posting.source, posting.reference)
        return done({ _tag: "Credited", balance: balance(purse) })
      }
      case "TakeBack": {
        const purse = purses.get(posting.account)!
        const taken = posting.amount < free(purse) ? posting.amount : free(purse)
        const gifts = taken < purse.giftable ? taken : purse.giftable
        purse.giftable -= gifts
        purse.granted -= taken - gifts
        if (taken > 0n) enter(purse, "debit", taken, "purchase", posting.reference)
        return done({ _tag: "TakenBack", taken, balance: balance(purse) })
      }
      case "Escrow": {
        const purse = purses.get(posting.account)!
        if (posting.amount > free(purse)) return no({ _tag: "InsufficientCredits", available: free(purse) })
        if (posting.amount > purse.giftable) return no({ _tag: "InsufficientGiftable", giftable: purse.giftable })
        purse.giftable -= posting.amount
        purse.held += posting.amount
        enter(purse, "debit", posting.amount, "transfer_escrow", posting.transfer)
        return done({ _tag: "Escrowed", balance: balance(purse) })
      }
      case "EndEscrow": {
        const [from, to] = [purses.get(posting.from)!, purses.get(posting.to)!]
        if (mistake !== "keeps what it held") from.held -= posting.amount
        to.giftable += posting.amount
        enter(to, "credit", posting.amount, posting.source, posting.transfer)
        return done({ _tag: "EscrowEnded", balance: balance(to) })
      }
      case "Reserve": {
        const [source] = posting.sources
        const purse = purses.get(source!.billing_account_id)!
        if (free(purse) < posting.least) return no({ _tag: "InsufficientCredits", available: free(purse) })
        const amount = free(purse) < posting.most ? free(purse) : posting.most
        purse.reserved += amount
        calls.set(posting.call, { purse, amount })
        return done({ _tag: "Reserved", source: source!, amount })
      }
      case "Settle": {
        const call = calls.get(posting.call)
        if (call === undefined) return done({ _tag: "AlreadySettled" })
        const { amount, purse } = call
        purse.reserved -= amount
        if (mistake !== "gives back twice") calls.delete(posting.call)
        const cost = posting.outcome.cost < free(purse) ? posting.outcome.cost : free(purse)
        const [one, other] =
          mistake === "spends gifts first" ? (["giftable", "granted"] as const) : (["granted", "giftable"] as const)
        const before = cost < purse[one] ? cost : purse[one]
        purse[one] -= before
        purse[other] -= cost - before
        if (cost > 0n) enter(purse, "debit", cost, null, posting.call)
        return done({ _tag: "Settled", usage_id: posting.call, collected: cost, balance: balance(purse) })
      }
    }
  }

  return {
    submit: ([posting]) => Promise.resolve(submit(posting!)),
    account: (id) => Promise.resolve(purses.get(id)),
    entries: (id) => Promise.resolve(purses.get(id)?.entries ?? [])
  }
}
