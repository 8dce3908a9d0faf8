/**
 * The property suite for a ledger, whoever wrote it: stories of people who fund, spend, send and take back, told to the ledger and to
 * a notebook, with every invariant of the books looked at after each step. A ledger that is wrong is answered with the shortest
 * story that shows it.
 */
import fc from "fast-check"
import type { CreditSource, Entry, Posting, Refusal, Result } from "../ledger/Transaction.ts"
import { apply, empty } from "./LedgerModel.ts"
import type { Notebook } from "./LedgerModel.ts"
import { tell } from "./Story.ts"
import type { Step } from "./Story.ts"

/** A ledger as the suite speaks to it. */
export interface LedgerUnderTest {
  /** Does all of it or nothing, and answers each posting's result, or why it was refused. */
  readonly submit: (
    postings: ReadonlyArray<Posting>
  ) => Promise<{ readonly results: ReadonlyArray<Result> } | { readonly refusal: Refusal }>
  readonly account: (id: string) => Promise<AccountView | undefined>
  /** The account's ledger, oldest entry first. */
  readonly entries: (id: string) => Promise<ReadonlyArray<EntryView>>
  readonly close?: () => Promise<void>
}

export interface AccountView {
  readonly giftable: bigint
  readonly granted: bigint
  readonly held: bigint
  readonly reserved: bigint
}

export type EntryView = Pick<Entry, "type" | "amount" | "balance" | "source" | "reference_id">

export interface View extends AccountView {
  readonly id: string
  readonly entries: ReadonlyArray<EntryView>
}

/** What must hold of all accounts at every moment, by the names of the contract. Each answers what is wrong, or nothing. */
export const invariants: Readonly<
  Record<string, (views: ReadonlyArray<View>, notebook: Notebook) => string | undefined>
> = {
  "a balance is the sum of its entries": (views) =>
    first(views, ({ entries, giftable, granted, id }) => {
      const sum = entries.reduce((sum, { amount, type }) => sum + (type === "credit" ? amount : -amount), 0n)
      return sum === giftable + granted ? undefined : `${id} has ${giftable + granted}, its entries sum to ${sum}`
    }),
  "a balance is that of the last entry": (views) =>
    first(views, ({ entries, giftable, granted, id }) => {
      const last = entries.at(-1)?.balance ?? 0n
      return last === giftable + granted ? undefined : `${id} has ${giftable + granted}, its last entry says ${last}`
    }),
  "nothing is below zero": (views) =>
    first(views, ({ giftable, granted, held, id, reserved }) =>
      [giftable, granted, held, reserved].some((amount) => amount < 0n) ? `${id} has less than nothing` : undefined
    ),
  "what calls have set aside is within the balance": (views) =>
    first(views, ({ giftable, granted, id, reserved }) =>
      reserved > giftable + granted ? `${id} has set aside ${reserved} of ${giftable + granted}` : undefined
    ),
  "what is set aside is that of the open calls": (views, { calls }) =>
    first(views, ({ id, reserved }) => {
      const open = [...calls.values()].reduce((sum, call) => sum + (call.account === id ? call.amount : 0n), 0n)
      return reserved === open ? undefined : `${id} has set aside ${reserved}, its open calls come to ${open}`
    }),
  "held credit is that of the pending transfers": (views, { escrows }) =>
    first(views, ({ held, id }) => {
      const open = [...escrows.values()].reduce((sum, one) => sum + (one.account === id ? one.amount : 0n), 0n)
      return held === open ? undefined : `${id} holds ${held}, its pending transfers come to ${open}`
    }),
  "a transfer pays out once": (views) => {
    const paid = views.flatMap(({ entries }) =>
      entries.filter(({ source }) => source === "transfer_release" || source === "transfer_return")
    )
    const twice = paid.find((one, i) => paid.findIndex(({ reference_id }) => reference_id === one.reference_id) !== i)
    return twice === undefined ? undefined : `transfer ${twice.reference_id} was paid out twice`
  },
  "a call is charged at most once": (views) => {
    const charges = views.flatMap(({ entries }) =>
      entries.filter(({ source, type }) => type === "debit" && source === null)
    )
    const twice = charges.find(
      (one, i) => charges.findIndex(({ reference_id }) => reference_id === one.reference_id) !== i
    )
    return twice === undefined ? undefined : `call ${twice.reference_id} was charged twice`
  },
  "credit is neither made nor lost": (views, { purses }) => {
    const made = [...purses.values()].reduce((sum, { came, went }) => sum + came - went, 0n)
    const kept = views.reduce((sum, { giftable, granted, held }) => sum + giftable + granted + held, 0n)
    return made === kept ? undefined : `what came in less charges is ${made}, but accounts and escrow hold ${kept}`
  },
  "granted credit is spent before giftable": (views, { purses }) =>
    first(views, ({ giftable, granted, id }) => {
      const purse = purses.get(id)
      return purse === undefined || (purse.giftable === giftable && purse.granted === granted)
        ? undefined
        : `${id} has ${giftable} to give away and ${granted} granted; it must be ${purse.giftable} and ${purse.granted}`
    })
}

const first = (views: ReadonlyArray<View>, wrong: (view: View) => string | undefined): string | undefined => {
  for (const view of views) {
    const found = wrong(view)
    if (found !== undefined) return found
  }
  return undefined
}

/** A ledger that broke a rule: which one, and how. */
export class InvariantBroken extends Error {
  override readonly name = "InvariantBroken"
}

// ---- arbitraries --------------------------------------------------------------------------------------------------------

/** Amounts of money: small ones, so that they meet, and some that are large. */
export const amounts: fc.Arbitrary<bigint> = fc.oneof(
  { weight: 9, arbitrary: fc.bigInt({ min: 1n, max: 20n }) },
  { weight: 1, arbitrary: fc.bigInt({ min: 1n, max: 1_000_000_000_000n }) }
)

/** The billing accounts of the stories. */
export const people = ["ada", "bob", "cyd"] as const

const name = fc.constantFrom(...people)
const which = fc.nat({ max: 30 })

export interface World {
  readonly ledger: LedgerUnderTest
}

export type Deed = Step<Notebook, World>

const told = (sentence: string, postingOf: (notebook: Notebook) => Posting | undefined): Deed => ({
  sentence,
  possible: (notebook) => postingOf(notebook as Notebook) !== undefined,
  happen: async (notebook, { ledger }) => {
    const posting = postingOf(notebook)!
    const answer = await ledger.submit([posting])
    const found = "refusal" in answer ? answer.refusal._tag : (answer.results[0]?._tag ?? "nothing")
    const expected = apply(notebook, posting)
    if (found !== expected) throw new InvariantBroken(`it answered ${found}, where ${expected} is due`)
    await look(notebook, ledger)
  }
})

const look = async (notebook: Notebook, ledger: LedgerUnderTest): Promise<void> => {
  const views: Array<View> = []
  for (const id of notebook.purses.keys()) {
    const account = await ledger.account(id)
    if (account === undefined) throw new InvariantBroken(`${id} is gone`)
    views.push({ id, ...account, entries: await ledger.entries(id) })
  }
  for (const [rule, wrong] of Object.entries(invariants)) {
    const why = wrong(views, notebook)
    if (why !== undefined) throw new InvariantBroken(`${rule}: ${why}`)
  }
}

const source = (account: string) => ({
  billing_account_id: account,
  tenant_id: `ten_${account}`,
  kind: "own" as const,
  why: "own" as const
})

/** Everything that may happen to a ledger, a sentence each. */
export const deeds: ReadonlyArray<fc.Arbitrary<Deed>> = [
  fc
    .tuple(name, amounts, fc.constantFrom<CreditSource>("purchase", "admin", "signup_grant"))
    .map(([who, amount, source]) =>
      told(`${who} gets ${amount} (${source})`, () => ({
        _tag: "Credit",
        account: who,
        amount,
        source,
        reference: "pay",
        description: source
      }))
    ),
  fc.tuple(name, amounts, amounts).map(([who, one, other]) =>
    told(`${who} calls, setting aside ${one < other ? one : other} to ${one < other ? other : one}`, (notebook) => ({
      _tag: "Reserve",
      call: `call_${notebook.calls.size + notebook.settled.size}`,
      sources: [source(who)],
      least: one < other ? one : other,
      most: one < other ? other : one,
      run: "story",
      facts: {
        account_id: who,
        tenant_id: `ten_${who}`,
        application_id: null,
        usage_type: "tool",
        endpoint: "story",
        model: "model",
        provider: "provider"
      }
    }))
  ),
  fc.tuple(which, fc.oneof(fc.constant(0n), amounts)).map(([index, cost]) =>
    told(`an open call ends at a cost of ${cost}`, ({ calls }) => {
      const call = [...calls.keys()][index % Math.max(1, calls.size)]
      return call === undefined ? undefined : settle(call, cost)
    })
  ),
  fc.tuple(which, amounts).map(([index, cost]) =>
    told(`a call that has ended ends again, at ${cost}`, ({ settled }) => {
      const call = [...settled][index % Math.max(1, settled.size)]
      return call === undefined ? undefined : settle(call, cost)
    })
  ),
  fc.tuple(name, amounts).map(([who, amount]) =>
    told(`${who} puts ${amount} into escrow`, (notebook) => ({
      _tag: "Escrow",
      account: who,
      amount,
      transfer: `trf_${notebook.escrows.size + notebook.ended.size}`,
      description: "sent"
    }))
  ),
  fc.tuple(which, fc.option(name, { nil: undefined })).map(([index, to]) =>
    told(to === undefined ? "an escrow goes back" : `an escrow goes to ${to}`, ({ escrows }) => {
      const [transfer, escrow] = [...escrows][index % Math.max(1, escrows.size)] ?? []
      return transfer === undefined || escrow === undefined
        ? undefined
        : {
            _tag: "EndEscrow",
            source: to === undefined ? "transfer_return" : "transfer_release",
            from: escrow.account,
            to: to ?? escrow.account,
            amount: escrow.amount,
            transfer,
            description: "ended"
          }
    })
  ),
  fc.tuple(name, amounts).map(([who, amount]) =>
    told(`${amount} that ${who} paid is taken back`, () => ({
      _tag: "TakeBack",
      account: who,
      amount,
      reference: "pay",
      description: "refunded"
    }))
  )
]

const settle = (call: string, cost: bigint): Posting => ({
  _tag: "Settle",
  call,
  outcome: {
    cost,
    prompt_tokens: 0,
    completion_tokens: 0,
    units: 1,
    success: true,
    error_type: null,
    usage_source: "counted",
    latency_ms: 1
  }
})

export interface SuiteOptions {
  /** A fresh ledger for each story. */
  readonly make: () => Promise<LedgerUnderTest>
  readonly stories?: number | undefined
  /** The most steps of a story. */
  readonly length?: number | undefined
  /** Tells the same stories again. */
  readonly seed?: number | undefined
}

/** Tells the ledger stories; fails with the shortest that goes wrong. */
export const checkLedger = ({ length = 40, make, seed, stories = 100 }: SuiteOptions): Promise<void> =>
  tell<Notebook, World>({
    steps: deeds,
    begin: async () => {
      const ledger = await make()
      const notebook = empty()
      for (const account of people) {
        const opened: Posting = { _tag: "Open", account, tenant: `ten_${account}` }
        await ledger.submit([opened])
        apply(notebook, opened)
      }
      return { notebook, world: { ledger } }
    },
    close: async ({ ledger }) => ledger.close?.(),
    stories,
    length,
    seed
  })
