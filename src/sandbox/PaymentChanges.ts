/** Applies later changes to a payment: refunds, disputes, and the end of a delayed payment. */
import { addEvent, newId } from "./PaymentWorld.ts"
import type { Event, Processor, Refund } from "./PaymentWorld.ts"
import { sessionShown } from "./PaymentRoutes.ts"

export interface ChangeDetails {
  /** The amount in cents; `undefined` means the full remaining amount. */
  readonly amount: number | undefined
  readonly refund_id: string | undefined
}

/** Applies the change. Returns its events, with the event that moves money last, or `undefined` if the change is impossible. */
export const change = (
  processor: Processor,
  id: string,
  what: string,
  details: ChangeDetails
): ReadonlyArray<Event> | undefined => {
  const payment = processor.world.payments[id]
  if (payment === undefined) return undefined
  const disputed = (type: string, status: string) =>
    addEvent(processor, type, disputeOf(id, details.amount ?? payment.cents, status))
  switch (what) {
    case "refund":
      return refund(processor, id, details.amount)
    case "refund_fail":
      return failRefund(processor, id, details.refund_id)
    case "inquire":
      return [disputed("charge.dispute.created", "warning_needs_response")]
    case "dispute":
      return [
        disputed("charge.dispute.created", "needs_response"),
        disputed("charge.dispute.funds_withdrawn", "needs_response")
      ]
    case "win":
      return [disputed("charge.dispute.closed", "won"), disputed("charge.dispute.funds_reinstated", "won")]
    case "lose":
      return [disputed("charge.dispute.closed", "lost")]
    case "settle":
    case "fail":
      return endDelayed(processor, id, what === "settle")
    default:
      return undefined
  }
}

const refundedCents = (refunds: ReadonlyArray<Refund>): number =>
  refunds.reduce((sum, one) => sum + (one.failed ? 0 : one.cents), 0)

const refund = (processor: Processor, id: string, amount: number | undefined) => {
  const payment = processor.world.payments[id]!
  const refunds = (payment.refunds ??= [])
  const left = payment.cents - refundedCents(refunds)
  const refund = { id: newId("re"), cents: amount ?? left, failed: false }
  if (refund.cents <= 0 || refund.cents > left) return undefined
  refunds.push(refund)
  return [
    addEvent(processor, "refund.created", refundOf(id, refund)),
    addEvent(processor, "charge.refunded", chargeOf(id, payment.cents, refunds))
  ]
}

/** Marks the refund with this id, or the newest one, as failed. */
const failRefund = (processor: Processor, id: string, refund_id: string | undefined) => {
  const { refunds = [] } = processor.world.payments[id]!
  const refund = refunds.findLast((one) => !one.failed && (refund_id ?? one.id) === one.id)
  if (refund === undefined) return undefined
  refund.failed = true
  return [
    addEvent(processor, "refund.updated", refundOf(id, refund)),
    addEvent(processor, "refund.failed", refundOf(id, refund))
  ]
}

const endDelayed = (processor: Processor, id: string, settles: boolean) => {
  const { payments, sessions } = processor.world
  const { intent } = payments[id]!
  const session = Object.values(sessions).find(({ payment_intent }) => payment_intent === id)
  if (intent.status !== "processing" || session === undefined) return undefined
  intent.status = settles ? "succeeded" : "requires_payment_method"
  intent.amount_received = settles ? intent.amount : 0
  return [
    addEvent(processor, settles ? "payment_intent.succeeded" : "payment_intent.payment_failed", intent),
    addEvent(
      processor,
      `checkout.session.async_payment_${settles ? "succeeded" : "failed"}`,
      sessionShown(processor, session)
    )
  ]
}

const disputeOf = (id: string, cents: number, status: string) => ({
  id: `dp_${id}`,
  object: "dispute",
  amount: cents,
  currency: "usd",
  payment_intent: id,
  status
})

const refundOf = (id: string, refund: Refund) => ({
  id: refund.id,
  object: "refund",
  amount: refund.cents,
  currency: "usd",
  payment_intent: id,
  status: refund.failed ? "failed" : "succeeded"
})

const chargeOf = (id: string, cents: number, refunds: ReadonlyArray<Refund>) => ({
  id: `ch_${id}`,
  object: "charge",
  amount: cents,
  amount_refunded: refundedCents(refunds),
  currency: "usd",
  payment_intent: id
})
