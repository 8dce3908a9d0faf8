/**
 * Another implementation of a ledger: without a database. Each read and write of an account takes a turn of the event loop, and a lock serializes
 * transactions. It is right unless a mistake is planted.
 */
import type { AccountStatus } from "../../src/app/entry/contracts.ts"
import type { StoryPosting as Posting } from "../../src/app/entry/testing.ts"
import type { Refusal, Result, Source } from "../../src/app/entry/ledger.ts"
import type { Answer, EntryView, LedgerUnderTest, LimitView } from "../../src/app/entry/testing.ts"

export const mistakes = [
  "loses one of two updates at once",
  "gives more back than it holds",
  "lets a suspended account pay",
  "does half of a refused transaction",
  "answers the cost as collected",
  "answers the balance as available",
  "answers the most as reserved",
  "answers less than is reserved of a source that is not the first",
  "gives entries a wrong reference",
  "keeps amounts as floats",
  "has no largest balance",
  "gives a reservation back again when a settled call is released",
  "charges a call twice",
  "spends giftable credit first",
  "goes below zero by one nano",
  "pays an escrow twice",
  // Mistakes beyond the required list.
  "lets a suspended account send",
  "lets a suspended team pay",
  "lets a barred source pay",
  "takes the first source that has the least",
  "looks at the caller's own account only when it comes to it",
  "answers a missing account as one without credit",
  "opens an account that there is",
  "keeps what it held",
  "sends what calls have reserved",
  "sends granted credit",
  "takes back what calls have reserved",
  "takes granted credit back first",
  "answers the balance before the charge",
  "answers the balance of the sender",
  "enters a charge of nothing",
  "gives every call the same usage id",
  "collects one nano more than there is",
  "charges a call twice when it is settled twice at once",
  "pays an escrow twice when it is ended twice at once",
  "shows others what a refused transaction did",
  "answers what the last source has as available",
  "refers to the call instead of its usage record",
  "answers amounts as numbers",
  "answers results in the wrong order"
] as const

/** Mistakes of a ledger with limits of keys. */
export const limitMistakes = [
  "forgets what is reserved against a limit",
  "forgets what was spent before a limit was set",
  "charges beyond a limit",
  "reserves more than a limit leaves",
  "refuses what a limit leaves exactly",
  "gives nothing back of a limit",
  "looks at the limit before the balance"
] as const

export type Mistake = (typeof mistakes)[number] | (typeof limitMistakes)[number]

interface Account {
  status: AccountStatus
  giftable: bigint
  granted: bigint
  held: bigint
  reserved: bigint
  entries: Array<EntryView>
}

interface State {
  readonly accounts: Map<string, Account>
  readonly calls: Map<
    string,
    { readonly account: string; readonly amount: bigint; readonly application: string | null; settled: boolean }
  >
  readonly limits: Map<string, Pick<LimitView, "amount" | "period">>
  /** Limits by application. */
  readonly spent: Map<string, bigint>
  /** Transfers with an ended escrow. */
  readonly ended: Set<string>
}

class Refused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal._tag)
    this.refusal = refusal
  }
}

/** The largest balance. */
const max = 10n ** 18n
/** What a key without a limit may spend. A call may reserve more than a balance can be, so this is more than any amount. */
const unlimited = 2n ** 128n
const turn = () => Promise.resolve()
const min = (one: bigint, other: bigint) => (one < other ? one : other)

export const foreignLedger = (mistake?: Mistake): LedgerUnderTest => {
  const makes = (one: Mistake) => one === mistake
  let state: State = {
    accounts: new Map(),
    calls: new Map(),
    limits: new Map(),
    spent: new Map(),
    ended: new Set()
  }

  const refuse = (refusal: Refusal): never => {
    throw new Refused(refusal)
  }
  const balance = ({ giftable, granted }: Account) => giftable + granted
  const available = (account: Account) => balance(account) - account.reserved
  const exact = (amount: bigint) => (makes("keeps amounts as floats") ? BigInt(Number(amount)) : amount)

  /** A private copy until it is written. */
  const read = async (id: string): Promise<Account> => {
    const account = state.accounts.get(id) ?? refuse({ _tag: "AccountMissing", account: id })
    await turn()
    return { ...account, entries: [...account.entries] }
  }
  const write = async (id: string, account: Account): Promise<void> => {
    await turn()
    state.accounts.set(id, { ...account, giftable: exact(account.giftable), granted: exact(account.granted) })
  }
  const enter = (
    account: Account,
    type: "credit" | "debit",
    amount: bigint,
    source: EntryView["source"],
    reference: string
  ) => {
    const reference_id = makes("gives entries a wrong reference") && source === "purchase" ? "purchase" : reference
    account.entries.push({ type, amount: exact(amount), balance: exact(balance(account)), source, reference_id })
  }

  type Do<Tag extends Posting["_tag"]> = (posting: Extract<Posting, { _tag: Tag }>) => Promise<Result>

  const open: Do<"Open"> = async ({ account }) => {
    if (state.accounts.has(account) && !makes("opens an account that there is")) {
      return refuse({ _tag: "AccountExists", account })
    }
    await write(account, { status: "active", giftable: 0n, granted: 0n, held: 0n, reserved: 0n, entries: [] })
    return { _tag: "Opened" }
  }

  const setStatus: Do<"SetStatus"> = async ({ account: id, status }) => {
    await write(id, { ...(await read(id)), status })
    return { _tag: "Changed" }
  }

  const credit: Do<"Credit"> = async ({ account: id, amount, reference, source }) => {
    const account = await read(id)
    if (balance(account) + amount > max && !makes("has no largest balance")) {
      return refuse({ _tag: "BalanceTooLarge", account: id })
    }
    account[source === "purchase" ? "giftable" : "granted"] += amount
    enter(account, "credit", amount, source, reference)
    await write(id, account)
    return { _tag: "Credited", balance: exact(balance(account)) }
  }

  const takeBack: Do<"TakeBack"> = async ({ account: id, amount, reference }) => {
    const account = await read(id)
    const free = makes("takes back what calls have reserved") ? balance(account) : available(account)
    const taken = min(amount, free)
    const giftable = makes("takes granted credit back first")
      ? taken - min(taken, account.granted)
      : min(taken, account.giftable)
    account.giftable -= giftable
    account.granted -= taken - giftable
    if (taken > 0n) enter(account, "debit", taken, "purchase", reference)
    await write(id, account)
    return { _tag: "TakenBack", taken, balance: balance(account) }
  }

  const escrow: Do<"Escrow"> = async ({ account: id, amount, transfer }) => {
    const account = await read(id)
    if (account.status !== "active" && !makes("lets a suspended account send")) {
      return refuse({ _tag: "AccountInactive", account: id })
    }
    const free = makes("sends what calls have reserved") ? balance(account) : available(account)
    if (amount > free) {
      return refuse({
        _tag: "InsufficientCredits",
        available: makes("answers the balance as available") ? balance(account) : free
      })
    }
    if (amount > account.giftable) {
      if (!makes("sends granted credit")) return refuse({ _tag: "InsufficientGiftable", giftable: account.giftable })
      account.granted -= amount - account.giftable
      account.giftable = amount
    }
    account.giftable -= amount
    account.held += amount
    enter(account, "debit", amount, "transfer_escrow", transfer)
    await write(id, account)
    return { _tag: "Escrowed", balance: balance(account) }
  }

  const endEscrow: Do<"EndEscrow"> = async ({ amount, from, source, to, transfer }) => {
    const sender = await read(from)
    const again = makes("pays an escrow twice") && state.ended.has(transfer)
    const tooMuch = makes("gives more back than it holds") && sender.held > 0n
    if (amount > sender.held && !again && !tooMuch) return refuse({ _tag: "NotHeld", account: from })
    if (!makes("keeps what it held")) sender.held -= min(amount, sender.held)
    if (from !== to) await write(from, sender)
    const recipient = from === to ? sender : await read(to)
    if (source === "transfer_release" && balance(recipient) + amount > max) {
      return refuse({ _tag: "BalanceTooLarge", account: to })
    }
    recipient.giftable += amount
    enter(recipient, "credit", amount, source, transfer)
    await write(to, recipient)
    state.ended.add(transfer)
    return { _tag: "EscrowEnded", balance: balance(makes("answers the balance of the sender") ? sender : recipient) }
  }

  const setLimit: Do<"SetLimit"> = async ({ account, application, limit }) => {
    if (limit === null) {
      state.limits.delete(application)
      return { _tag: "LimitSet", spent: 0n, reserved: 0n }
    }
    await read(account)
    if (makes("forgets what was spent before a limit was set") && !state.limits.has(application))
      state.spent.delete(application)
    state.limits.set(application, limit)
    return { _tag: "LimitSet", ...used(application) }
  }

  const used = (application: string) => {
    let reserved = 0n
    for (const call of state.calls.values())
      if (call.application === application && !call.settled) reserved += call.amount
    return { spent: state.spent.get(application) ?? 0n, reserved }
  }

  const left = (application: string | null): bigint => {
    const limit = application === null ? undefined : state.limits.get(application)
    if (limit === undefined) return unlimited
    const { reserved, spent } = used(application!)
    const room = limit.amount - spent - (makes("forgets what is reserved against a limit") ? 0n : reserved)
    return room < 0n ? 0n : room
  }

  const isActive = ({ status }: Account, { kind }: Source) =>
    status === "active" || makes(kind === "own" ? "lets a suspended account pay" : "lets a suspended team pay")

  const reserve: Do<"Reserve"> = async ({ call, enough, facts, least, most, sources }) => {
    const room = left(facts.application_id)
    const isOver = makes("refuses what a limit leaves exactly") && room < unlimited ? room <= least : room < least
    const application = facts.application_id ?? ""
    if (isOver && makes("looks at the limit before the balance"))
      return refuse({ _tag: "LimitReached", application, available: room })
    for (const source of sources) {
      if (source.kind !== "own") continue
      const account = source.billing_account_id
      if (makes("looks at the caller's own account only when it comes to it") && source !== sources[0]) continue
      const own = state.accounts.get(account)
      if (own === undefined) {
        return refuse(
          makes("answers a missing account as one without credit")
            ? { _tag: "InsufficientCredits", available: 0n }
            : { _tag: "AccountMissing", account }
        )
      }
      if (!isActive(own, source)) return refuse({ _tag: "AccountInactive", account })
    }
    const can: Array<{ readonly source: Source; readonly free: bigint; readonly account: Account }> = []
    let best = 0n
    for (const source of sources) {
      if (source.barred === true && !makes("lets a barred source pay")) continue
      if (!state.accounts.has(source.billing_account_id)) continue
      const account = await read(source.billing_account_id)
      if (!isActive(account, source)) continue
      const free = available(account) + (makes("goes below zero by one nano") && balance(account) > 0n ? 1n : 0n)
      const said = makes("answers the balance as available") ? balance(account) : free
      best = said > best || makes("answers what the last source has as available") ? said : best
      if (free >= least) can.push({ source, free, account })
    }
    const sufficient = enough === undefined || room < least ? least : min(enough, room)
    const wanted = makes("takes the first source that has the least") ? least : sufficient
    const chosen = can.find(({ free }) => free >= wanted) ?? can[0]
    if (chosen === undefined) return refuse({ _tag: "InsufficientCredits", available: best })
    const { account, free, source } = chosen
    if (isOver) return refuse({ _tag: "LimitReached", application, available: room })
    const amount = min(min(free, most), makes("reserves more than a limit leaves") ? max : room)
    const id = source.billing_account_id
    await write(id, { ...account, reserved: account.reserved + amount })
    state.calls.set(call, { account: id, amount, application: facts.application_id, settled: false })
    if (makes("answers the most as reserved")) return { _tag: "Reserved", source, amount: most }
    const wrong = makes("answers less than is reserved of a source that is not the first") && source !== sources[0]
    return { _tag: "Reserved", source, amount: wrong ? amount - 1n : amount }
  }

  const settle: Do<"Settle"> = async ({ call, outcome }) => {
    const known = state.calls.get(call)
    if (known === undefined) return { _tag: "AlreadySettled" }
    const account = await read(known.account)
    const before = balance(account)
    if (known.settled) {
      if (makes("gives a reservation back again when a settled call is released") && outcome.cost === 0n) {
        account.reserved -= known.amount
        await write(known.account, account)
      }
      if (!makes("charges a call twice")) return { _tag: "AlreadySettled" }
    } else account.reserved -= known.amount
    const payable = available(account) + (makes("collects one nano more than there is") ? 1n : 0n)
    const within = known.settled || makes("charges beyond a limit") ? max : known.amount + left(known.application)
    const collected = min(min(outcome.cost, payable), within)
    const { application } = known
    if (application !== null) state.spent.set(application, (state.spent.get(application) ?? 0n) + collected)
    const usage_id = makes("gives every call the same usage id") ? "use" : `charge of ${call}`
    if (makes("spends giftable credit first")) {
      const giftable = min(collected, account.giftable)
      account.giftable -= giftable
      account.granted -= collected - giftable
    } else {
      const granted = min(collected, account.granted)
      account.granted -= granted
      account.giftable -= collected - granted
    }
    if (collected > 0n || makes("enters a charge of nothing")) {
      enter(
        account,
        "debit",
        collected,
        null,
        makes("refers to the call instead of its usage record") ? call : usage_id
      )
    }
    await write(known.account, account)
    state.calls.set(call, { ...known, settled: true })
    if (application !== null && makes("gives nothing back of a limit"))
      state.spent.set(application, state.spent.get(application)! + known.amount - collected)
    return {
      _tag: "Settled",
      usage_id,
      collected: makes("answers the cost as collected") ? outcome.cost : collected,
      balance: makes("answers the balance before the charge") ? before : balance(account)
    }
  }

  const post = (posting: Posting): Promise<Result> => {
    switch (posting._tag) {
      case "Open":
        return open(posting)
      case "SetStatus":
        return setStatus(posting)
      case "Credit":
        return credit(posting)
      case "TakeBack":
        return takeBack(posting)
      case "Renew":
        throw new Error("the stories of this suite renew no allowance")
      case "Escrow":
        return escrow(posting)
      case "EndEscrow":
        return endEscrow(posting)
      case "SetLimit":
        return setLimit(posting)
      case "Reserve":
        return reserve(posting)
      case "Settle":
        return settle(posting)
    }
  }

  const shown = (result: Result): Result => {
    if (!makes("answers amounts as numbers")) return result
    const fields = Object.entries(result).map(([key, value]) => [
      key,
      typeof value === "bigint" ? Number(value) : value
    ])
    return Object.fromEntries(fields) as Result
  }

  const submit = async (postings: ReadonlyArray<Posting>): Promise<Answer> => {
    const before = structuredClone(state)
    try {
      const results: Array<Result> = []
      for (const posting of postings) results.push(shown(await post(posting)))
      return { results: makes("answers results in the wrong order") ? results.toReversed() : results }
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (!makes("does half of a refused transaction")) state = before
      return { refusal: error.refusal }
    }
  }

  /** Whether the transaction skips the lock. */
  const isUnlocked = (postings: ReadonlyArray<Posting>): boolean => {
    switch (mistake) {
      case "loses one of two updates at once":
        return postings.length === 1
      case "charges a call twice when it is settled twice at once":
        return postings.every(({ _tag }) => _tag === "Settle")
      case "pays an escrow twice when it is ended twice at once":
        return postings.every(({ _tag }) => _tag === "EndEscrow")
      case "shows others what a refused transaction did":
        return postings.length > 1
      default:
        return false
    }
  }

  let last: Promise<unknown> = Promise.resolve()
  return {
    submit: (postings) => {
      if (isUnlocked(postings)) return submit(postings)
      const done = last.then(() => submit(postings))
      last = done
      return done
    },
    account: async (id) => state.accounts.get(id),
    entries: async (id) => state.accounts.get(id)?.entries ?? [],
    limit: async (application) => {
      const limit = state.limits.get(application)
      return limit && { ...limit, ...used(application) }
    }
  }
}
