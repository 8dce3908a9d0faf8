/**
 * The properties that transfers under test must have. Every answer and every transfer must equal the model's, and every invariant of the books must
 * hold.
 */
import { Either } from "effect"
import { difference, show } from "./Difference.ts"
import { broken, InvariantBroken } from "./LedgerProperties.ts"
import type { AccountView, EntryView, View } from "./LedgerProperties.ts"
import { explain } from "./SerialOrder.ts"
import { dueAt, expired, perform } from "./TransfersModel.ts"
import type {
  TransferRequest,
  TransferOrder,
  TransferRefusal,
  TransfersNotebook,
  TransferView
} from "./TransfersModel.ts"

/** The answer to a request. Only the answer to `Create` contains `created`. */
export type TransferAnswer =
  | { readonly transfer: TransferView; readonly created?: boolean }
  | { readonly refusal: TransferRefusal }

/** The interface of transfers under test. People are identified by their email addresses. The suite sends several requests concurrently. */
export interface TransfersUnderTest {
  /** Adds a person with a verified address, an active account and no credit. */
  readonly join: (email: string) => Promise<void>
  /** Adds credit from outside, within the maximum balance. Purchased credit may be sent, but granted credit may not. */
  readonly credit: (email: string, amount: bigint, source: "purchase" | "admin") => Promise<void>
  readonly setStatus: (email: string, status: "active" | "suspended") => Promise<void>
  readonly create: (email: string, order: TransferOrder) => Promise<TransferAnswer>
  readonly accept: (email: string, id: string) => Promise<TransferAnswer>
  readonly decline: (email: string, id: string) => Promise<TransferAnswer>
  readonly revoke: (email: string, id: string) => Promise<TransferAnswer>
  readonly resend: (email: string, id: string) => Promise<TransferAnswer>
  readonly find: (email: string, id: string) => Promise<TransferAnswer>
  readonly expire: () => Promise<void>
  readonly account: (email: string) => Promise<Omit<AccountView, "held" | "reserved"> & Pick<View, "held">>
  /** Returns the account's entries, oldest first. */
  readonly entries: (email: string) => Promise<ReadonlyArray<EntryView>>
  readonly close?: () => Promise<void>
}

/** The clock for transfers under test, in milliseconds. It advances only between steps. */
export interface TransfersClock {
  readonly now: () => number
}

export const ask = (under: TransfersUnderTest, asked: TransferRequest): Promise<TransferAnswer> => {
  switch (asked._tag) {
    case "Create":
      return under.create(asked.who, asked.order)
    case "Accept":
      return under.accept(asked.who, asked.id)
    case "Decline":
      return under.decline(asked.who, asked.id)
    case "Revoke":
      return under.revoke(asked.who, asked.id)
    case "Resend":
      return under.resend(asked.who, asked.id)
    case "Find":
      return under.find(asked.who, asked.id)
  }
}

/** Returns the notebook after a request with this answer, or the error in the answer. */
export const judgeTransfer = (
  notebook: TransfersNotebook,
  asked: TransferRequest,
  answer: TransferAnswer,
  now: number
): Either.Either<TransfersNotebook, string> => {
  const id = "transfer" in answer ? answer.transfer.id : ""
  const expected = perform(notebook, asked, now, id)
  if ("refusal" in expected) {
    const { refusal } = expected
    if (!("refusal" in answer)) {
      return Either.left(`${asked._tag} was answered ${show(answer.transfer)} instead of ${show(refusal)}`)
    }
    const why =
      refusal._tag === answer.refusal._tag
        ? difference(refusal, answer.refusal, refusal._tag)
        : `${asked._tag} was answered ${show(answer.refusal)} instead of ${show(refusal)}`
    return why === undefined ? Either.right(notebook) : Either.left(why)
  }
  if ("refusal" in answer)
    return Either.left(`${asked._tag} was answered ${show(answer.refusal)} instead of a transfer`)
  if (expected.created && notebook.transfers.some(({ view }) => view.id === id)) {
    return Either.left(`a new transfer has the existing id ${id}`)
  }
  const why =
    difference(unchanging(asked, expected.transfer), answer.transfer, `the transfer of ${asked._tag}`) ??
    (asked._tag === "Create" ? difference(expected.created, answer.created, `created of ${asked._tag}`) : undefined)
  return why === undefined ? Either.right(expected.notebook) : Either.left(why)
}

/** Reads all accounts for the ledger's invariants, without descriptions and without the references of credit from outside. */
const viewsOf = async (under: TransfersUnderTest, { books }: TransfersNotebook): Promise<ReadonlyArray<View>> => {
  const views: Array<View> = []
  for (const id of books.accounts.keys()) {
    const account = await under.account(id)
    const entries = await under.entries(id)
    views.push({ ...account, held: account.held ?? 0n, id, reserved: 0n, entries: entries.map(plain) })
  }
  return views
}

/**
 * Returns the fields to compare. For a resend, these are only the fields that never change, because its answer can show a later state of the
 * transfer.
 */
const unchanging = ({ _tag }: TransferRequest, view: TransferView): Partial<TransferView> =>
  _tag === "Resend" && view.status === "pending"
    ? { id: view.id, amount: view.amount, expires_at: view.expires_at, last_sent_at: view.last_sent_at }
    : view

/** The reference that the model uses for credit from outside. */
export const outside = "outside"

const plain = ({ amount, balance, giftable, reference_id, source, type }: EntryView): EntryView => ({
  type,
  amount,
  balance,
  source,
  reference_id: source === "purchase" || source === "admin" ? outside : reference_id,
  ...(giftable !== undefined && { giftable })
})

/** Returns the first difference between the notebook and these transfers as their senders read them. */
export const misread = async (
  under: TransfersUnderTest,
  { transfers }: TransfersNotebook,
  ids: ReadonlySet<string>
): Promise<string | undefined> => {
  for (const { sender, view } of transfers) {
    if (!ids.has(view.id)) continue
    const answer = await under.find(sender, view.id)
    if ("refusal" in answer) return `${sender} requested ${view.id} and got the answer ${show(answer.refusal)}`
    const why = difference(view, answer.transfer, "the transfer read afterwards")
    if (why !== undefined) return why
  }
  return undefined
}

/**
 * Sends requests concurrently while expired transfers end. Returns the resulting notebook if some serial order explains the answers, accounts and
 * transfers. Otherwise, throws an error.
 */
export const askedAtOnce = async (
  notebook: TransfersNotebook,
  under: TransfersUnderTest,
  clock: TransfersClock,
  all: ReadonlyArray<TransferRequest>
): Promise<TransfersNotebook> => {
  const now = clock.now()
  const due = dueAt(notebook, now)
  const settled = await Promise.allSettled([
    ...all.map((asked) => ask(under, asked)),
    ...(due.length > 0 ? [under.expire()] : [])
  ])
  const answers = settled.map((one) => {
    if (one.status === "rejected") throw one.reason
    return one.value
  })
  const views = await viewsOf(under, notebook)
  const explained = explain({
    notebook: expired(notebook, inOrderOfReturn(due, views), now),
    count: all.length,
    apply: (before, i) => judgeTransfer(before, all[i]!, answers[i] as TransferAnswer, now),
    outcome: ({ books }) => broken(views, books)
  })
  if (Either.isLeft(explained)) throw new InvariantBroken(explained.left)
  const after = explained.right
  const touched = [...after.transfers.slice(notebook.transfers.length), ...due].map(({ view }) => view.id)
  const asked = all.flatMap((one) => (one._tag === "Create" ? [] : [one.id]))
  const wrong = await misread(under, after, new Set([...touched, ...asked]))
  if (wrong !== undefined) throw new InvariantBroken(wrong)
  return after
}

/** Orders transfers that expired concurrently by their ledger entries. */
const inOrderOfReturn = <Due extends { readonly view: TransferView }>(
  due: ReadonlyArray<Due>,
  views: ReadonlyArray<View>
): ReadonlyArray<Due> => {
  const returned = views.flatMap(({ entries }) =>
    entries.flatMap(({ reference_id, source }) => (source === "transfer_return" ? [reference_id] : []))
  )
  return due.toSorted((one, other) => returned.indexOf(one.view.id) - returned.indexOf(other.view.id))
}
