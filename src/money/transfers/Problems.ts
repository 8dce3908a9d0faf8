import { Schema } from "effect"
import { BillingAccountId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Problem } from "../../kernel/Problem.ts"
import { TransferId, TransferStatus } from "./States.ts"

/** The body is well-typed but violates a constraint on transfers. `details` contains the field and the constraint. */
export class TransferInvalid extends Problem<TransferInvalid>()("TransferInvalid", {
  status: 422,
  error: "the transfer is not valid",
  code: "transfer_invalid",
  fields: { field: Schema.optional(Schema.String), rule: Schema.optional(Schema.String) }
}) {}

export class TransferSelf extends Problem<TransferSelf>()("TransferSelf", {
  status: 422,
  error: "you cannot send credits to yourself",
  code: "transfer_self"
}) {}

export class TransferInsufficientCredits extends Problem<TransferInsufficientCredits>()("TransferInsufficientCredits", {
  status: 422,
  error: "the balance cannot cover the amount",
  code: "transfer_insufficient_credits",
  /** `required` is the amount of the transfer. */
  fields: { available: Usd, required: Usd },
  details: {}
}) {}

export class TransferInsufficientGiftable extends Problem<TransferInsufficientGiftable>()(
  "TransferInsufficientGiftable",
  {
    status: 422,
    error: "granted credits can no longer be transferred: only purchased and received credits can be sent",
    code: "transfer_insufficient_giftable",
    /** `required` is the amount of the transfer. */
    fields: { giftable: Usd, required: Usd },
    details: {}
  }
) {}

export class TransferKeyReused extends Problem<TransferKeyReused>()("TransferKeyReused", {
  status: 409,
  error: "this key was used for another transfer",
  code: "idempotency_key_reused",
  fields: { transfer_id: TransferId },
  details: {}
}) {}

export class BillingAccountInactive extends Problem<BillingAccountInactive>()("BillingAccountInactive", {
  status: 409,
  error: "the billing account is not active, so nothing can be sent from it",
  code: "billing_account_inactive",
  fields: { billing_account_id: BillingAccountId },
  details: {}
}) {}

export class TransferNotFound extends Problem<TransferNotFound>()("TransferNotFound", {
  status: 404,
  error: "no such transfer",
  code: "transfer_not_found",
  fields: { transfer_id: TransferId },
  details: {}
}) {}

export class TransferNotPending extends Problem<TransferNotPending>()("TransferNotPending", {
  status: 409,
  error: "the transfer is no longer pending",
  code: "transfer_not_pending",
  fields: { transfer_id: TransferId, state: TransferStatus },
  details: {}
}) {}

export class TooManyTransfers extends Problem<TooManyTransfers>()("TooManyTransfers", {
  status: 429,
  error: "too many transfers in 24 hours; try again later",
  code: "too_many_transfers",
  fields: { limit: Schema.Int },
  details: {}
}) {}

export class TransferResendTooSoon extends Problem<TransferResendTooSoon>()("TransferResendTooSoon", {
  status: 429,
  error: "the invitation was already resent less than 12 hours ago",
  code: "transfer_resend_too_soon",
  /** `retry_after` is the time until the next resend is allowed, in seconds. */
  fields: { transfer_id: TransferId, resent_at: Moment },
  details: {}
}) {}

/** The token is unknown, or a later email has replaced it. */
export class TransferInviteNotFound extends Problem<TransferInviteNotFound>()("TransferInviteNotFound", {
  status: 404,
  error: "there is no such invitation",
  code: "invite_not_found"
}) {}
