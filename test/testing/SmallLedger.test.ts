/**
 * A smaller ledger: without escrow, teams and limits of keys, with amounts as numbers and its own maximum. The property suite accepts it and finds
 * each planted mistake.
 */
import { describe, expect, it } from "vitest"
import type { StoryPosting as Posting } from "../../src/app/entry/testing.ts"
import type { Refusal, Result } from "../../src/app/entry/ledger.ts"
import { checkLedger } from "../../src/app/entry/testing.ts"
import type { Answer, EntryView, LedgerPart, LedgerUnderTest } from "../../src/app/entry/testing.ts"
import { foreignLedger } from "./ForeignLedger.ts"

const mistakes = [
  "adds in cents",
  "takes one more than its maximum",
  "refuses its maximum",
  "reserves what another call has reserved",
  "keeps what a call had reserved",
  "spends giftable credit first",
  "charges a call twice"
] as const
type Mistake = (typeof mistakes)[number]

interface Account {
  status: string
  giftable: number
  granted: number
  reserved: number
  readonly entries: Array<EntryView>
}

const giftable: ReadonlySet<string> = new Set(["purchase"])

const smallLedger = (max: number, mistake?: Mistake): LedgerUnderTest => {
  let accounts = new Map<string, Account>()
  let calls = new Map<string, { readonly account: string; readonly amount: number; readonly ended: boolean }>()
  const nano = (amount: bigint): number => {
    if (amount > BigInt(max)) throw new Error(`${amount} is more than this ledger was made for`)
    return mistake === "adds in cents" && amount > 1_000n ? Number(amount / 10n) * 10 : Number(amount)
  }
  const balanceOf = (account: Account) => account.giftable + account.granted

  const enter = (account: Account, entry: Pick<EntryView, "type" | "source" | "reference_id"> & { amount: number }) =>
    account.entries.push({
      ...entry,
      amount: BigInt(entry.amount),
      balance: BigInt(balanceOf(account)),
      giftable: BigInt(account.giftable)
    })

  const missing = (account: string): Refusal => ({ _tag: "AccountMissing", account })

  const credit = (posting: Extract<Posting, { _tag: "Credit" }>): Result | Refusal => {
    const account = accounts.get(posting.account)
    if (account === undefined) return missing(posting.account)
    const amount = nano(posting.amount)
    const most =
      mistake === "takes one more than its maximum" ? max + 1 : mistake === "refuses its maximum" ? max - 1 : max
    // Not as a sum: a number could not hold it.
    if (amount > most - balanceOf(account)) return { _tag: "BalanceTooLarge", account: posting.account }
    if (giftable.has(posting.source)) account.giftable += amount
    else account.granted += amount
    enter(account, { type: "credit", amount, source: posting.source, reference_id: posting.reference })
    return { _tag: "Credited", balance: BigInt(balanceOf(account)) }
  }

  const takeBack = (posting: Extract<Posting, { _tag: "TakeBack" }>): Result | Refusal => {
    const account = accounts.get(posting.account)
    if (account === undefined) return missing(posting.account)
    const amount = Math.min(nano(posting.amount), balanceOf(account) - account.reserved)
    const first = Math.min(amount, account.giftable)
    account.giftable -= first
    account.granted -= amount - first
    if (amount > 0) enter(account, { type: "debit", amount, source: "purchase", reference_id: posting.reference })
    return { _tag: "TakenBack", taken: BigInt(amount), balance: BigInt(balanceOf(account)) }
  }

  const reserve = ({ call, least, most, sources }: Extract<Posting, { _tag: "Reserve" }>): Result | Refusal => {
    const source = sources[0]!
    const id = source.billing_account_id
    const account = accounts.get(id)
    if (account === undefined) return missing(id)
    if (account.status !== "active") return { _tag: "AccountInactive", account: id }
    const available =
      balanceOf(account) - (mistake === "reserves what another call has reserved" ? 0 : account.reserved)
    if (available < nano(least)) return { _tag: "InsufficientCredits", available: BigInt(available) }
    const amount = Math.min(available, nano(most))
    account.reserved += amount
    calls.set(call, { account: id, amount, ended: false })
    return { _tag: "Reserved", source, amount: BigInt(amount) }
  }

  const settle = ({ call, outcome }: Extract<Posting, { _tag: "Settle" }>): Result | Refusal => {
    const open = calls.get(call)
    if (open === undefined || (open.ended && mistake !== "charges a call twice")) return { _tag: "AlreadySettled" }
    const account = accounts.get(open.account)!
    calls.set(call, { ...open, ended: true })
    if (mistake !== "keeps what a call had reserved") account.reserved -= open.amount
    const collected = Math.min(nano(outcome.cost), balanceOf(account) - account.reserved)
    const first = Math.min(collected, mistake === "spends giftable credit first" ? 0 : account.granted)
    const second = Math.min(collected - first, account.giftable)
    account.giftable -= second
    account.granted -= collected - second
    const usage_id = `charge of ${call}`
    if (collected > 0) enter(account, { type: "debit", amount: collected, source: null, reference_id: usage_id })
    return { _tag: "Settled", usage_id, collected: BigInt(collected), balance: BigInt(balanceOf(account)) }
  }

  const post = (posting: Posting): Result | Refusal => {
    switch (posting._tag) {
      case "Open":
        if (accounts.has(posting.account)) return { _tag: "AccountExists", account: posting.account }
        accounts.set(posting.account, { status: "active", giftable: 0, granted: 0, reserved: 0, entries: [] })
        return { _tag: "Opened" }
      case "SetStatus": {
        const account = accounts.get(posting.account)
        if (account === undefined) return missing(posting.account)
        account.status = posting.status
        return { _tag: "Changed" }
      }
      case "Credit":
        return credit(posting)
      case "TakeBack":
        return takeBack(posting)
      case "Reserve":
        if (posting.sources.length !== 1 || posting.sources[0]!.kind !== "own" || posting.facts.application_id !== null)
          throw new Error("this ledger has no teams and no keys")
        return reserve(posting)
      case "Settle":
        return settle(posting)
      case "Renew":
      case "Escrow":
      case "EndEscrow":
      case "SetLimit":
        throw new Error(`this ledger knows no ${posting._tag}`)
    }
  }

  const submit = (postings: ReadonlyArray<Posting>): Answer => {
    const before = [structuredClone(accounts), new Map(calls)] as const
    const results: Array<Result> = []
    for (const posting of postings) {
      const answer = post(posting)
      if (refusals.has(answer._tag)) {
        ;[accounts, calls] = before
        return { refusal: answer as Refusal }
      }
      results.push(answer as Result)
    }
    return { results }
  }

  return {
    submit: async (postings) => submit(postings),
    account: async (id) => {
      const account = accounts.get(id)
      return (
        account && {
          status: account.status,
          giftable: BigInt(account.giftable),
          granted: BigInt(account.granted),
          reserved: BigInt(account.reserved)
        }
      )
    },
    entries: async (id) => accounts.get(id)!.entries
  }
}

const refusals: ReadonlySet<string> = new Set([
  "AccountMissing",
  "AccountExists",
  "AccountInactive",
  "BalanceTooLarge",
  "InsufficientCredits"
])

const without: ReadonlyArray<LedgerPart> = ["limits", "teams", "escrow"]

describe("the property suite for a ledger with fewer features", () => {
  it.each([2 ** 53 - 1, 10 ** 12, 7])("holds with a largest amount of %s", (max) =>
    checkLedger({ make: async () => smallLedger(max), without, amountMax: BigInt(max), stories: 200 })
  )

  it.each(mistakes)("finds one that %s", async (mistake) => {
    const max = 10 ** 12
    const failed = await checkLedger({
      make: async () => smallLedger(max, mistake),
      without,
      amountMax: BigInt(max),
      seed: 1
    }).then(
      () => expect.fail("it is not found"),
      (error: Error) => error.message
    )
    expect(failed).toMatch(/^story \d+ of \d+ fails/)
    expect(failed).not.toMatch(/than this ledger was made for|this ledger has no|this ledger knows no/)
  })

  it.each([
    [["limits"]],
    [["teams"]],
    [["escrow"]],
    [["limits", "escrow"]],
    [["limits", "teams"]],
    [["teams", "escrow"]]
  ])("draws nothing that the ledger lacks, and everything else: %s", async (lacking) => {
    const asked = new Set<string>()
    await checkLedger({
      make: async () => {
        const ledger = foreignLedger()
        return {
          ...ledger,
          submit: (postings) => {
            for (const posting of postings) {
              if (posting._tag === "SetLimit") asked.add("limits")
              if (posting._tag === "Escrow" || posting._tag === "EndEscrow") asked.add("escrow")
              if (posting._tag === "Reserve" && posting.sources.some(({ kind }) => kind === "team")) asked.add("teams")
            }
            return ledger.submit(postings)
          }
        }
      },
      without: lacking as ReadonlyArray<LedgerPart>,
      limits: true,
      stories: 30,
      seed: 1
    })
    expect([...asked].toSorted()).toEqual(["escrow", "limits", "teams"].filter((part) => !lacking.includes(part)))
  })

  it("fails for a ledger whose largest balance differs from its amountMax", async () => {
    const failed = await checkLedger({
      make: async () => smallLedger(10 ** 12),
      without,
      amountMax: 10n ** 11n,
      seed: 1
    }).then(
      () => expect.fail("it is not found"),
      (error: Error) => error.message
    )
    expect(failed).toMatch(/BalanceTooLarge/)
  })
})
