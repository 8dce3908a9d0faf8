/**
 * The rules of the books, as a pure function: the accounts, reservations and counters that a transaction touches in; what it
 * answers and what changes out. Nothing here knows of a database, a clock or a thread. Every engine that stores the books runs
 * this, and the property tests hammer it.
 */
import { Either } from "effect"
import { usageOf } from "../kernel/Ids.ts"
import { amountMax } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { availableOf, balanceOf, giftableSources } from "./Transaction.ts"
import type {
  Account,
  CreditSource,
  Entry,
  Outcome,
  Posting,
  Refusal,
  Reservation,
  Result,
  Source,
  UsageRecord
} from "./Transaction.ts"

/** The part of the books that is in hand: everything that the transactions at work may touch. */
export interface Books {
  readonly accounts: Map<string, Account>
  readonly reservations: Map<string, Reservation>
  /** How many usage records each tenant has. */
  readonly records: Map<string, number>
  /** The instant at which everything here is booked. */
  readonly at: number
}

/** What a transaction changes. */
export interface Decision {
  readonly results: ReadonlyArray<Result>
  readonly accounts: ReadonlyMap<string, Account>
  readonly entries: ReadonlyArray<Entry>
  readonly usage: ReadonlyArray<UsageRecord>
  readonly reserved: ReadonlyArray<Reservation>
  readonly released: ReadonlyArray<string>
}

/** Decides the postings of one transaction, in order, each seeing what those before it did. The books stay as they are. */
export const decide = (books: Books, postings: ReadonlyArray<Posting>): Either.Either<Decision, Refusal> => {
  const draft = new Draft(books)
  const results: Array<Result> = []
  for (const posting of postings) {
    const result = post(draft, posting)
    if (Either.isLeft(result)) return Either.left(result.left)
    results.push(result.right)
  }
  return Either.right({ ...draft, results })
}

/** Takes a decision over into the books in hand. */
export const apply = (books: Books, decision: Decision): void => {
  for (const account of decision.accounts.values()) books.accounts.set(account.id, account)
  for (const reservation of decision.reserved) books.reservations.set(reservation.id, reservation)
  for (const call of decision.released) books.reservations.delete(call)
  for (const record of decision.usage) books.records.set(record.tenant_id, record.number)
}

/** One transaction on the books in hand: decided and, unless refused, applied. */
export const commit = (books: Books, postings: ReadonlyArray<Posting>): Outcome =>
  Either.match(decide(books, postings), {
    onLeft: (refusal) => ({ _tag: "Refused", refusal }),
    onRight: (decision) => {
      apply(books, decision)
      return { _tag: "Committed", results: decision.results }
    }
  })

const post = (draft: Draft, posting: Posting): Either.Either<Result, Refusal> => {
  switch (posting._tag) {
    case "Open":
      return open(draft, posting)
    case "SetStatus":
      return setStatus(draft, posting)
    case "Credit":
      return credit(draft, posting)
    case "Reserve":
      return reserve(draft, posting)
    case "Settle":
      return settle(draft, posting)
  }
}

type Of<Tag extends Posting["_tag"]> = Extract<Posting, { _tag: Tag }>

const open = (draft: Draft, { account, tenant }: Of<"Open">): Either.Either<Result, Refusal> => {
  if (draft.account(account) !== undefined) return Either.left({ _tag: "AccountExists", account })
  draft.accounts.set(account, {
    id: account,
    tenant_id: tenant,
    status: "active",
    giftable: 0n,
    granted: 0n,
    held: 0n,
    reserved: 0n,
    funded: false,
    entries: 0
  })
  return Either.right({ _tag: "Opened" })
}

const setStatus = (draft: Draft, { account: id, status }: Of<"SetStatus">): Either.Either<Result, Refusal> => {
  const account = draft.account(id)
  if (account === undefined) return Either.left({ _tag: "AccountMissing", account: id })
  draft.accounts.set(id, { ...account, status })
  return Either.right({ _tag: "Changed" })
}

const credit = (draft: Draft, posting: Of<"Credit">): Either.Either<Result, Refusal> => {
  const { amount, description, reference, source } = posting
  const account = draft.account(posting.account)
  if (account === undefined) return Either.left({ _tag: "AccountMissing", account: posting.account })
  if (amount <= 0n || balanceOf(account) + amount > amountMax) {
    return Either.left({ _tag: "BalanceTooLarge", account: account.id })
  }
  const giftable = giftableSources.has(source)
  const after = {
    ...account,
    giftable: giftable ? account.giftable + amount : account.giftable,
    granted: giftable ? account.granted : account.granted + amount,
    funded: account.funded || source === "purchase" || source === "transfer_release"
  }
  draft.enter(after, "credit", amount, source, reference, description)
  return Either.right({ _tag: "Credited", balance: balanceOf(after) })
}

const reserve = (draft: Draft, posting: Of<"Reserve">): Either.Either<Result, Refusal> => {
  const { call, facts, least, most, run, sources } = posting
  let available = 0n
  for (const source of sources) {
    const account = draft.account(source.billing_account_id)
    if (account === undefined || account.status !== "active") {
      if (source.kind === "team") continue
      return Either.left({
        _tag: account === undefined ? "AccountMissing" : "AccountInactive",
        account: source.billing_account_id
      })
    }
    const free = availableOf(account)
    if (free < least) {
      available = free > available ? free : available
      continue
    }
    const amount = free < most ? free : most
    draft.accounts.set(account.id, { ...account, reserved: account.reserved + amount })
    draft.reserved.push({ id: call, source, amount, at: draft.books.at, run, facts })
    return Either.right({ _tag: "Reserved", source, amount })
  }
  return Either.left({ _tag: "InsufficientCredits", available })
}

const settle = (draft: Draft, { call, outcome }: Of<"Settle">): Either.Either<Result, Refusal> => {
  const reservation = draft.reservation(call)
  if (reservation === undefined) return Either.right({ _tag: "AlreadySettled" })
  const { amount, facts, source } = reservation
  const account = draft.account(source.billing_account_id)
  if (account === undefined) return Either.left({ _tag: "AccountMissing", account: source.billing_account_id })

  // The reservation comes back first; what other calls have set aside is theirs.
  const freed = { ...account, reserved: account.reserved - amount }
  const cost = outcome.cost > 0n ? outcome.cost : 0n
  const payable = availableOf(freed)
  const collected = cost < payable ? cost : payable
  const fromGranted = collected < freed.granted ? collected : freed.granted
  const after = {
    ...freed,
    granted: freed.granted - fromGranted,
    giftable: freed.giftable - (collected - fromGranted)
  }
  const usage_id = usageOf(call)
  if (collected > 0n) draft.enter(after, "debit", collected, null, usage_id, describe(facts))
  else draft.accounts.set(after.id, after)
  draft.released.push(call)
  draft.usage.push({
    ...facts,
    ...outcome,
    id: usage_id,
    number: draft.countRecord(facts.tenant_id),
    at: draft.books.at,
    cost: collected,
    uncollected: cost - collected,
    reserved: amount,
    billing_account_id: source.billing_account_id,
    billing_source_tenant_id: source.tenant_id,
    billing_source_kind: source.kind
  })
  return Either.right({ _tag: "Settled", usage_id, collected, balance: balanceOf(after) })
}

const describe = ({ endpoint, model }: { readonly endpoint: string; readonly model: string }): string =>
  `${endpoint} ${model}`

/** The changes of a transaction in the making, laid over the books. */
class Draft {
  readonly accounts = new Map<string, Account>()
  readonly entries: Array<Entry> = []
  readonly usage: Array<UsageRecord> = []
  readonly reserved: Array<Reservation> = []
  readonly released: Array<string> = []
  readonly books: Books

  constructor(books: Books) {
    this.books = books
  }

  account(id: string): Account | undefined {
    return this.accounts.get(id) ?? this.books.accounts.get(id)
  }

  reservation(call: string): Reservation | undefined {
    if (this.released.includes(call)) return undefined
    return this.reserved.find((reservation) => reservation.id === call) ?? this.books.reservations.get(call)
  }

  /** The number of the tenant's next usage record. */
  countRecord(tenant: string): number {
    const own = this.usage.reduce((count, record) => (record.tenant_id === tenant ? count + 1 : count), 0)
    return (this.books.records.get(tenant) ?? 0) + own + 1
  }

  /** Writes the account's next entry; `after` is the account with the amount moved. */
  enter(
    after: Account,
    type: "credit" | "debit",
    amount: Nano,
    source: CreditSource | null,
    reference_id: string,
    description: string
  ): void {
    const number = after.entries + 1
    this.accounts.set(after.id, { ...after, entries: number })
    this.entries.push({
      billing_account_id: after.id,
      number,
      type,
      amount,
      balance: balanceOf(after),
      giftable: after.giftable,
      source,
      reference_id,
      description,
      at: this.books.at
    })
  }
}

/** The sources that a transaction may touch, by the ids of their accounts. */
export const accountsOf = (posting: Posting): ReadonlyArray<string> => {
  switch (posting._tag) {
    case "Open":
    case "SetStatus":
    case "Credit":
      return [posting.account]
    case "Reserve":
      return posting.sources.map((source: Source) => source.billing_account_id)
    case "Settle":
      return []
  }
}
