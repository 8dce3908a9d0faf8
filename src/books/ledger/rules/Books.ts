/**
 * The rules of the books, as a pure function from the accounts, reservations and counters that a transaction touches to its results and changes.
 * Nothing in this file uses a database, a clock or a thread. Every engine runs these rules, and the property tests check them.
 *
 * Where the specification is silent:
 * - A call that costs nothing leaves a usage record and no ledger entry.
 * - A charge counts in the month of its usage record, so no monthly view exceeds the API key's limit. If a call is open at the end of a month, its
 *   reservation counts in the next month.
 * - A call that was released because its run had ended may still settle if its node was only slow or disconnected. It is charged from the credit that
 *   is available then, and the remainder is `uncollected`. Its usage record takes over the usage id, and the release's record, at cost 0, gets
 *   another id (`Released`). If the call failed at no cost, the release's record remains the only one.
 * - An API key's limit works like a balance. A call that costs more than its reservation is charged up to the limit, and the remainder is
 *   `uncollected`. A limit below the current spending stops further calls, but open calls can still be charged from their reservations.
 * - A call is charged first. Only then can a debt be paid from the reservation that the call released.
 */
import { Either } from "effect"
import { usageOf } from "../../../kernel/Ids.ts"
import { amountMax } from "../../../kernel/Money.ts"
import type { Nano } from "../../../kernel/Money.ts"
import { newBudget, minUsdLeft, withTerms } from "./Budget.ts"
import type { Budget } from "./Budget.ts"
import * as Counting from "./Counting.ts"
import { renew } from "./Renewing.ts"
import { availableOf, balanceOf, freeOf, giftableSources, interrupted, owedOf } from "./Transaction.ts"
import type {
  Account,
  CallOutcome,
  ClaimedFacts,
  CreditSource,
  Debt,
  Dimensions,
  Entry,
  Outcome,
  Posting,
  Refusal,
  Reservation,
  Result,
  Source,
  UsageRecord
} from "./Transaction.ts"

/** The part of the books that the current transactions can touch. */
export interface Books {
  readonly accounts: Map<string, Account>
  readonly reservations: Map<string, Reservation>
  /** The number of usage records, by tenant. */
  readonly records: Map<string, number>
  readonly budgets: ReadonlyMap<string, Budget | undefined>
  /** The budget ids by anchor. */
  readonly anchors: ReadonlyMap<string, ReadonlyArray<string>>
  /** The spending of each application that gets a limit from a transaction. */
  readonly spending: ReadonlyMap<string, Spending>
  /** The Unix time of all new rows, in milliseconds. */
  readonly at: number
}

/** An application's charges, and the reservations of its open calls. */
export interface Spending {
  readonly total: Nano
  /** The charges since the beginning of the current month. */
  readonly month: Nano
  readonly reserved: Nano
}

/** Applies a transaction to the draft. Each posting sees the changes of the previous ones. A refusal leaves the draft unchanged. */
export const commit = (draft: Draft, postings: ReadonlyArray<Posting>): Outcome => {
  // A single posting either changes the draft or refuses, so it needs no second draft.
  if (postings.length === 1) {
    const result = post(draft, postings[0]!)
    return Either.isLeft(result) ? refused(result.left) : committed([result.right])
  }
  const tried = attempt(draft, postings)
  if (Either.isLeft(tried)) return refused(tried.left)
  tried.right.draft.adopt()
  return committed(tried.right.results)
}

/** Applies a transaction to a new draft on top of `draft`. `draft` does not change until it adopts the new one. */
export const attempt = (
  draft: Draft,
  postings: ReadonlyArray<Posting>
): Either.Either<{ readonly draft: Draft; readonly results: ReadonlyArray<Result> }, Refusal> => {
  const nested = new Draft(draft.books, draft)
  const results: Array<Result> = []
  for (const posting of postings) {
    const result = post(nested, posting)
    if (Either.isLeft(result)) return Either.left(result.left)
    results.push(result.right)
  }
  return Either.right({ draft: nested, results })
}

const committed = (results: ReadonlyArray<Result>): Outcome => ({ _tag: "Committed", results })

export const refused = (refusal: Refusal): Outcome => ({ _tag: "Refused", refusal })

const post = (draft: Draft, posting: Posting): Either.Either<Result, Refusal> => {
  switch (posting._tag) {
    case "Open":
      return open(draft, posting)
    case "SetStatus":
      return setStatus(draft, posting)
    case "Credit":
      return credit(draft, posting)
    case "TakeBack":
      return takeBack(draft, posting)
    case "Renew":
      return renewed(draft, posting)
    case "Escrow":
      return escrow(draft, posting)
    case "EndEscrow":
      return endEscrow(draft, posting)
    case "SetLimit":
      return setLimit(draft, posting)
    case "SetBudget":
      return setBudget(draft, posting)
    case "Reserve":
      return reserve(draft, posting)
    case "Settle":
      return settle(draft, posting)
  }
}

type PostingOf<Tag extends Posting["_tag"]> = Extract<Posting, { _tag: Tag }>

const open = (draft: Draft, { account, tenant }: PostingOf<"Open">): Either.Either<Result, Refusal> => {
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
    entries: 0,
    debts: undefined
  })
  return Either.right({ _tag: "Opened" })
}

const setStatus = (draft: Draft, { account: id, status }: PostingOf<"SetStatus">): Either.Either<Result, Refusal> => {
  const account = draft.account(id)
  if (account === undefined) return Either.left({ _tag: "AccountMissing", account: id })
  draft.accounts.set(id, { ...account, status })
  return Either.right({ _tag: "Changed" })
}

const credit = (draft: Draft, posting: PostingOf<"Credit">): Either.Either<Result, Refusal> => {
  const { description, payment, reference, source } = posting
  const found = draft.account(posting.account)
  if (found === undefined) return Either.left({ _tag: "AccountMissing", account: posting.account })
  const account = payment === undefined ? found : withoutDebt(found, payment, posting.amount)
  const amount = posting.amount - (owedOf(found) - owedOf(account))
  if (amount === 0n && account !== found) {
    draft.accounts.set(account.id, account)
    const balance = balanceOf(account)
    return Either.right({ _tag: "Credited", balance, before: balance })
  }
  if (amount <= 0n || balanceOf(account) + amount > amountMax) {
    return Either.left({ _tag: "BalanceTooLarge", account: account.id })
  }
  const giftable = giftableSources.has(source)
  const after = {
    ...account,
    giftable: giftable ? account.giftable + amount : account.giftable,
    granted: giftable ? account.granted : account.granted + amount,
    funded: account.funded || source === "purchase" || source === "transfer_release",
    entries: account.entries + 1
  }
  const balance = draft.enter(after, "credit", amount, source, reference, description)
  if (found.debts === undefined) return Either.right({ _tag: "Credited", balance })
  return Either.right({ _tag: "Credited", ...repayDebts(draft, found) })
}

const takeBack = (draft: Draft, posting: PostingOf<"TakeBack">): Either.Either<Result, Refusal> => {
  const { amount, description, payment, reference, source = "purchase" } = posting
  const account = draft.account(posting.account)
  if (account === undefined) return Either.left({ _tag: "AccountMissing", account: posting.account })
  const free = source === "admin" ? smaller(freeOf(account), account.granted) : freeOf(account)
  const taken = larger(smaller(amount, free), 0n)
  const rest = amount - taken
  const owing = payment === undefined || rest <= 0n ? account : withDebt(account, { payment, amount: rest })
  const balance = debitAccount(draft, owing, taken, source, reference, description)
  if (owing.debts === undefined) return Either.right({ _tag: "TakenBack", taken, balance })
  return Either.right({ _tag: "TakenBack", taken, ...repayDebts(draft, account) })
}

const renewed = (draft: Draft, posting: PostingOf<"Renew">): Either.Either<Result, Refusal> => {
  const found = draft.account(posting.account)
  if (found === undefined) return Either.left({ _tag: "AccountMissing", account: posting.account })
  return Either.map(renew(draft, found, posting), (parts) => ({
    _tag: "Renewed",
    ...parts,
    ...(found.debts === undefined
      ? { balance: balanceOf(draft.account(found.id)!), before: balanceOf(found) }
      : repayDebts(draft, found))
  }))
}

/** Debits the amount, from giftable credit first (for `admin`, only from granted credit). Returns the balance. */
const debitAccount = (
  draft: Draft,
  account: Account,
  amount: Nano,
  source: "purchase" | "admin",
  reference: string,
  description: string
): Nano => {
  if (amount === 0n) {
    draft.accounts.set(account.id, account)
    return balanceOf(account)
  }
  const fromGiftable = source === "admin" ? 0n : smaller(amount, account.giftable)
  const after = {
    ...account,
    giftable: account.giftable - fromGiftable,
    granted: account.granted - (amount - fromGiftable),
    entries: account.entries + 1
  }
  return draft.enter(after, "debit", amount, source, reference, description)
}

const withDebt = (account: Account, { amount, payment }: Debt): Account => {
  const debts = account.debts ?? []
  const owed = debts.find((debt) => debt.payment === payment)
  const others = debts.filter((debt) => debt !== owed)
  return { ...account, debts: [...others, { payment, amount: amount + (owed?.amount ?? 0n) }] }
}

/** Reduces the account's debt for the payment by at most the amount. */
const withoutDebt = (account: Account, payment: string, amount: Nano): Account => {
  const debts = account.debts?.flatMap((debt): ReadonlyArray<Debt> => {
    if (debt.payment !== payment) return [debt]
    return debt.amount > amount ? [{ payment, amount: debt.amount - amount }] : []
  })
  return { ...account, debts: debts?.length === 0 ? undefined : debts }
}

/**
 * Pays the account's debts from its free credit, starting with the debt that was least recently increased. `before` is the account before the
 * posting.
 */
const repayDebts = (draft: Draft, before: Account): { readonly balance: Nano; readonly before: Nano } => {
  let account = draft.account(before.id)!
  for (const { amount, payment } of account.debts ?? []) {
    const taken = smaller(amount, freeOf(account))
    if (taken <= 0n) break
    debitAccount(
      draft,
      withoutDebt(account, payment, taken),
      taken,
      "purchase",
      payment,
      "purchase refunded or disputed"
    )
    account = draft.account(before.id)!
  }
  return { balance: balanceOf(account), before: balanceOf(before) }
}

const escrow = (draft: Draft, posting: PostingOf<"Escrow">): Either.Either<Result, Refusal> => {
  const { amount, description, transfer } = posting
  const account = draft.account(posting.account)
  if (account === undefined) return Either.left({ _tag: "AccountMissing", account: posting.account })
  if (account.status !== "active") return Either.left({ _tag: "AccountInactive", account: account.id })
  const available = account.debts === undefined ? availableOf(account) : 0n
  if (amount <= 0n || amount > available) return Either.left({ _tag: "InsufficientCredits", available })
  if (amount > account.giftable) return Either.left({ _tag: "InsufficientGiftable", giftable: account.giftable })
  const after = {
    ...account,
    giftable: account.giftable - amount,
    held: account.held + amount,
    entries: account.entries + 1
  }
  const balance = draft.enter(after, "debit", amount, "transfer_escrow", transfer, description)
  return Either.right({ _tag: "Escrowed", balance })
}

const endEscrow = (draft: Draft, posting: PostingOf<"EndEscrow">): Either.Either<Result, Refusal> => {
  const { amount, description, from, source, to, transfer } = posting
  const sender = draft.account(from)
  if (sender === undefined) return Either.left({ _tag: "AccountMissing", account: from })
  if (amount <= 0n || amount > sender.held) return Either.left({ _tag: "NotHeld", account: from })
  const released = { ...sender, held: sender.held - amount }
  const before = from === to ? released : draft.account(to)
  if (before === undefined) return Either.left({ _tag: "AccountMissing", account: to })
  // Only credit that is received can exceed the maximum, because returned credit was part of the balance before.
  const arrives = source === "transfer_release"
  // Held credit must not leave an account that has a debt. If it is returned, it pays the debt.
  if (arrives && from !== to && sender.debts !== undefined)
    return Either.left({ _tag: "InsufficientCredits", available: 0n })
  if (arrives && balanceOf(before) + amount > amountMax) return Either.left({ _tag: "BalanceTooLarge", account: to })
  if (from !== to) draft.accounts.set(from, released)
  const after = {
    ...before,
    giftable: before.giftable + amount,
    funded: before.funded || arrives,
    entries: before.entries + 1
  }
  const balance = draft.enter(after, "credit", amount, source, transfer, description)
  if (before.debts === undefined) return Either.right({ _tag: "EscrowEnded", balance })
  return Either.right({ _tag: "EscrowEnded", ...repayDebts(draft, before) })
}

const larger = (one: Nano, other: Nano): Nano => (one < other ? other : one)
const smaller = (one: Nano, other: Nano): Nano => (one < other ? one : other)

const setLimit = (draft: Draft, posting: PostingOf<"SetLimit">): Either.Either<Result, Refusal> => {
  const { account, application, limit, tenant } = posting
  if (limit === null) {
    draft.endBudget(application)
    return Either.right({ _tag: "LimitSet", spent: 0n, reserved: 0n })
  }
  if (draft.account(account) === undefined) return Either.left({ _tag: "AccountMissing", account })
  const { amount, period } = limit
  const { at } = draft.books
  const spending = draft.spendingOf(application)
  const { reserved } = spending
  const spent = spending[period]
  const base = { id: application, kind: "key", tenant_id: tenant, anchor: application } as const
  draft.setBudget(application, {
    ...newBudget({ ...base, terms: { ...limitTerms, limit: { usd: amount }, period } }, at),
    spent,
    reserved,
    ceiling: larger(amount, spent + reserved)
  })
  return Either.right({ _tag: "LimitSet", spent, reserved })
}

const limitTerms = {
  name: "",
  applies_to: {},
  mode: "refuse",
  notify_at: [],
  raises: [],
  by_operator: false,
  created_by: "",
  created_at: 0
} as const

const setBudget = (draft: Draft, posting: PostingOf<"SetBudget">): Either.Either<Result, Refusal> => {
  const { account, anchor, id, kind, tenant, terms } = posting
  if (account !== undefined && draft.account(account) === undefined) {
    return Either.left({ _tag: "AccountMissing", account })
  }
  const { at } = draft.books
  const before = draft.budget(id)
  if (terms === null) draft.endBudget(id)
  else if (before === undefined) draft.setBudget(id, newBudget({ id, kind, tenant_id: tenant, anchor, terms }, at))
  else draft.setBudget(id, withTerms(before, terms, at))
  return Either.right({ _tag: "BudgetSet" })
}

const reserve = (draft: Draft, posting: PostingOf<"Reserve">): Either.Either<Result, Refusal> => {
  const { call, enough = posting.least, facts, least, most, run, sources, tokens } = posting
  const { at } = draft.books
  for (const { billing_account_id: account, kind } of sources) {
    if (kind === "team") continue
    const own = draft.account(account)
    if (own === undefined) return Either.left({ _tag: "AccountMissing", account })
    if (own.status !== "active") return Either.left({ _tag: "AccountInactive", account })
  }
  const needs = { usd: least, tokens: tokens?.least ?? 0 }
  const common = Counting.admit(draft, facts, undefined, needs, at)
  const left = Either.isRight(common) ? minUsdLeft(common.right.budgets, at) : least
  // Do not look for more credit than the budgets allow.
  const preferredAmount = left === undefined ? enough : smaller(enough, larger(left, least))
  let available = 0n
  let payer: Source | undefined
  let counted = common
  let refusal: Refusal | undefined
  for (const source of sources) {
    if (source.barred === true) continue
    const account = draft.account(source.billing_account_id)
    if (account === undefined || account.status !== "active") continue
    const free = availableOf(account)
    if (free < least) {
      available = free > available ? free : available
      continue
    }
    const { tenant_id } = source
    const isOther = tenant_id !== facts.tenant_id && draft.budgetsAt(tenant_id).length > 0
    const within = isOther && Either.isRight(common) ? Counting.admit(draft, facts, tenant_id, needs, at) : common
    if (within !== common && Either.isLeft(within)) {
      refusal ??= within.left
      continue
    }
    if (payer !== undefined && free < preferredAmount) continue
    payer = source
    counted = within
    if (free >= preferredAmount) break
  }
  if (payer === undefined) return Either.left(refusal ?? { _tag: "InsufficientCredits", available })
  if (Either.isLeft(counted)) return Either.left(counted.left)
  const account = draft.account(payer.billing_account_id)!
  const within = smaller(availableOf(account), most)
  const limit = minUsdLeft(counted.right.budgets, at)
  const amount = limit === undefined ? within : smaller(within, limit)
  // A call is reserved only once. The database's primary key also enforces this rule.
  if (draft.reservation(call) !== undefined) throw new Error(`the call ${call} is already reserved`)
  const { entries, giftable, granted, reserved } = account
  draft.accounts.set(account.id, withAmounts(account, giftable, granted, reserved + amount, entries))
  const booked = Counting.book(draft, counted.right, amount, tokens, at)
  const dimensions = dimensionsOf(facts, payer)
  draft.reserved.set(call, { id: call, dimensions, amount, at, run, budgets: booked.ids, tokens: booked.tokens })
  return Either.right({ _tag: "Reserved", source: payer, amount, within: booked.within })
}

/** Returns the account with other amounts. This runs twice per call, and a literal takes a fifth of the time of a spread. */
const withAmounts = (account: Account, giftable: Nano, granted: Nano, reserved: Nano, entries: number): Account => ({
  id: account.id,
  tenant_id: account.tenant_id,
  status: account.status,
  giftable,
  granted,
  held: account.held,
  reserved,
  funded: account.funded,
  entries,
  debts: account.debts
})

const settle = (draft: Draft, { call, outcome }: PostingOf<"Settle">): Either.Either<Result, Refusal> => {
  const reservation = draft.reservation(call)
  if (reservation === undefined || (reservation.released === true && !isDue(outcome)))
    return Either.right({ _tag: "AlreadySettled" })
  // NaN or infinity would corrupt the record and every sum that includes it.
  if (!Number.isFinite(outcome.units)) throw new Error(`the call ${call} ends with ${outcome.units} units`)
  const { amount } = reservation
  const dimensions = servedBy(reservation.dimensions, outcome)
  const payer = dimensions.billing_account_id
  const account = draft.account(payer)
  if (account === undefined) throw new Error(`the payer ${payer} of the call ${call} has no account`)

  // A higher cost would not fit in its column, so the call could never be settled.
  const cost = outcome.cost < 0n ? 0n : outcome.cost < amountMax ? outcome.cost : amountMax
  // The call's own reservation pays first. The reservations of other calls are not touched.
  const budgets = Counting.countedOf(draft, reservation, draft.books.at)
  const free = availableOf(account)
  const left =
    budgets.length === 0 ? undefined : minUsdLeft(Counting.chargedBudgets(budgets, dimensions), draft.books.at)
  const payable = amount + (left === undefined ? free : smaller(free, left))
  const collected = cost < payable ? cost : payable
  const fromGranted = collected < account.granted ? collected : account.granted
  const charged = collected > 0n
  const after = withAmounts(
    account,
    account.giftable - (collected - fromGranted),
    account.granted - fromGranted,
    account.reserved - amount,
    charged ? account.entries + 1 : account.entries
  )
  const usage_id = usageOf(call)
  let balance: Nano
  if (charged) balance = draft.enter(after, "debit", collected, null, usage_id, describe(dimensions))
  else {
    draft.accounts.set(after.id, after)
    balance = balanceOf(after)
  }
  draft.release(call)
  if (reservation.released === true) draft.late.push(call)
  Counting.bookSettlement(draft, budgets, reservation, dimensions, outcome, collected)
  draft.record({
    id: usage_id,
    number: draft.recordsOf(dimensions.tenant_id) + 1,
    at: draft.books.at,
    dimensions,
    prompt_tokens: outcome.prompt_tokens,
    completion_tokens: outcome.completion_tokens,
    units: outcome.units,
    cost: collected,
    uncollected: cost - collected,
    reserved: amount,
    usage_source: outcome.usage_source,
    latency_ms: outcome.latency_ms,
    success: outcome.success,
    error_type: outcome.error_type,
    token_details: outcome.token_details,
    request_id: outcome.request_id,
    vendor_request: outcome.vendor_request,
    vendor_cost: outcome.vendor_cost,
    request_hash: outcome.request_hash,
    answer_hash: outcome.answer_hash,
    budgets: Counting.recordedIds(reservation.budgets, budgets, dimensions)
  })
  if (account.debts === undefined) return Either.right({ _tag: "Settled", usage_id, collected, balance })
  return Either.right({ _tag: "Settled", usage_id, collected, ...repayDebts(draft, account) })
}

/** Returns whether the late outcome of a released call must still be booked. */
const isDue = ({ cost, error_type, success }: CallOutcome): boolean =>
  error_type !== interrupted && (success || cost > 0n)

const describe = ({ endpoint, model }: Dimensions): string => `${endpoint} ${model}`

const shared = new WeakMap<ClaimedFacts, WeakMap<Source, Dimensions>>()

/** Returns a call's dimensions. The same facts and payer objects give the same object. */
const dimensionsOf = (facts: ClaimedFacts, source: Source): Dimensions => {
  let bySource = shared.get(facts)
  if (bySource === undefined) shared.set(facts, (bySource = new WeakMap()))
  let dimensions = bySource.get(source)
  if (dimensions === undefined) {
    const { capability: _, runs: __, ways: ___, ...stored } = facts
    dimensions = {
      ...stored,
      billing_account_id: source.billing_account_id,
      billing_source_tenant_id: source.tenant_id,
      billing_source_kind: source.kind,
      billing_source_why: source.why
    }
    bySource.set(source, dimensions)
  }
  return dimensions
}

const elsewhere = new WeakMap<Dimensions, Map<string, Dimensions>>()

/** Returns a call's dimensions with the provider and model that served it. */
const servedBy = (dimensions: Dimensions, { provider, served }: Pick<CallOutcome, "provider" | "served">): Dimensions =>
  served === undefined
    ? providedBy(dimensions, provider)
    : { ...dimensions, provider: provider ?? dimensions.provider, model: served.model, price: served.price }

const providedBy = (dimensions: Dimensions, provider: string | null | undefined): Dimensions => {
  if (provider === null || provider === undefined || provider === dimensions.provider) return dimensions
  let byProvider = elsewhere.get(dimensions)
  if (byProvider === undefined) elsewhere.set(dimensions, (byProvider = new Map()))
  let served = byProvider.get(provider)
  if (served === undefined) byProvider.set(provider, (served = { ...dimensions, provider }))
  return served
}

const noIds: ReadonlyArray<string> = []
const noBudgets: ReadonlyMap<string, never> = new Map<string, never>()
const noAnchors: ReadonlyMap<string, never> = new Map<string, never>()

/** Changes on top of the books or of another draft, which can adopt them. */
export class Draft {
  readonly accounts = new Map<string, Account>()
  readonly entries: Array<Entry> = []
  readonly usage: Array<UsageRecord> = []
  readonly reserved = new Map<string, Reservation>()
  /** The calls released here that had a reservation in the books or in the draft below. */
  readonly released = new Set<string>()
  /** The calls that were released earlier (`interrupted`) and are settled here. */
  readonly late: Array<string> = []
  readonly records = new Map<string, number>()
  #budgets: Map<string, Budget | undefined> | undefined
  #anchors: Map<string, ReadonlyArray<string>> | undefined
  readonly books: Books
  readonly below: Draft | undefined

  constructor(books: Books, below?: Draft) {
    this.books = books
    this.below = below
  }

  /** The changed budgets by id; `undefined` for a removed budget. */
  get budgets(): ReadonlyMap<string, Budget | undefined> {
    return this.#budgets ?? noBudgets
  }

  /** The anchors that gained or lost budgets, with the ids of all their current budgets. */
  get anchors(): ReadonlyMap<string, ReadonlyArray<string>> {
    return this.#anchors ?? noAnchors
  }

  account(id: string): Account | undefined {
    return this.accounts.get(id) ?? (this.below === undefined ? this.books.accounts.get(id) : this.below.account(id))
  }

  reservation(call: string): Reservation | undefined {
    if (this.released.has(call)) return undefined
    return (
      this.reserved.get(call) ??
      (this.below === undefined ? this.books.reservations.get(call) : this.below.reservation(call))
    )
  }

  recordsOf(tenant: string): number {
    return (
      this.records.get(tenant) ??
      (this.below === undefined ? (this.books.records.get(tenant) ?? 0) : this.below.recordsOf(tenant))
    )
  }

  budget(id: string): Budget | undefined {
    const budget = this.#budgets?.get(id)
    if (budget !== undefined || this.#budgets?.has(id) === true) return budget
    return this.below === undefined ? this.books.budgets.get(id) : this.below.budget(id)
  }

  budgetsAt(anchor: string): ReadonlyArray<string> {
    return (
      this.#anchors?.get(anchor) ??
      (this.below === undefined ? (this.books.anchors.get(anchor) ?? noIds) : this.below.budgetsAt(anchor))
    )
  }

  setBudget(id: string, budget: Budget): void {
    // Check this draft first, because it has usually changed the budget before.
    if (this.#budgets?.get(id) === undefined && this.budget(id) === undefined)
      this.#list(budget.anchor, [...this.budgetsAt(budget.anchor), id])
    this.#set(id, budget)
  }

  endBudget(id: string): void {
    const budget = this.budget(id)
    if (budget === undefined) return
    this.#list(
      budget.anchor,
      this.budgetsAt(budget.anchor).filter((other) => other !== id)
    )
    this.#set(id, undefined)
  }

  // The maps are created with the first change, because most drafts change no budget.
  #set(id: string, budget: Budget | undefined): void {
    this.#budgets ??= new Map()
    this.#budgets.set(id, budget)
  }

  #list(anchor: string, ids: ReadonlyArray<string>): void {
    this.#anchors ??= new Map()
    this.#anchors.set(anchor, ids)
  }

  /** Returns the application's charges and reservations, including the changes in this draft and the drafts below it. */
  spendingOf(application: string): Spending {
    const before = this.below === undefined ? this.books.spending.get(application)! : this.below.spendingOf(application)
    let { month, reserved, total } = before
    for (const { cost, dimensions } of this.usage) {
      if (dimensions.application_id !== application) continue
      total += cost
      month += cost
    }
    const amountIn = (reservation: Reservation | undefined): Nano =>
      reservation?.dimensions.application_id === application ? reservation.amount : 0n
    for (const reservation of this.reserved.values()) reserved += amountIn(reservation)
    for (const call of this.released)
      reserved -= amountIn(this.below === undefined ? this.books.reservations.get(call) : this.below.reservation(call))
    return { month, reserved, total }
  }

  release(call: string): void {
    // A call that is reserved and released within one draft never reaches the draft below.
    if (!this.reserved.delete(call)) this.released.add(call)
  }

  record(record: UsageRecord): void {
    this.records.set(record.dimensions.tenant_id, record.number)
    this.usage.push(record)
  }

  /** Adds the account's next entry and returns the balance. `after` is the account after the entry. */
  enter(
    after: Account,
    type: "credit" | "debit",
    amount: Nano,
    source: CreditSource | null,
    reference_id: string,
    description: string
  ): Nano {
    const balance = balanceOf(after)
    this.accounts.set(after.id, after)
    this.entries.push({
      billing_account_id: after.id,
      number: after.entries,
      type,
      amount,
      balance,
      giftable: after.giftable,
      source,
      reference_id,
      description,
      at: this.books.at
    })
    return balance
  }

  /** Applies all changes to the draft below. */
  adopt(): void {
    const { below } = this
    if (below === undefined) return
    for (const account of this.accounts.values()) below.accounts.set(account.id, account)
    for (const call of this.released) below.release(call)
    below.late.push(...this.late)
    for (const reservation of this.reserved.values()) below.reserved.set(reservation.id, reservation)
    for (const entry of this.entries) below.entries.push(entry)
    for (const record of this.usage) below.record(record)
    if (this.#budgets !== undefined) for (const [id, budget] of this.#budgets) below.#set(id, budget)
    if (this.#anchors !== undefined) for (const [anchor, ids] of this.#anchors) below.#list(anchor, ids)
  }
}

/** Returns the account ids in a posting. For `Settle`, only the reservation identifies the account. */
export const accountsOf = (posting: Posting): ReadonlyArray<string> => {
  switch (posting._tag) {
    case "Open":
    case "SetStatus":
    case "Credit":
    case "TakeBack":
    case "Renew":
    case "Escrow":
    case "SetLimit":
      return [posting.account]
    case "SetBudget":
      return posting.account === undefined ? none : [posting.account]
    case "EndEscrow":
      return [posting.from, posting.to]
    case "Reserve":
      return posting.sources.map((source: Source) => source.billing_account_id)
    case "Settle":
      return none
  }
}

const none: ReadonlyArray<string> = []
