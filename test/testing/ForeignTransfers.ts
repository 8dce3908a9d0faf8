/**
 * Another implementation of transfers: without a database. Each read and write takes a turn of the event loop, and a lock serializes operations. It is
 * right unless a mistake is planted.
 */
import type {
  EntryView,
  TransferAnswer,
  TransferOrder,
  TransferRefusal,
  TransfersClock,
  TransferState,
  TransfersUnderTest,
  TransferView
} from "../../src/app/entry/testing.ts"

export const mistakes = [
  "pays again when it is accepted again",
  "pays twice when it is accepted twice at once",
  "returns what is accepted at the same time",
  "does not take the credit from its sender",
  "returns granted credit when it is declined",
  "accepts what has expired",
  "makes a second transfer for a key that was used",
  // Mistakes beyond the required list.
  "takes a used key for any request",
  "has one set of keys for all senders",
  "makes two transfers of one key at once",
  "sends granted credit",
  "sends to oneself",
  "sends from a suspended account",
  "answers the balance as giftable",
  "lets anybody accept",
  "lets anybody revoke",
  "lets a declined transfer be accepted",
  "shows a transfer to anybody",
  "sends again without a pause",
  "sends again only after more than the pause",
  "expires a millisecond late",
  "keeps as held what has expired",
  "has no entry for the recipient",
  "enters what comes back under another reference",
  "keeps amounts as floats",
  "loses the message",
  "forgets when it was accepted",
  "takes any amount"
] as const

export type Mistake = (typeof mistakes)[number]

interface Person {
  giftable: bigint
  granted: bigint
  held: bigint
  status: "active" | "suspended"
  readonly entries: Array<EntryView>
}

interface Transfer extends TransferOrder {
  readonly id: string
  readonly sender: string
  readonly created_at: number
  readonly expires_at: number
  status: TransferState
  sent_at: number
  resent_at: number | undefined
  ended_at: number | null
}

class Refused extends Error {
  readonly refusal: TransferRefusal
  constructor(refusal: TransferRefusal) {
    super(refusal._tag)
    this.refusal = refusal
  }
}

const days = 86_400_000
const max = 10n ** 18n
const turn = () => Promise.resolve()

export const foreignTransfers =
  (mistake?: Mistake) =>
  async ({ now }: TransfersClock): Promise<TransfersUnderTest> => {
    const makes = (one: Mistake) => one === mistake
    const people = new Map<string, Person>()
    const transfers = new Map<string, Transfer>()

    const refuse = (refusal: TransferRefusal): never => {
      throw new Refused(refusal)
    }
    const balance = ({ giftable, granted }: Person) => giftable + granted
    const exact = (amount: bigint) => (makes("keeps amounts as floats") ? BigInt(Number(amount)) : amount)
    const enter = (
      person: Person,
      type: "credit" | "debit",
      amount: bigint,
      source: EntryView["source"],
      reference_id: string
    ) => {
      person.giftable = exact(person.giftable)
      person.entries.push({ type, amount, balance: balance(person), source, reference_id })
    }

    const view = (transfer: Transfer): TransferView => {
      const { amount, created_at, ended_at, expires_at, id, kind, message, recipient_email, sent_at, status } = transfer
      const ended = (state: TransferState) => (status === state ? ended_at : null)
      return {
        id,
        status,
        kind,
        amount,
        message: makes("loses the message") ? null : message,
        recipient_email,
        created_at,
        expires_at,
        last_sent_at: sent_at,
        accepted_at: makes("forgets when it was accepted") ? null : ended("accepted"),
        declined_at: ended("declined"),
        revoked_at: ended("revoked")
      }
    }

    const expireDue = () => {
      for (const transfer of transfers.values()) {
        const over = transfer.expires_at + (makes("expires a millisecond late") ? 1 : 0) <= now()
        if (transfer.status === "pending" && over) end(transfer, "expired")
      }
    }

    const end = (transfer: Transfer, status: Exclude<TransferState, "pending">) => {
      const { amount, id, recipient_email } = transfer
      const sender = people.get(transfer.sender)!
      const accepted = status === "accepted"
      const to = accepted ? people.get(recipient_email)! : sender
      if (accepted && balance(to) + amount > max) refuse({ _tag: "TransferInvalid" })
      if (!(status === "expired" && makes("keeps as held what has expired"))) sender.held -= amount
      if (status === "declined" && makes("returns granted credit when it is declined")) to.granted += amount
      else to.giftable += amount
      const reference = makes("enters what comes back under another reference") ? `return of ${id}` : id
      if (!accepted) enter(to, "credit", amount, "transfer_return", reference)
      else if (!makes("has no entry for the recipient")) enter(to, "credit", amount, "transfer_release", id)
      transfer.status = status
      transfer.ended_at = now()
    }

    const found = async (id: string): Promise<Transfer> => {
      await turn()
      return transfers.get(id) ?? refuse({ _tag: "TransferNotFound", transfer_id: id })
    }

    const pending = (transfer: Transfer, ...also: ReadonlyArray<TransferState>) => {
      const { id, status } = transfer
      if (status !== "pending" && !also.includes(status)) {
        refuse({ _tag: "TransferNotPending", transfer_id: id, state: status })
      }
    }

    const create = async (who: string, order: TransferOrder): Promise<TransferAnswer> => {
      const { amount, key, kind, message, recipient_email } = order
      if (amount < 10_000_000n && !makes("takes any amount")) refuse({ _tag: "TransferInvalid" })
      if (kind === "transfer" && message !== null) refuse({ _tag: "TransferInvalid" })
      const known = [...transfers.values()].find(
        (one) => one.key === key && (one.sender === who || makes("has one set of keys for all senders"))
      )
      await turn()
      if (known !== undefined && !makes("makes a second transfer for a key that was used")) {
        const same =
          known.amount === amount &&
          known.recipient_email === recipient_email &&
          known.kind === kind &&
          known.message === message
        if (!same && !makes("takes a used key for any request")) {
          refuse({ _tag: "TransferKeyReused", transfer_id: known.id })
        }
        return { transfer: view(known), created: false }
      }
      if (who === recipient_email && !makes("sends to oneself")) refuse({ _tag: "TransferSelf" })
      const sender = people.get(who)!
      if (sender.status !== "active" && !makes("sends from a suspended account")) {
        refuse({ _tag: "BillingAccountInactive" })
      }
      if (amount > balance(sender)) {
        refuse({ _tag: "TransferInsufficientCredits", available: balance(sender), required: amount })
      }
      if (amount > sender.giftable && !makes("sends granted credit")) {
        const giftable = makes("answers the balance as giftable") ? balance(sender) : sender.giftable
        refuse({ _tag: "TransferInsufficientGiftable", giftable, required: amount })
      }
      if (!makes("does not take the credit from its sender")) {
        const giftable = amount < sender.giftable ? amount : sender.giftable
        sender.giftable -= giftable
        sender.granted -= amount - giftable
      }
      sender.held += amount
      const id = `transfer of ${who} ${transfers.size}`
      enter(sender, "debit", amount, "transfer_escrow", id)
      const made: Transfer = {
        ...order,
        id,
        sender: who,
        status: "pending",
        created_at: now(),
        expires_at: now() + 30 * days,
        sent_at: now(),
        resent_at: undefined,
        ended_at: null
      }
      transfers.set(id, made)
      return { transfer: view(made), created: true }
    }

    const accept = async (who: string, id: string): Promise<TransferAnswer> => {
      const transfer = await found(id)
      if (who !== transfer.recipient_email && !makes("lets anybody accept")) refuse({ _tag: "EmailMismatch" })
      if (transfer.status === "accepted" && !makes("pays again when it is accepted again")) {
        return { transfer: view(transfer) }
      }
      if (!(transfer.status === "expired" && makes("accepts what has expired"))) {
        pending(transfer, "accepted", ...(makes("lets a declined transfer be accepted") ? ["declined" as const] : []))
      }
      await turn()
      end(transfer, "accepted")
      return { transfer: view(transfer) }
    }

    const decline = async (who: string, id: string): Promise<TransferAnswer> => {
      const transfer = await found(id)
      if (who !== transfer.recipient_email) refuse({ _tag: "EmailMismatch" })
      pending(transfer, "declined")
      if (transfer.status === "pending") end(transfer, "declined")
      return { transfer: view(transfer) }
    }

    const ofSender = async (who: string, id: string): Promise<Transfer> => {
      const transfer = await found(id)
      const may = who === transfer.sender || makes("lets anybody revoke")
      return may ? transfer : refuse({ _tag: "TransferNotFound", transfer_id: id })
    }

    const revoke = async (who: string, id: string): Promise<TransferAnswer> => {
      const transfer = await ofSender(who, id)
      pending(transfer)
      await turn()
      end(transfer, "revoked")
      return { transfer: view(transfer) }
    }

    const resend = async (who: string, id: string): Promise<TransferAnswer> => {
      const transfer = await ofSender(who, id)
      pending(transfer)
      const { resent_at } = transfer
      const more = makes("sends again only after more than the pause") ? 1 : 0
      const soon = resent_at !== undefined && now() < resent_at + days / 2 + more
      if (soon && !makes("sends again without a pause")) {
        refuse({ _tag: "TransferResendTooSoon", transfer_id: id, resent_at })
      }
      transfer.resent_at = transfer.sent_at = now()
      return { transfer: view(transfer) }
    }

    const find = async (who: string, id: string): Promise<TransferAnswer> => {
      const transfer = await found(id)
      const may = who === transfer.sender || who === transfer.recipient_email || makes("shows a transfer to anybody")
      return may ? { transfer: view(transfer) } : refuse({ _tag: "TransferNotFound", transfer_id: id })
    }

    const answered = async (work: () => Promise<TransferAnswer>): Promise<TransferAnswer> => {
      try {
        expireDue()
        return await work()
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        return { refusal: error.refusal }
      }
    }

    let last: Promise<unknown> = Promise.resolve()
    const unlocked: Partial<Record<Mistake, ReadonlyArray<unknown>>> = {
      "pays twice when it is accepted twice at once": [accept],
      "returns what is accepted at the same time": [accept, revoke],
      "makes two transfers of one key at once": [create]
    }
    const operation =
      <B>(work: (who: string, what: B) => Promise<TransferAnswer>) =>
      (who: string, what: B): Promise<TransferAnswer> => {
        if (mistake !== undefined && unlocked[mistake]?.includes(work)) return answered(() => work(who, what))
        const done = last.then(() => answered(() => work(who, what)))
        last = done
        return done
      }

    return {
      join: async (email) => {
        people.set(email, { giftable: 0n, granted: 0n, held: 0n, status: "active", entries: [] })
      },
      credit: async (email, amount, source) => {
        const person = people.get(email)!
        person[source === "purchase" ? "giftable" : "granted"] += amount
        enter(person, "credit", amount, source, "a payment")
      },
      setStatus: async (email, status) => {
        people.get(email)!.status = status
      },
      create: operation(create),
      accept: operation(accept),
      decline: operation(decline),
      revoke: operation(revoke),
      resend: operation(resend),
      find: operation(find),
      expire: async () => expireDue(),
      account: async (email) => people.get(email)!,
      entries: async (email) => people.get(email)!.entries
    }
  }
