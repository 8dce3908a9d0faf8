/**
 * A sequential model of the ledger's rules, without a database, batches or concurrency. The suites compare a ledger's answers with the model. The
 * model shares no code with this package's ledger.
 */
import type {
  AccountStatus,
  CallFacts,
  CreditSource,
  Limit,
  Posting,
  Refusal,
  Result,
  Source
} from "../books/ledger/rules/Transaction.ts"

/** The maximum balance of this package's ledger: 10^9 USD, in nano-USD. It exceeds 2^53, so doubles cannot represent every smaller amount. */
export const balanceMax = 1_000_000_000_000_000_000n

export interface ModelEntry {
  readonly type: "credit" | "debit"
  readonly amount: bigint
  readonly balance: bigint
  readonly giftable: bigint
  readonly source: CreditSource | null
  /** The reference. For a charge, it is the call, while the ledger's entry contains the `usage_id` from the settlement's result. */
  readonly reference: string
  /** The description; `undefined` for a charge, because the ledger chooses its text. */
  readonly description: string | undefined
}

export interface ModelAccount {
  readonly status: AccountStatus
  readonly giftable: bigint
  readonly granted: bigint
  readonly held: bigint
  readonly reserved: bigint
  /** Whether the account has ever purchased or received credit. */
  readonly funded: boolean
  readonly entries: ReadonlyArray<ModelEntry>
  /** The total credit that came from outside. */
  readonly came: bigint
  /** The total credit that left, as charges or as purchases taken back. */
  readonly went: bigint
}

interface Amount {
  readonly account: string
  readonly amount: bigint
}

/** An open call: its payer, the reserved amount, and the application that made the call. */
interface OpenCall extends Amount {
  readonly application: string | null
}

interface Spent {
  readonly total: bigint
  /** The charges in the current month. */
  readonly month: bigint
}

/** The state of the model. It is immutable, so a transaction returns a new state. */
export interface Notebook {
  readonly accounts: ReadonlyMap<string, ModelAccount>
  readonly calls: ReadonlyMap<string, OpenCall>
  /** The settled calls with the `usage_id` that the ledger returned, or `undefined` if its answer was lost. */
  readonly settled: ReadonlyMap<string, string | undefined>
  /** The calls that were released because their process had ended. They have no reservation. */
  readonly released: ReadonlyMap<string, OpenCall>
  /** The sender and amount of each open escrow, by transfer. */
  readonly escrows: ReadonlyMap<string, Amount>
  /** The escrows that have ended, by transfer. */
  readonly ended: ReadonlyMap<string, Amount>
  /** The spending limits, by application. */
  readonly limits: ReadonlyMap<string, Pick<Limit, "amount" | "period">>
  /** The charges, by application. */
  readonly spent: ReadonlyMap<string, Spent>
  /** The ledger's maximum amount and balance; `balanceMax` by default. */
  readonly amountMax?: bigint | undefined
}

export const largestOf = ({ amountMax = balanceMax }: Notebook): bigint => amountMax

export const empty: Notebook = {
  accounts: new Map(),
  calls: new Map(),
  settled: new Map(),
  released: new Map(),
  escrows: new Map(),
  ended: new Map(),
  limits: new Map(),
  spent: new Map()
}

export const nextMonth = (notebook: Notebook): Notebook => ({
  ...notebook,
  spent: new Map([...notebook.spent].map(([application, { total }]) => [application, { total, month: 0n }]))
})

/** Returns the charges and reservations that count against an application's limit. */
export const standingOf = (notebook: Notebook, application: string, period: Limit["period"]) => ({
  spent: notebook.spent.get(application)?.[period] ?? 0n,
  reserved: [...notebook.calls.values()].reduce(
    (sum, call) => (call.application === application ? sum + call.amount : sum),
    0n
  )
})

/** An expected result. It lacks a settlement's `usage_id`, because the ledger chooses that id. */
export type ExpectedResult =
  | Exclude<Result, { _tag: "Settled" }>
  | Omit<Extract<Result, { _tag: "Settled" }>, "usage_id">

/** The expected answer and the resulting state. */
export type Expected =
  | { readonly results: ReadonlyArray<ExpectedResult>; readonly notebook: Notebook }
  | { readonly refusal: Refusal }

/** Applies all postings of a transaction in order. If one of them is rejected, none is applied and the refusal is returned. */
export const apply = (notebook: Notebook, postings: ReadonlyArray<StoryPosting>): Expected => {
  const results: Array<ExpectedResult> = []
  let now = notebook
  for (const posting of postings) {
    const done = post(now, posting)
    if ("refusal" in done) return done
    results.push(done.result)
    now = done.notebook
  }
  return { results, notebook: now }
}

type Done = { readonly result: ExpectedResult; readonly notebook: Notebook } | { readonly refusal: Refusal }

/** The postings in stories. Budgets have separate stories. */
export type StoryPosting = Exclude<Posting, { readonly _tag: "SetBudget" }>

type Of<Tag extends StoryPosting["_tag"]> = Extract<StoryPosting, { _tag: Tag }>

/** Applies one posting. If several refusals are possible, the first check decides. */
export const post = (notebook: Notebook, posting: StoryPosting): Done => {
  switch (posting._tag) {
    case "Open":
      return open(notebook, posting)
    case "SetStatus":
      return setStatus(notebook, posting)
    case "Credit":
      return credit(notebook, posting)
    case "TakeBack":
      return takeBack(notebook, posting)
    case "Renew":
      return renew(notebook, posting)
    case "Escrow":
      return escrow(notebook, posting)
    case "EndEscrow":
      return endEscrow(notebook, posting)
    case "SetLimit":
      return setLimit(notebook, posting)
    case "Reserve":
      return reserve(notebook, posting)
    case "Settle":
      return settle(notebook, posting)
  }
}

const refuse = (refusal: Refusal): Done => ({ refusal })
const missing = (account: string): Done => refuse({ _tag: "AccountMissing", account })
const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other)
const larger = (one: bigint, other: bigint): bigint => (one < other ? other : one)
const balanceOf = ({ giftable, granted }: ModelAccount): bigint => giftable + granted
const availableOf = (account: ModelAccount): bigint => balanceOf(account) - account.reserved

/** Returns whether credit from this source may be sent. Purchased and received credit may be sent; granted credit may only be spent. */
const isGiftable = (source: CreditSource): boolean =>
  source === "purchase" || source === "transfer_release" || source === "transfer_return"

const put = <A>(map: ReadonlyMap<string, A>, key: string, value: A): ReadonlyMap<string, A> =>
  new Map(map).set(key, value)

const without = <A>(map: ReadonlyMap<string, A>, key: string): ReadonlyMap<string, A> =>
  new Map([...map].filter(([one]) => one !== key))

const withAccount = (notebook: Notebook, id: string, account: ModelAccount): Notebook => ({
  ...notebook,
  accounts: put(notebook.accounts, id, account)
})

/** Adds the entry for a movement that the account already includes. */
const entered = (
  account: ModelAccount,
  entry: Pick<ModelEntry, "type" | "amount" | "source" | "reference" | "description">
): ModelAccount => ({
  ...account,
  entries: [...account.entries, { ...entry, balance: balanceOf(account), giftable: account.giftable }]
})

const open = (notebook: Notebook, { account }: Of<"Open">): Done => {
  if (notebook.accounts.has(account)) return refuse({ _tag: "AccountExists", account })
  const opened: ModelAccount = {
    status: "active",
    giftable: 0n,
    granted: 0n,
    held: 0n,
    reserved: 0n,
    funded: false,
    entries: [],
    came: 0n,
    went: 0n
  }
  return { result: { _tag: "Opened" }, notebook: withAccount(notebook, account, opened) }
}

const setStatus = (notebook: Notebook, { account: id, status }: Of<"SetStatus">): Done => {
  const account = notebook.accounts.get(id)
  if (account === undefined) return missing(id)
  return { result: { _tag: "Changed" }, notebook: withAccount(notebook, id, { ...account, status }) }
}

const credit = (notebook: Notebook, posting: Of<"Credit">): Done => {
  const { account: id, amount, description, reference, source } = posting
  const account = notebook.accounts.get(id)
  if (account === undefined) return missing(id)
  if (balanceOf(account) + amount > largestOf(notebook)) return refuse({ _tag: "BalanceTooLarge", account: id })
  const kind = isGiftable(source) ? "giftable" : "granted"
  const after = entered(
    {
      ...account,
      [kind]: account[kind] + amount,
      funded: account.funded || source === "purchase" || source === "transfer_release",
      came: account.came + amount
    },
    { type: "credit", amount, source, reference, description }
  )
  return { result: { _tag: "Credited", balance: balanceOf(after) }, notebook: withAccount(notebook, id, after) }
}

/**
 * Takes back available credit, giftable credit first. For a grant, only granted credit is taken back. If no credit is available, there is no entry.
 */
const takeBack = (notebook: Notebook, posting: Of<"TakeBack">): Done => {
  const { account: id, amount, description, reference, source = "purchase" } = posting
  const account = notebook.accounts.get(id)
  if (account === undefined) return missing(id)
  const most = source === "admin" ? smaller(availableOf(account), account.granted) : availableOf(account)
  const taken = smaller(amount, most)
  if (taken === 0n) return { result: { _tag: "TakenBack", taken, balance: balanceOf(account) }, notebook }
  const giftable = source === "admin" ? 0n : smaller(taken, account.giftable)
  const after = entered(
    {
      ...account,
      giftable: account.giftable - giftable,
      granted: account.granted - (taken - giftable),
      went: account.went + taken
    },
    { type: "debit", amount: taken, source, reference, description }
  )
  return { result: { _tag: "TakenBack", taken, balance: balanceOf(after) }, notebook: withAccount(notebook, id, after) }
}

/**
 * Renews an allowance. An allowance is spent first and taken back last. Its unused part is the last grant minus later charges, but at most the
 * granted credit that is neither reserved nor granted later.
 */
const renew = (notebook: Notebook, posting: Of<"Renew">): Done => {
  const { account: id, amount, description, keep, last, reference } = posting
  const account = notebook.accounts.get(id)
  if (account === undefined) return missing(id)
  const moved = account.entries
    .slice(last?.entries ?? 0)
    .reduce(
      (sum, entry) => (entry.source === null ? sum : sum + (entry.type === "credit" ? entry.amount : -entry.amount)),
      0n
    )
  const charges = last === undefined ? 0n : last.chargeless + moved - balanceOf(account)
  const others = account.entries.slice(last?.entries ?? 0).reduce((sum, { amount, source, type }) => {
    if (source === null || source === "transfer_escrow") return sum
    if (type === "debit") return larger(sum - amount, 0n)
    return isGiftable(source) ? sum : sum + amount
  }, last?.others ?? 0n)
  const left =
    last === undefined
      ? 0n
      : smaller(smaller(last.amount - charges, account.granted - account.reserved), account.granted - others)
  const unused = larger(left, 0n)
  const kept = smaller(keep, unused)
  const before = balanceOf(account)
  if (before - unused + amount + kept > largestOf(notebook)) return refuse({ _tag: "BalanceTooLarge", account: id })
  let after = account
  if (unused > 0n) {
    const entry = {
      type: "debit",
      amount: unused,
      source: "allowance",
      reference,
      description: "unused allowance"
    } as const
    after = entered({ ...after, granted: after.granted - unused, went: after.went + unused }, entry)
  }
  const granted = amount + kept
  if (granted > 0n) {
    const entry = { type: "credit", amount: granted, source: "allowance", reference, description } as const
    after = entered({ ...after, granted: after.granted + granted, came: after.came + granted }, entry)
  }
  const result = { _tag: "Renewed", unused, kept, balance: balanceOf(after), before } as const
  return { result, notebook: withAccount(notebook, id, after) }
}

const escrow = (notebook: Notebook, { account: id, amount, description, transfer }: Of<"Escrow">): Done => {
  const account = notebook.accounts.get(id)
  if (account === undefined) return missing(id)
  if (account.status !== "active") return refuse({ _tag: "AccountInactive", account: id })
  const available = availableOf(account)
  if (amount > available) return refuse({ _tag: "InsufficientCredits", available })
  if (amount > account.giftable) return refuse({ _tag: "InsufficientGiftable", giftable: account.giftable })
  const after = entered(
    { ...account, giftable: account.giftable - amount, held: account.held + amount },
    { type: "debit", amount, source: "transfer_escrow", reference: transfer, description }
  )
  return {
    result: { _tag: "Escrowed", balance: balanceOf(after) },
    notebook: {
      ...withAccount(notebook, id, after),
      escrows: put(notebook.escrows, transfer, { account: id, amount })
    }
  }
}

/** Ends an escrow. The recipient and the sender can be the same. Returned credit always fits, because the sender had it before. */
const endEscrow = (notebook: Notebook, posting: Of<"EndEscrow">): Done => {
  const { amount, description, from, source, to, transfer } = posting
  const sender = notebook.accounts.get(from)
  if (sender === undefined) return missing(from)
  if (amount > sender.held) return refuse({ _tag: "NotHeld", account: from })
  const released = withAccount(notebook, from, { ...sender, held: sender.held - amount })
  const recipient = released.accounts.get(to)
  if (recipient === undefined) return missing(to)
  const received = source === "transfer_release"
  if (received && balanceOf(recipient) + amount > largestOf(notebook))
    return refuse({ _tag: "BalanceTooLarge", account: to })
  const after = entered(
    { ...recipient, giftable: recipient.giftable + amount, funded: recipient.funded || received },
    { type: "credit", amount, source, reference: transfer, description }
  )
  return {
    result: { _tag: "EscrowEnded", balance: balanceOf(after) },
    notebook: {
      ...withAccount(released, to, after),
      escrows: without(notebook.escrows, transfer),
      ended: put(notebook.ended, transfer, { account: from, amount })
    }
  }
}

const setLimit = (notebook: Notebook, { account, application, limit }: Of<"SetLimit">): Done => {
  if (limit === null) {
    return {
      result: { _tag: "LimitSet", spent: 0n, reserved: 0n },
      notebook: { ...notebook, limits: without(notebook.limits, application) }
    }
  }
  if (!notebook.accounts.has(account)) return missing(account)
  return {
    result: { _tag: "LimitSet", ...standingOf(notebook, application, limit.period) },
    notebook: { ...notebook, limits: put(notebook.limits, application, limit) }
  }
}

/** Returns the remainder of an application's limit. It is negative if the limit was lowered. Returns `undefined` if there is no limit. */
const leftOf = (notebook: Notebook, application: string | null): bigint | undefined => {
  const limit = application === null ? undefined : notebook.limits.get(application)
  if (limit === undefined) return undefined
  const { reserved, spent } = standingOf(notebook, application!, limit.period)
  return limit.amount - spent - reserved
}

/**
 * Reserves credit for a call. The caller's own account must exist and be active even if another source pays. The payer is the first source that may
 * pay and has `enough` available, or otherwise the first that has `least`. The key's limit is checked last. Its remainder must cover `least`, and the
 * reservation never exceeds this remainder.
 */
const reserve = (notebook: Notebook, posting: Of<"Reserve">): Done => {
  const { call, enough, facts, least, most, sources } = posting
  const limit = leftOf(notebook, facts.application_id)
  // Without a limit, only the balance bounds the amount. Credit returned from escrow can leave a balance above the maximum.
  const left = limit && larger(limit, 0n)
  const within = (amount: bigint) => (left === undefined ? amount : smaller(amount, left))
  for (const { billing_account_id: account, kind } of sources) {
    if (kind === "team") continue
    const ownAccount = notebook.accounts.get(account)
    if (ownAccount === undefined) return missing(account)
    if (ownAccount.status !== "active") return refuse({ _tag: "AccountInactive", account })
  }
  const able = sources.flatMap((source) => {
    const account = notebook.accounts.get(source.billing_account_id)
    return source.barred === true || account?.status !== "active" ? [] : [{ source, account }]
  })
  const having = (wanted: bigint) => able.find(({ account }) => availableOf(account) >= wanted)
  const payer = having(larger(least, within(enough ?? least))) ?? having(least)
  if (payer === undefined) {
    const available = able.reduce((most, { account }) => larger(most, availableOf(account)), 0n)
    return refuse({ _tag: "InsufficientCredits", available })
  }
  const { account, source } = payer
  if (left !== undefined && left < least)
    return refuse({ _tag: "LimitReached", application: facts.application_id!, available: left })
  const amount = within(smaller(availableOf(account), most))
  const id = source.billing_account_id
  return {
    result: { _tag: "Reserved", source, amount },
    notebook: {
      ...withAccount(notebook, id, { ...account, reserved: account.reserved + amount }),
      calls: put(notebook.calls, call, { account: id, amount, application: facts.application_id })
    }
  }
}

/**
 * Releases the reservation, then collects the cost from available credit, granted credit first. Beyond the reservation, it collects only up to the
 * key's limit. A call that was released because its process had ended has no reservation. It settles in the same way, unless it failed at no cost.
 */
const settle = (notebook: Notebook, { call, outcome }: Of<"Settle">): Done => {
  const isRelease = outcome.error_type === "interrupted"
  const reserved =
    notebook.calls.get(call) ??
    (isRelease || (!outcome.success && outcome.cost === 0n) ? undefined : notebook.released.get(call))
  if (reserved === undefined) return { result: { _tag: "AlreadySettled" }, notebook }
  const account = notebook.accounts.get(reserved.account)!
  const back = { ...account, reserved: account.reserved - reserved.amount }
  const { application } = reserved
  const payable = smaller(outcome.cost, availableOf(back))
  const left = leftOf(notebook, application)
  const collected = left === undefined ? payable : smaller(payable, reserved.amount + larger(left, 0n))
  const granted = smaller(collected, back.granted)
  const after = {
    ...back,
    granted: back.granted - granted,
    giftable: back.giftable - (collected - granted),
    went: back.went + collected
  }
  const charged =
    collected === 0n
      ? after
      : entered(after, { type: "debit", amount: collected, source: null, reference: call, description: undefined })
  return {
    result: { _tag: "Settled", collected, balance: balanceOf(charged) },
    notebook: {
      ...withAccount(notebook, reserved.account, charged),
      calls: without(notebook.calls, call),
      released: isRelease
        ? put(notebook.released, call, { ...reserved, amount: 0n })
        : without(notebook.released, call),
      spent:
        application === null ? notebook.spent : put(notebook.spent, application, more(notebook, application, collected))
    }
  }
}

const more = ({ spent }: Notebook, application: string, cost: bigint): Spent => {
  const { month, total } = spent.get(application) ?? { month: 0n, total: 0n }
  return { month: month + cost, total: total + cost }
}

// ---- names in stories -------------------------------------------------------------------------------------------------

/** The billing accounts that exist when a story begins. */
export const people = ["ada", "bob", "cyd"] as const

/** `people`, and an account that a story must open first. */
export const everyone = [...people, "dan"] as const

/** Builds a reservation's source from the caller's account or a team's. */
export const sourceOf = (account: string, kind: Source["kind"], barred = false): Source => ({
  billing_account_id: account,
  tenant_id: `ten_${account}`,
  kind,
  why: kind === "own" ? "own" : "team_first",
  ...(barred && { barred })
})

export const applicationOf = (account: string): string => `app_${account}`

export const factsOf = (account: string, application_id: string | null = null): CallFacts => ({
  account_id: `acc_${account}`,
  tenant_id: `ten_${account}`,
  application_id,
  usage_type: "tool",
  endpoint: "story",
  model: "model",
  provider: "provider"
})
