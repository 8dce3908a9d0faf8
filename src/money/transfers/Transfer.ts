/** Schemas and rules for credit transfers, as requested and as shown to clients. */
import { Either, Schema } from "effect"
import { Email } from "../../kernel/Email.ts"
import { AccountId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { cent, divideHalfUp, fromDecimal, toDecimal, Usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { PageQuery, Paginated } from "../../kernel/Page.ts"
import { isStorable, storableRule } from "../../kernel/StoredText.ts"
import { TransferInvalid } from "./Problems.ts"
import { TransferId, TransferStatus } from "./States.ts"

export const TransferKind = Schema.Literal("gift", "transfer")
export const GiftReason = Schema.Literal("thanks", "welcome", "congrats")

/**
 * Reads a decimal literal in USD as whole cents, rounded half-up. Returns 0 for invalid literals and for amounts below one cent. The minimum applies
 * before rounding, so 0.005 is too small.
 */
export const wholeCents = (literal: string): Nano => {
  const cents = literal.length > 100 ? undefined : fromDecimal(literal, 2)
  if (cents === undefined || cents < 1n) return 0n
  return cents === 1n && fromDecimal(literal, 300)! < 10n ** 298n ? 0n : cents * cent
}

const Amount = Schema.transform(Schema.JsonNumber, Schema.BigIntFromSelf, {
  strict: true,
  decode: (number) => wholeCents(String(number)),
  encode: (amount) => Number(toDecimal(amount))
})

/** The body of a create. Null means that the field is absent. `draftOf` checks the rules for each field. */
export const NewTransfer = Schema.Struct({
  /** At least 0.01 USD, rounded half-up to cents. */
  amount: Amount,
  recipient_email: Schema.String,
  /** Either `gift` or `transfer`. */
  kind: Schema.String,
  /** For gifts only: `thanks`, `welcome` or `congrats`. */
  reason: Schema.optional(Schema.NullOr(Schema.String)),
  /** For gifts only, up to 280 characters. */
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
  /** Null until the transfer is bound to the recipient's account. */
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
  status: Schema.optional(TransferStatus.annotations({ description: "Restricts the list to transfers in this state" })),
  ...PageQuery
})
export interface TransferQuery extends Schema.Schema.Type<typeof TransferQuery> {}

/** The summary that an invitation's link shows before sign-in. */
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

export interface Draft {
  /** The amount in nano-USD, rounded to whole cents. */
  readonly amount: Nano
  readonly recipient_email: string
  readonly kind: typeof TransferKind.Type
  readonly reason: typeof GiftReason.Type | null
  readonly message: string | null
}

export const messageMax = 280

/** Checks a request against the rules of transfers, and rounds its amount half-up to cents. */
export const draftOf = (request: NewTransfer): Either.Either<Draft, TransferInvalid> => {
  const wrong = (field: string, rule: string) =>
    Either.left(new TransferInvalid({ message: `${field}: ${rule}`, field, rule }))
  const { amount, kind, message = null, reason = null } = request
  if (amount < cent) return wrong("amount", "must be a number of USD, at least 0.01")
  const email = Schema.decodeEither(Email)(request.recipient_email)
  if (Either.isLeft(email)) return wrong("recipient_email", "must be an email address")
  if (!Schema.is(TransferKind)(kind)) return wrong("kind", "must be gift or transfer")
  if (kind === "transfer" && reason !== null) return wrong("reason", "must be omitted unless kind is gift")
  if (kind === "transfer" && message !== null) return wrong("message", "must be omitted unless kind is gift")
  if (reason !== null && !Schema.is(GiftReason)(reason)) return wrong("reason", "must be thanks, welcome or congrats")
  if (message !== null && !message.isWellFormed()) return wrong("message", "must be well-formed text")
  if (message !== null && !isStorable(message)) return wrong("message", storableRule)
  if (message !== null && [...message].length > messageMax)
    return wrong("message", `must be at most ${messageMax} characters long`)
  return Either.right({
    amount: divideHalfUp(amount, cent) * cent,
    recipient_email: email.right,
    kind,
    reason,
    message
  })
}
