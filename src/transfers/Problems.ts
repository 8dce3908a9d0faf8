/** What the transfer routes refuse. */
import { Schema } from "effect"
import { Problem } from "../kernel/Problem.ts"

/** A well-typed body that breaks a rule of transfers; `details` names the field and the rule. */
export class TransferInvalid extends Problem<TransferInvalid>()("TransferInvalid", {
  status: 422,
  error: "the transfer is not valid",
  code: "transfer_invalid",
  fields: { field: Schema.optional(Schema.String), rule: Schema.optional(Schema.String) }
}) {}

export class TransferSelf extends Problem<TransferSelf>()("TransferSelf", {
  status: 422,
  error: "credits cannot be sent to oneself",
  code: "transfer_self"
}) {}

export class TransferInsufficientCredits extends Problem<TransferInsufficientCredits>()("TransferInsufficientCredits", {
  status: 422,
  error: "the balance cannot cover the amount",
  code: "transfer_insufficient_credits"
}) {}

export class TransferInsufficientGiftable extends Problem<TransferInsufficientGiftable>()(
  "TransferInsufficientGiftable",
  {
    status: 422,
    error: "granted credits can no longer be transferred: only purchased and received credits can be sent",
    code: "transfer_insufficient_giftable"
  }
) {}

/** The sender's billing account is suspended or closed. */
export class BillingAccountInactive extends Problem<BillingAccountInactive>()("BillingAccountInactive", {
  status: 409,
  error: "the billing account is not active, so nothing can be sent from it",
  code: "billing_account_inactive"
}) {}

export class TransferNotFound extends Problem<TransferNotFound>()("TransferNotFound", {
  status: 404,
  error: "no such transfer",
  code: "transfer_not_found"
}) {}

export class TransferNotPending extends Problem<TransferNotPending>()("TransferNotPending", {
  status: 409,
  error: "the transfer is no longer pending",
  code: "transfer_not_pending"
}) {}

export class TransferResendTooSoon extends Problem<TransferResendTooSoon>()("TransferResendTooSoon", {
  status: 429,
  error: "the invitation was sent again less than 12 hours ago",
  code: "transfer_resend_too_soon"
}) {}

/** Unknown, or replaced by a later letter's. */
export class TransferInviteNotFound extends Problem<TransferInviteNotFound>()("TransferInviteNotFound", {
  status: 404,
  error: "there is no such invitation",
  code: "invite_not_found"
}) {}
