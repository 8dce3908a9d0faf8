/**
 * What must be true of transfers under test: every answer is the model's in every field, every transfer reads as the model has it, and
 * every invariant of the books holds of all accounts.
 */
import { Either } from "effect"
import { difference, show } from "./Difference.ts"
import { broken, InvariantBroken } from "./LedgerProperties.ts"
import type { AccountView, EntryView, View } from "./LedgerProperties.ts"
import { explain } from "./SerialOrder.ts"
import { dueAt, expired, perform } from "./TransfersModel.ts"
import type { Asked, TransferOrder, TransferRefusal, TransfersNotebook, TransferView } from "./TransfersModel.ts"

/** What an operation comes to. `created` is told of a create only. */
export type TransferAnswer =
  | { readonly transfer: TransferView; readonly created?: boolean }
  | { readonly refusal: TransferRefusal }

/** Transfers as the suite speaks to them. People are named by their email addresses. Several operations are under way at once. */
export interface TransfersUnderTest {
  /** A new person with a verified address, an active account and no credit. */
  readonly join: (email: string) => Promise<void>
  /** Credit from outside; it always fits. What is purchased may be sent on, what an admin grants may not. */
  readonly credit: (email: string, amount: bigint, source: "purchase" | "admin") => Promise<void>
  readonly setStatus: (email: string, status: "active" | "suspended") => Promise<void>
  readonly create: (email: string, order: TransferOrder) => Promise<TransferAnswer>
  readonly accept: (email: string, id: string) => Promise<TransferAnswer>
  readonly decline: (email: string, id: string) => Promise<TransferAnswer>
  readonly revoke: (email: string, id: string) => Promise<TransferAnswer>
  readonly resend: (email: string, id: string) => Promise<TransferAnswer>
  readonly find: (email: string, id: string) => Promise<TransferAnswer>
  /** Ends the transfers that are past their time. */
  readonly expire: () => Promise<void>
  /** The person's account as it stands. */
  readonly account: (email: string) => Promise<Omit<AccountView, "held" | "reserved"> & Pick<View, "held">>
  /** Its ledger, oldest entry first. */
  readonly entries: (email: string) => Promise<ReadonlyArray<EntryView>>
  readonly close?: () => Promise<void>
}

/** What transfers under test take the time from, in milliseconds. It stands still but between two steps. */
export interface TransfersClock {
  readonly now: () => number
}

/** Asks it of what is under test. */
export const ask = (under: TransfersUnderTest, asked: Asked): Promise<TransferAnswer> => {
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

/** The notebook after an operation that was answered so; or why that answer is wrong. */
export const judgeTransfer = (
  notebook: TransfersNotebook,
  asked: Asked,
  answer: TransferAnswer,
  now: number
): Either.Either<TransfersNotebook, string> => {
  const id = "transfer" in answer ? answer.transfer.id : ""
  const expected = perform(notebook, asked, now, id)
  if ("refusal" in expected) {
    const { refusal } = expected
    if (!("refusal" in answer)) {
      return Either.left(`${asked._tag} was answered ${show(answer.transfer)}, where ${show(refusal)} is due`)
    }
    const why =
      refusal._tag === answer.refusal._tag
        ? difference(refusal, answer.refusal, refusal._tag)
        : `${asked._tag} was answered ${show(answer.refusal)}, where ${show(refusal)} is due`
    return why === undefined ? Either.right(notebook) : Either.left(why)
  }
  if ("refusal" in answer) return Either.left(`${asked._tag} was answered ${show(answer.refusal)}, but can be done`)
  if (expected.created && notebook.transfers.some(({ view }) => view.id === id)) {
    return Either.left(`a new transfer has the id ${id} of one that there is`)
  }
  const why =
    difference(unchanging(asked, expected.transfer), answer.transfer, `the transfer of ${asked._tag}`) ??
    (asked._tag === "Create" ? difference(expected.created, answer.created, `created of ${asked._tag}`) : undefined)
  return why === undefined ? Either.right(expected.notebook) : Either.left(why)
}

/** All accounts as the invariants of the ledger take them. Descriptions are not looked at, nor what credit from outside refers to. */
const viewsOf = async (under: TransfersUnderTest, { books }: TransfersNotebook): Promise<ReadonlyArray<View>> => {
  const views: Array<View> = []
  for (const id of books.accounts.keys()) {
    const account = await under.account(id)
    const entries = await under.entries(id)
    views.push({ ...account, held: account.held ?? 0n, id, reserved: 0n, entries: entries.map(plain) })
  }
  return views
}

/** Of a transfer that is sent again: it may be answered as it is later, so what may have become of it by then is not looked at. */
const unchanging = ({ _tag }: Asked, view: TransferView): Partial<TransferView> =>
  _tag === "Resend" && view.status === "pending"
    ? { id: view.id, amount: view.amount, expires_at: view.expires_at, last_sent_at: view.last_sent_at }
    : view

/** What all entries of credit from outside refer to in the model. */
export const outside = "outside"

const plain = ({ amount, balance, giftable, reference_id, source, type }: EntryView): EntryView => ({
  type,
  amount,
  balance,
  source,
  reference_id: source === "purchase" || source === "admin" ? outside : reference_id,
  ...(giftable !== undefined && { giftable })
})

/** How one of those transfers reads to its sender, if that is not as the notebook has it. */
export const misread = async (
  under: TransfersUnderTest,
  { transfers }: TransfersNotebook,
  ids: ReadonlySet<string>
): Promise<string | undefined> => {
  for (const { sender, view } of transfers) {
    if (!ids.has(view.id)) continue
    const answer = await under.find(sender, view.id)
    if ("refusal" in answer) return `${sender} asked for ${view.id} and was answered ${show(answer.refusal)}`
    const why = difference(view, answer.transfer, "the transfer as it reads then")
    if (why !== undefined) return why
  }
  return undefined
}

/**
 * Asks all of it at once, and has what is past its time ended meanwhile; answers the notebook after that, if some order of it explains
 * answers, accounts and transfers.
 */
export const askedAtOnce = async (
  notebook: TransfersNotebook,
  under: TransfersUnderTest,
  clock: TransfersClock,
  all: ReadonlyArray<Asked>
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

/** Several that expire at once do so in any order: the one in which their credit came back. */
const inOrderOfReturn = <Due extends { readonly view: TransferView }>(
  due: ReadonlyArray<Due>,
  views: ReadonlyArray<View>
): ReadonlyArray<Due> => {
  const returned = views.flatMap(({ entries }) =>
    entries.flatMap(({ reference_id, source }) => (source === "transfer_return" ? [reference_id] : []))
  )
  return due.toSorted((one, other) => returned.indexOf(one.view.id) - returned.indexOf(other.view.id))
}
