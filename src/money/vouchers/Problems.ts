import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Problem } from "../../kernel/Problem.ts"

export class VoucherNotFound extends Problem<VoucherNotFound>()("VoucherNotFound", {
  status: 404,
  error: "there is no voucher with this code",
  code: "voucher_not_found"
}) {}

export class VoucherUsedUp extends Problem<VoucherUsedUp>()("VoucherUsedUp", {
  status: 409,
  error: "the voucher is used up",
  code: "voucher_used_up"
}) {}

/** The voucher has expired, or the operator ended it. */
export class VoucherEnded extends Problem<VoucherEnded>()("VoucherEnded", {
  status: 409,
  error: "the voucher has ended",
  code: "voucher_ended",
  fields: { ended_at: Moment }
}) {}

export class VoucherRedeemed extends Problem<VoucherRedeemed>()("VoucherRedeemed", {
  status: 409,
  error: "this tenant has already redeemed the voucher",
  code: "voucher_redeemed"
}) {}

export class VoucherTooLarge extends Problem<VoucherTooLarge>()("VoucherTooLarge", {
  status: 422,
  error: "the balance would exceed the ledger's maximum",
  code: "balance_too_large"
}) {}

export class TooManyVouchers extends Problem<TooManyVouchers>()("TooManyVouchers", {
  status: 429,
  error: "too many codes within a minute; try again later",
  code: "too_many_codes",
  fields: { limit: Schema.Int },
  details: {}
}) {}
