/** A credit transfer: what may be sent, what it looks like, and its states and moves as data. */
import { Either, Schema } from "effect"
import { Email } from "../kernel/Email.ts"
import { AccountId } from "../kernel/Ids.ts"
import { Moment } from "../kernel/Moment.ts"
import { fromDecimal, usd, Usd } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { PageQuery, Paginated } from "../kernel/Page.ts"
import { TransferInvalid } from "./Problems.ts"

export const TransferId = Schema.String.pipe(Schema.brand("TransferId"))
export type TransferId = typeof TransferId.Type

// ---- states and moves -----------------------------------------------------------------------------------------------------

export const TransferStatus = Schema.Literal("pending", "accepted", "declined", "revoked", "expired")
export type TransferStatus = typeof TransferStatus.Type

/** How a pending transfer may end, in which state, and to whom its escrow goes then. Every other state is final. */
export const moves = {
  accept: { to: "accepted", escrow: "recipient" },
  decline: { to: "declined", escrow: "sender" },
  revoke: { to: "revoked", escrow: "sender" },
  expire: { to: "expired", escrow: "sender" }
} as const satisfies Record<string, { readonly to: TransferStatus; readonly escrow: "recipient" | "sender" }>
export type Move = keyof typeof moves

/**
 * What a move means in a state: it is made; it was made before and is answered the same again, which the recipient's moves
 * are; or it is refused.
 */
export const judge = (status: TransferStatus, move: Move): "make" | "again" | "refuse" => {
  if (status === "pending") return "make"
  return status === moves[move].to && (move === "accept" || move === "decline") ? "again" : "refuse"
}

// ---- on the wire ----------------------------------------------------------------------------------------------------------

export const TransferKind = Schema.Literal("gift", "transfer")
export const GiftReason = Schema.Literal("thanks", "welcome", "congrats")

/**
 * The body of a create, well typed; its rules are `draftOf`'s. A null stands for a field that is not there.
 */
export const NewTransfer = Schema.Struct({
  /** USD, at least 0.01; rounded half-up to cents on its decimal literal. */
  amount: Schema.JsonNumber,
  recipient_email: Schema.String,
  /** `gift` or `transfer`. */
  kind: Schema.String,
  /** Of a gift only: `thanks`, `welcome` or `congrats`. */
  reason: Schema.optional(Schema.NullOr(Schema.String)),
  /** Of a gift only; up to 280 characters. */
  message: Schema.optional(Schema.NullOr(Schema.String))
}).annotations({ identifier: "NewTransfer" })
export interface NewTransfer extends Schema.Schema.Type<typeof NewTransfer> {}

export const Transfer = Schema.Struct({
  id: TransferId,
  status: TransferStatus,
  kind: TransferKind,
  amount: Usd,
  reason: Schema.NullOr(GiftReason),
  message: Schema.NullOr(Schema.String),
  sender: Schema.Struct({ account_id: AccountId, name: Schema.String, email: Schema.String }),
  recipient_email: Schema.String,
  /** Who it is for, once that is known. */
  recipient_account_id: Schema.NullOr(AccountId),
  created_at: Moment,
  updated_at: Moment,
  expires_at: Moment,
  last_sent_at: Moment,
  accepted_at: Schema.NullOr(Moment),
  declined_at: Schema.NullOr(Moment),
  revoked_at: Schema.NullOr(Moment)
}).annotations({ identifier: "Transfer" })
export interface Transfer extends Schema.Schema.Type<typeof Transfer> {}

export const TransferPage = Paginated(Transfer).annotations({ identifier: "TransferPage" })
export interface TransferPage extends Schema.Schema.Type<typeof TransferPage> {}

export const TransferQuery = Schema.Struct({
  status: Schema.optional(TransferStatus.annotations({ description: "Only transfers in this state" })),
  ...PageQuery
})
export interface TransferQuery extends Schema.Schema.Type<typeof TransferQuery> {}

/** What an invitation's link shows to whoever holds it. */
export const TransferPreview = Schema.Struct({
  kind: TransferKind,
  amount: Usd,
  reason: Schema.NullOr(GiftReason),
  message: Schema.NullOr(Schema.String),
  sender_name: Schema.String,
  recipient_email_masked: Schema.String,
  status: TransferStatus,
  expires_at: Moment
}).annotations({ identifier: "TransferPreview" })
export interface TransferPreview extends Schema.Schema.Type<typeof TransferPreview> {}

// ---- the rules of a create ------------------------------------------------------------------------------------------------

/** A transfer that may be made, if there is credit for it. */
export interface Draft {
  /** Whole cents. */
  readonly amount: Nano
  readonly recipient_email: string
  readonly kind: typeof TransferKind.Type
  readonly reason: typeof GiftReason.Type | null
  readonly message: string | null
}

export const messageMax = 280
const cent = usd / 100n

/** `literal` is the amount as it was written: 1.005 is 1.01, and no binary number says so. */
export const draftOf = (body: NewTransfer, literal: string): Either.Either<Draft, TransferInvalid> => {
  const wrong = (field: string, rule: string) =>
    Either.left(new TransferInvalid({ message: `${field}: ${rule}`, field, rule }))
  const cents = literal.length > 100 ? undefined : fromDecimal(literal, 2)
  // The least amount counts as it was sent: 0.005 would round up to it.
  if (cents === undefined || cents < 1n || (cents === 1n && !isCent(literal)))
    return wrong("amount", "a number of USD, at least 0.01")
  const email = Schema.decodeEither(Email)(body.recipient_email)
  if (Either.isLeft(email)) return wrong("recipient_email", "an email address")
  const { kind, message = null, reason = null } = body
  if (!Schema.is(TransferKind)(kind)) return wrong("kind", "gift or transfer")
  if (kind === "transfer" && reason !== null) return wrong("reason", "for gifts only")
  if (kind === "transfer" && message !== null) return wrong("message", "for gifts only")
  if (reason !== null && !Schema.is(GiftReason)(reason)) return wrong("reason", "thanks, welcome or congrats")
  if (message !== null && !message.isWellFormed()) return wrong("message", "well-formed text")
  if (message !== null && [...message].length > messageMax) return wrong("message", `up to ${messageMax} characters`)
  return Either.right({ amount: cents * cent, recipient_email: email.right, kind, reason, message })
}

const isCent = (literal: string): boolean => fromDecimal(literal, 300)! >= 10n ** 298n
