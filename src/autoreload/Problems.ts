/** What the auto-reload routes refuse. */
import { Problem } from "../kernel/Problem.ts"

export class PaymentMethodRequired extends Problem<PaymentMethodRequired>()("PaymentMethodRequired", {
  status: 400,
  error: "auto_reload.payment_method_id: auto-reload needs a stored payment method",
  code: "payment_method_required",
  details: { field: "auto_reload.payment_method_id", rule: "required while auto-reload is enabled" }
}) {}

export class PaymentMethodNotFound extends Problem<PaymentMethodNotFound>()("PaymentMethodNotFound", {
  status: 400,
  error: "auto_reload.payment_method_id: no such stored payment method",
  code: "payment_method_not_found",
  details: { field: "auto_reload.payment_method_id", rule: "a stored payment method" }
}) {}

export class PaymentDeclined extends Problem<PaymentDeclined>()("PaymentDeclined", {
  status: 402,
  error: "the payment was declined",
  code: "payment_declined"
}) {}

/** A charge is in flight, or the last attempt is less than ten minutes ago. */
export class AutoReloadBusy extends Problem<AutoReloadBusy>()("AutoReloadBusy", {
  status: 409,
  error: "a charge is in flight, or was attempted less than ten minutes ago",
  code: "auto_reload_busy"
}) {}

export class AutoReloadDisabled extends Problem<AutoReloadDisabled>()("AutoReloadDisabled", {
  status: 409,
  error: "auto-reload is not enabled",
  code: "auto_reload_disabled"
}) {}

export class AutoReloadUnconfigured extends Problem<AutoReloadUnconfigured>()("AutoReloadUnconfigured", {
  status: 503,
  error: "billing automation is not configured on this deployment",
  code: "auto_reload_unconfigured"
}) {}
