/**
 * The properties that a ledger under test must have. Every answer must equal the model's answer, and all invariants of the books must hold after
 * every step.
 */
import { Either } from "effect"
import type { Entry, Limit, Refusal, Result } from "../books/ledger/rules/Transaction.ts"
import { difference, show } from "./Difference.ts"
import { apply, applicationOf, everyone, standingOf } from "./LedgerModel.ts"
import type { ExpectedResult, ModelAccount, Notebook } from "./LedgerModel.ts"
import { explain } from "./SerialOrder.ts"
import type { StoryPosting } from "./LedgerModel.ts"

/** The answer to a transaction: one result for each posting, or one refusal. */
export type Answer = { readonly results: ReadonlyArray<Result> } | { readonly refusal: Refusal }

/** The interface of a ledger under test. The suite submits several transactions concurrently. */
export interface LedgerUnderTest {
  /**
   * Applies all postings or none. `lost` means that the transaction has ended but its outcome is unknown, because the answer was lost. The promise
   * must reject only if the ledger is broken.
   */
  readonly submit: (postings: ReadonlyArray<StoryPosting>) => Promise<Answer | "lost">
  /** Returns the current state of an account, or `undefined` if it does not exist. */
  readonly account: (id: string) => Promise<AccountView | undefined>
  /** Returns the account's entries, oldest first. */
  readonly entries: (id: string) => Promise<ReadonlyArray<EntryView>>
  /** Returns an application's current limit, or `undefined` if it has none. Stories with limits require this function. */
  readonly limit?: (application: string) => Promise<LimitView | undefined>
  /** Begins the next calendar month. If the ledger lacks this function, the month does not change. */
  readonly nextMonth?: () => Promise<void>
  readonly close?: () => Promise<void>
}

export type LimitView = Pick<Limit, "amount" | "period" | "reserved" | "spent">

/** An account's state. `status` and `funded` are compared if they are present. */
export interface AccountView {
  readonly giftable: bigint
  readonly granted: bigint
  /** The credit in escrow. Absent if the ledger has no escrow. */
  readonly held?: bigint | undefined
  readonly reserved: bigint
  readonly status?: string
  readonly funded?: boolean
}

/** An entry. `giftable` and `description` are compared if they are present. */
export type EntryView = Pick<Entry, "type" | "amount" | "balance" | "source" | "reference_id"> &
  Partial<Pick<Entry, "giftable" | "description">>

export interface View extends AccountView {
  readonly id: string
  readonly held: bigint
  /** The limit of its application; `null` if there is none, and absent if the ledger does not show limits. */
  readonly limit?: LimitView | null
  readonly entries: ReadonlyArray<EntryView>
}

/** Compares the accounts with the notebook. Returns the error, or `undefined` if there is none. */
export type Invariant = (views: ReadonlyArray<View>, notebook: Notebook) => string | undefined

/** The invariants of all accounts, by their names in the contract and in the order of their checks. */
export const invariants: Readonly<Record<string, Invariant>> = {
  "amounts are exact": (views) =>
    first(views, ({ entries, giftable, granted, held, id, reserved }) => {
      const amounts = [
        giftable,
        granted,
        held,
        reserved,
        ...entries.flatMap(({ amount, balance }) => [amount, balance])
      ]
      const inexact = amounts.find((amount: unknown) => typeof amount !== "bigint")
      return inexact === undefined ? undefined : `${id} has an amount that is not a bigint: ${show(inexact)}`
    }),
  "accounts are those that were opened": (views, { accounts }) => {
    const lost = [...accounts.keys()].find((id) => views.every((view) => view.id !== id))
    if (lost !== undefined) return `${lost} is gone`
    const made = views.find(({ id }) => !accounts.has(id))
    return made === undefined ? undefined : `${made.id} exists, but was not opened`
  },
  "a balance is the sum of its entries": (views) =>
    first(views, ({ entries, giftable, granted, id }) => {
      const sum = sumOf(entries, ({ amount, type }) => (type === "credit" ? amount : -amount))
      return sum === giftable + granted ? undefined : `${id} has ${giftable + granted}, but its entries sum to ${sum}`
    }),
  "a balance is that of the last entry": (views) =>
    first(views, ({ entries, giftable, granted, id }) => {
      const last = entries.at(-1)?.balance ?? 0n
      return last === giftable + granted
        ? undefined
        : `${id} has ${giftable + granted}, but its last entry states ${last}`
    }),
  "nothing is below zero": (views) =>
    first(views, ({ giftable, granted, held, id, reserved }) =>
      [giftable, granted, held, reserved].some((amount) => amount < 0n) ? `${id} has a negative amount` : undefined
    ),
  "what calls have reserved is within the balance": (views) =>
    first(views, ({ giftable, granted, id, reserved }) =>
      reserved > giftable + granted ? `${id} has reserved ${reserved} of ${giftable + granted}` : undefined
    ),
  "what is reserved is that of the open calls": (views, { calls }) =>
    first(views, ({ id, reserved }) => {
      const open = sumOf(calls.values(), ({ account, amount }) => (account === id ? amount : 0n))
      return reserved === open ? undefined : `${id} has reserved ${reserved}, but its open calls sum to ${open}`
    }),
  "held credit is that of the pending transfers": (views, { escrows }) =>
    first(views, ({ held, id }) => {
      const open = sumOf(escrows.values(), ({ account, amount }) => (account === id ? amount : 0n))
      return held === open ? undefined : `${id} holds ${held}, but its pending transfers sum to ${open}`
    }),
  "a transfer pays out once": (views) => {
    const twice = twin(
      views.flatMap(({ entries }) =>
        entries.filter(({ source }) => source === "transfer_release" || source === "transfer_return")
      )
    )
    return twice === undefined ? undefined : `transfer ${twice.reference_id} was paid out twice`
  },
  "a call is charged at most once": (views) => {
    const twice = twin(
      views.flatMap(({ entries }) => entries.filter(({ source, type }) => type === "debit" && source === null))
    )
    return twice === undefined ? undefined : `call ${twice.reference_id} was charged twice`
  },
  "credit is neither made nor lost": (views, { accounts }) => {
    const made = sumOf(accounts.values(), ({ came, went }) => came - went)
    const there = sumOf(views, ({ giftable, granted, held }) => giftable + granted + held)
    return made === there
      ? undefined
      : `credit from outside minus charges is ${made}, but accounts and escrow have ${there}`
  },
  "granted credit is spent before giftable": (views, notebook) =>
    compared(views, notebook, ({ giftable, granted, id }, account) =>
      account.giftable === giftable && account.granted === granted
        ? undefined
        : `${id} has ${giftable} giftable and ${granted} granted; it must be ${account.giftable} and ${account.granted}`
    ),
  "a status is the one that was set": (views, notebook) =>
    compared(views, notebook, ({ funded, id, status }, account) => {
      const optional = { status: status && account.status, funded: funded === undefined ? undefined : account.funded }
      return difference(optional, { status, funded }, id)
    }),
  "a limit holds what its key has spent and reserved": (views, notebook) =>
    first(views, ({ id, limit }) => {
      if (limit === undefined) return undefined
      const application = applicationOf(id)
      const expected = notebook.limits.get(application)
      if (expected === undefined) return limit === null ? undefined : `${application} has a limit that was not set`
      const must = { ...expected, ...standingOf(notebook, application, expected.period) }
      return difference(must, limit, `the limit of ${application}`)
    }),
  "each movement has its entry": (views, notebook) =>
    compared(views, notebook, ({ entries, id }, account) => {
      if (entries.length !== account.entries.length) {
        return `${id} has ${entries.length} entries but must have ${account.entries.length}`
      }
      return firstOf(account.entries.entries(), ([i, { description, giftable, reference, ...expected }]) => {
        const found = entries[i]!
        const reference_id =
          expected.source === null ? (notebook.settled.get(reference) ?? found.reference_id) : reference
        const optional = {
          giftable: found.giftable === undefined ? undefined : giftable,
          description: found.description === undefined ? undefined : description
        }
        return difference({ ...expected, reference_id, ...optional }, found, `entry ${i + 1} of ${id}`)
      })
    })
}

const firstOf = <A>(items: Iterable<A>, wrong: (item: A) => string | undefined): string | undefined => {
  for (const item of items) {
    const why = wrong(item)
    if (why !== undefined) return why
  }
  return undefined
}

const first: (views: ReadonlyArray<View>, wrong: (view: View) => string | undefined) => string | undefined = firstOf

const compared = (
  views: ReadonlyArray<View>,
  { accounts }: Notebook,
  wrong: (view: View, account: ModelAccount) => string | undefined
): string | undefined => first(views, (view) => wrong(view, accounts.get(view.id)!))

const sumOf = <A>(items: Iterable<A>, amountOf: (item: A) => bigint): bigint => {
  let sum = 0n
  for (const item of items) sum += amountOf(item)
  return sum
}

/** Returns the second of two entries with the same reference, if there is one. */
const twin = (entries: ReadonlyArray<EntryView>): EntryView | undefined => {
  const references = new Set<string>()
  return entries.find(({ reference_id }) => references.size === references.add(reference_id).size)
}

export class InvariantBroken extends Error {
  override readonly name = "InvariantBroken"
}

/** Returns the first broken invariant with its error. */
export const broken: Invariant = (views, notebook) =>
  firstOf(Object.entries(invariants), ([rule, invariant]) => {
    const why = invariant(views, notebook)
    return why === undefined ? undefined : `${rule}: ${why}`
  })

/** Returns the notebook after a transaction with this answer, or the error in the answer. */
export const judge = (
  notebook: Notebook,
  postings: ReadonlyArray<StoryPosting>,
  answer: Answer
): Either.Either<Notebook, string> => {
  const expected = apply(notebook, postings)
  if ("refusal" in expected) {
    const why =
      "refusal" in answer
        ? (misnamed(expected.refusal, answer.refusal) ??
          difference(expected.refusal, answer.refusal, expected.refusal._tag))
        : misnamed(expected.refusal, answer.results.at(-1))
    return why === undefined ? Either.right(notebook) : Either.left(why)
  }
  if ("refusal" in answer) return Either.left(misnamed(expected.results.at(-1), answer.refusal)!)
  if (answer.results.length !== postings.length) {
    return Either.left(`it returned ${answer.results.length} results for ${postings.length} postings`)
  }
  const settled = new Map(expected.notebook.settled)
  for (const [i, result] of expected.results.entries()) {
    const found = answer.results[i]!
    const why = misnamed(result, found) ?? difference(result, found, result._tag)
    if (why !== undefined) return Either.left(why)
    const posting = postings[i]!
    if (found._tag !== "Settled" || posting._tag !== "Settle") continue
    const { usage_id } = found
    // A released call that settles late keeps its usage id.
    if (typeof usage_id !== "string" || [...settled].some(([call, id]) => id === usage_id && call !== posting.call)) {
      return Either.left(`usage_id of Settled is ${show(usage_id)} but must be unique`)
    }
    settled.set(posting.call, usage_id)
  }
  return Either.right({ ...expected.notebook, settled })
}

const misnamed = (
  expected: ExpectedResult | Refusal | undefined,
  found: Result | Refusal | undefined
): string | undefined =>
  expected?._tag === found?._tag
    ? undefined
    : `it answered ${found === undefined ? "nothing" : show(found)} instead of ${expected === undefined ? "nothing" : show(expected)}`

export const viewsOf = async (ledger: LedgerUnderTest, hasLimits = false): Promise<ReadonlyArray<View>> => {
  const views: Array<View> = []
  for (const id of everyone) {
    const account = await ledger.account(id)
    if (account === undefined) continue
    const limit = hasLimits && { limit: (await ledger.limit!(applicationOf(id))) ?? null }
    views.push({ ...account, held: account.held ?? 0n, id, entries: await ledger.entries(id), ...limit })
  }
  return views
}

/**
 * Submits transactions concurrently. Returns the resulting notebook if some serial order explains the answers and accounts. Otherwise, throws an
 * error.
 */
export const submitted = async (
  notebook: Notebook,
  ledger: LedgerUnderTest,
  transactions: ReadonlyArray<ReadonlyArray<StoryPosting>>
): Promise<Notebook> => {
  const over = await Promise.allSettled(transactions.map((postings) => ledger.submit(postings)))
  const answers = over.map((one) => {
    if (one.status === "rejected") throw one.reason
    return one.value
  })
  const setsLimit = transactions.some((postings) => postings.some(({ _tag }) => _tag === "SetLimit"))
  const hasLimits = ledger.limit !== undefined && (setsLimit || notebook.limits.size > 0)
  const views = await viewsOf(ledger, hasLimits)
  const lost = [...answers.keys()].filter((i) => answers[i] === "lost")
  let why = ""
  for (const done of subsetsOf(lost)) {
    const explained = explain({
      notebook,
      count: transactions.length,
      apply: (before, i) => {
        const answer = answers[i]!
        if (answer !== "lost") return judge(before, transactions[i]!, answer)
        return Either.right(done.has(i) ? assumed(before, transactions[i]!) : before)
      },
      outcome: (after) => broken(views, after)
    })
    if (Either.isRight(explained)) return explained.right
    why = explained.left
  }
  throw new InvariantBroken(why)
}

const subsetsOf = (all: ReadonlyArray<number>): ReadonlyArray<ReadonlySet<number>> =>
  all.reduce<ReadonlyArray<ReadonlySet<number>>>(
    (subsets, one) => subsets.flatMap((subset) => [subset, new Set([...subset, one])]),
    [new Set()]
  )

/** Returns the notebook after a transaction that was committed although its answer was lost. */
const assumed = (notebook: Notebook, postings: ReadonlyArray<StoryPosting>): Notebook => {
  const expected = apply(notebook, postings)
  if ("refusal" in expected) return notebook
  const settled = new Map(expected.notebook.settled)
  for (const [i, { _tag }] of expected.results.entries()) {
    const posting = postings[i]!
    if (_tag === "Settled" && posting._tag === "Settle") settled.set(posting.call, undefined)
  }
  return { ...expected.notebook, settled }
}
