import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Problem } from "../../kernel/Problem.ts"

export class PaymentMethodRequired extends Problem<PaymentMethodRequired>()("PaymentMethodRequired", {
  status: 400,
  error: "auto_reload.payment_method_id: auto-reload needs a stored payment method",
  code: "payment_method_required",
  details: { field: "auto_reload.payment_method_id", rule: "must be set while auto-reload is enabled" }
}) {}

export class PaymentMethodNotFound extends Problem<PaymentMethodNotFound>()("PaymentMethodNotFound", {
  status: 400,
  error: "auto_reload.payment_method_id: no such stored payment method",
  code: "payment_method_not_found",
  fields: { payment_method_id: Schema.String },
  details: { field: "auto_reload.payment_method_id", rule: "must be a stored payment method" }
}) {}

export class PaymentDeclined extends Problem<PaymentDeclined>()("PaymentDeclined", {
  status: 402,
  error: "the payment was declined",
  code: "payment_declined",
  /** `reason` is the processor's text for the customer. */
  fields: { attempt: Schema.String, amount: Usd, reason: Schema.String },
  details: {}
}) {}

export class AutoReloadBusy extends Problem<AutoReloadBusy>()("AutoReloadBusy", {
  status: 409,
  error: "a charge is in flight or was attempted less than ten minutes ago",
  code: "auto_reload_busy",
  /** The earliest time of the next charge. Null while a charge is in flight. */
  fields: { free_at: Schema.NullOr(Moment) },
  details: {}
}) {}

export class AutoReloadDisabled extends Problem<AutoReloadDisabled>()("AutoReloadDisabled", {
  status: 409,
  error: "auto-reload is not enabled",
  code: "auto_reload_disabled",
  /** The reason, if the service disabled auto-reload. */
  fields: { disabled_reason: Schema.NullOr(Schema.String) },
  details: {}
}) {}

export class AutoReloadUnconfigured extends Problem<AutoReloadUnconfigured>()("AutoReloadUnconfigured", {
  status: 503,
  error: "billing automation is not configured on this deployment",
  code: "auto_reload_unconfigured"
}) {}
