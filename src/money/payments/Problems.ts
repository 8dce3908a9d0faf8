import { Problem } from "../../kernel/Problem.ts"

export class PaymentsUnconfigured extends Problem<PaymentsUnconfigured>()("PaymentsUnconfigured", {
  status: 503,
  error: "no payment processor is configured on this deployment",
  code: "payments_unconfigured"
}) {}

export class ProcessorUnavailable extends Problem<ProcessorUnavailable>()("ProcessorUnavailable", {
  status: 503,
  error: "the payment processor did not respond; try again shortly",
  code: "payments_unavailable"
}) {}

export class ProcessorTooOften extends Problem<ProcessorTooOften>()("ProcessorTooOften", {
  status: 429,
  error: "too many requests to the payment processor within a minute; try again shortly",
  code: "rate_limited"
}) {}

export class WebhookSignatureInvalid extends Problem<WebhookSignatureInvalid>()("WebhookSignatureInvalid", {
  status: 400,
  error: "the webhook is not signed for this deployment",
  code: "webhook_signature_invalid"
}) {}
