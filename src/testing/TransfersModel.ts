/** A sequential model of transfers, built on the ledger model. It shares no code with this package's transfers. */
import { apply, empty } from "./LedgerModel.ts"
import type { Notebook as Books } from "./LedgerModel.ts"
import type { StoryPosting } from "./LedgerModel.ts"

export const day = 86_400_000
/** How long a transfer can be accepted, in milliseconds. */
export const lifetime = 30 * day
/** The minimum pause between two resends, in milliseconds. */
export const resendPause = day / 2
/** A cent in nano-USD. The amounts of transfers are whole cents. */
export const cent = 10_000_000n

export interface TransferOrder {
  /** The idempotency key. A repeated request does not create a second transfer. */
  readonly key: string
  /** The amount in nano-USD, in whole cents. */
  readonly amount: bigint
  readonly recipient_email: string
  readonly kind: "gift" | "transfer"
  /** The message. It must be null unless `kind` is `gift`. */
  readonly message: string | null
}

export type TransferState = "pending" | "accepted" | "declined" | "revoked" | "expired"

/** A transfer as its sender and recipient see it. Instants are in milliseconds. */
export interface TransferView {
  readonly id: string
  readonly status: TransferState
  readonly kind: "gift" | "transfer"
  readonly amount: bigint
  readonly message: string | null
  readonly recipient_email: string
  readonly created_at: number
  readonly expires_at: number
  readonly last_sent_at: number
  readonly accepted_at: number | null
  readonly declined_at: number | null
  readonly revoked_at: number | null
}

/** A refusal, as the problem's tag and data. */
export type TransferRefusal =
  | { readonly _tag: "TransferInvalid" | "TransferSelf" | "BillingAccountInactive" | "EmailMismatch" }
  | { readonly _tag: "TransferInsufficientCredits"; readonly available: bigint; readonly required: bigint }
  | { readonly _tag: "TransferInsufficientGiftable"; readonly giftable: bigint; readonly required: bigint }
  | { readonly _tag: "TransferKeyReused"; readonly transfer_id: string }
  | { readonly _tag: "TransferNotFound"; readonly transfer_id: string }
  | { readonly _tag: "TransferNotPending"; readonly transfer_id: string; readonly state: TransferState }
  | { readonly _tag: "TransferResendTooSoon"; readonly transfer_id: string; readonly resent_at: number }

/** A request and its sender. Users are identified by their email addresses. */
export type TransferRequest =
  | { readonly _tag: "Create"; readonly who: string; readonly order: TransferOrder }
  | {
      readonly _tag: "Accept" | "Decline" | "Revoke" | "Resend" | "Find"
      readonly who: string
      readonly id: string
    }

export interface ModelTransfer {
  readonly sender: string
  readonly key: string
  readonly view: TransferView
  readonly resent_at: number | undefined
}

/** The state of the model. It is immutable, so an operation returns a new state. */
export interface TransfersNotebook {
  /** The accounts of the people who have joined, by address. */
  readonly books: Books
  /** The transfers, in order of creation. */
  readonly transfers: ReadonlyArray<ModelTransfer>
}

export const noTransfers: TransfersNotebook = { books: empty, transfers: [] }

/** The expected answer and the resulting state. */
export type ExpectedTransfer =
  | { readonly refusal: TransferRefusal }
  | { readonly transfer: TransferView; readonly created: boolean; readonly notebook: TransfersNotebook }

/** Performs one request at the time `now`. `fresh` is the id that the implementation gave a new transfer. */
export const perform = (
  notebook: TransfersNotebook,
  asked: TransferRequest,
  now: number,
  fresh: string
): ExpectedTransfer => {
  if (asked._tag === "Create") return create(notebook, asked.who, asked.order, now, fresh)
  const { id, who } = asked
  const found = notebook.transfers.find(({ view }) => view.id === id)
  if (found === undefined) return refuse({ _tag: "TransferNotFound", transfer_id: id })
  switch (asked._tag) {
    case "Accept":
    case "Decline":
      return answer(notebook, found, who, asked._tag === "Accept", now)
    case "Revoke":
    case "Resend":
      if (who !== found.sender) return refuse({ _tag: "TransferNotFound", transfer_id: id })
      if (found.view.status !== "pending") return notPending(found)
      return asked._tag === "Revoke" ? end(notebook, found, "revoked", now) : resend(notebook, found, now)
    case "Find":
      return who === found.sender || who === found.view.recipient_email
        ? { transfer: found.view, created: false, notebook }
        : refuse({ _tag: "TransferNotFound", transfer_id: id })
  }
}

const refuse = (refusal: TransferRefusal): ExpectedTransfer => ({ refusal })

const notPending = ({ view }: ModelTransfer): ExpectedTransfer =>
  refuse({ _tag: "TransferNotPending", transfer_id: view.id, state: view.status })

const create = (
  notebook: TransfersNotebook,
  who: string,
  { amount, key, kind, message, recipient_email }: TransferOrder,
  now: number,
  id: string
): ExpectedTransfer => {
  if (amount < cent || (kind === "transfer" && message !== null)) return refuse({ _tag: "TransferInvalid" })
  const same = notebook.transfers.find((one) => one.sender === who && one.key === key)
  if (same !== undefined) {
    const { view } = same
    return view.amount === amount &&
      view.recipient_email === recipient_email &&
      view.kind === kind &&
      view.message === message
      ? { transfer: view, created: false, notebook }
      : refuse({ _tag: "TransferKeyReused", transfer_id: view.id })
  }
  if (who === recipient_email) return refuse({ _tag: "TransferSelf" })
  const done = apply(notebook.books, [{ _tag: "Escrow", account: who, amount, transfer: id, description: "" }])
  if ("refusal" in done) {
    switch (done.refusal._tag) {
      case "InsufficientCredits":
        return refuse({
          _tag: "TransferInsufficientCredits",
          available: done.refusal.available,
          required: amount
        })
      case "InsufficientGiftable":
        return refuse({
          _tag: "TransferInsufficientGiftable",
          giftable: done.refusal.giftable,
          required: amount
        })
      default:
        return refuse({ _tag: "BillingAccountInactive" })
    }
  }
  const view: TransferView = {
    id,
    status: "pending",
    kind,
    amount,
    message,
    recipient_email,
    created_at: now,
    expires_at: now + lifetime,
    last_sent_at: now,
    accepted_at: null,
    declined_at: null,
    revoked_at: null
  }
  const made = { sender: who, key, view, resent_at: undefined }
  return {
    transfer: view,
    created: true,
    notebook: { books: done.notebook, transfers: [...notebook.transfers, made] }
  }
}

/** Accepts or declines a transfer for its recipient. Repeating the answer changes nothing. */
const answer = (
  notebook: TransfersNotebook,
  found: ModelTransfer,
  who: string,
  accepts: boolean,
  now: number
): ExpectedTransfer => {
  const { view } = found
  if (who !== view.recipient_email) return refuse({ _tag: "EmailMismatch" })
  const status = accepts ? "accepted" : "declined"
  if (view.status === status) return { transfer: view, created: false, notebook }
  return view.status === "pending" ? end(notebook, found, status, now) : notPending(found)
}

const resend = (notebook: TransfersNotebook, found: ModelTransfer, now: number): ExpectedTransfer => {
  const { resent_at, view } = found
  if (resent_at !== undefined && resent_at + resendPause > now) {
    return refuse({ _tag: "TransferResendTooSoon", transfer_id: view.id, resent_at })
  }
  const after = { ...found, resent_at: now, view: { ...view, last_sent_at: now } }
  return { transfer: after.view, created: false, notebook: replaced(notebook, after) }
}

const replaced = ({ books, transfers }: TransfersNotebook, after: ModelTransfer): TransfersNotebook => ({
  books,
  transfers: transfers.map((one) => (one.view.id === after.view.id ? after : one))
})

const end = (
  notebook: TransfersNotebook,
  found: ModelTransfer,
  status: Exclude<TransferState, "pending">,
  now: number
): ExpectedTransfer => {
  const { sender, view } = found
  const posting: StoryPosting = {
    _tag: "EndEscrow",
    source: status === "accepted" ? "transfer_release" : "transfer_return",
    from: sender,
    to: status === "accepted" ? view.recipient_email : sender,
    amount: view.amount,
    transfer: view.id,
    description: ""
  }
  const done = apply(notebook.books, [posting])
  // The only possible reason to refuse is that the recipient's balance would be too large.
  if ("refusal" in done) return refuse({ _tag: "TransferInvalid" })
  const ended = (state: TransferState) => (state === status ? now : null)
  const after = {
    ...found,
    view: {
      ...view,
      status,
      accepted_at: ended("accepted"),
      declined_at: ended("declined"),
      revoked_at: ended("revoked")
    }
  }
  return { transfer: after.view, created: false, notebook: replaced({ ...notebook, books: done.notebook }, after) }
}

/** Returns the pending transfers that have expired by this time. */
export const dueAt = ({ transfers }: TransfersNotebook, now: number): ReadonlyArray<ModelTransfer> =>
  transfers.filter(({ view }) => view.status === "pending" && view.expires_at <= now)

/** Ends expired transfers in this order. */
export const expired = (
  notebook: TransfersNotebook,
  due: ReadonlyArray<ModelTransfer>,
  now: number
): TransfersNotebook =>
  due.reduce((before, one) => {
    const done = end(before, one, "expired", now)
    return "notebook" in done ? done.notebook : before
  }, notebook)
