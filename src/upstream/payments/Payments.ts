/** The payment processor: what is asked of it, and what its events mean. Its adapter (`Stripe`) is loaded when it is first asked. */
import { Context, Data, Effect, Layer } from "effect"
import type { Redacted } from "effect"

export interface PaymentSettings {
  readonly secret_key: Redacted.Redacted
  readonly webhook_secret: Redacted.Redacted
  /** Another address than Stripe's own: `http://127.0.0.1:9000`. */
  readonly base_url: string | undefined
  /** Where people come back to from the processor's pages. */
  readonly return_url: string
}

/** The processor did not answer, or not so that one could know whether it did what it was asked. */
export class ProcessorSilent extends Data.TaggedError("ProcessorSilent")<{ readonly reason: string }> {}

/** It said no: a declined card, a method that is gone. The words are for the customer. */
export class ChargeDeclined extends Data.TaggedError("ChargeDeclined")<{ readonly reason: string }> {}

export interface PaymentMethod {
  readonly id: string
  readonly type: string
  readonly brand: string | null
  readonly last4: string | null
  readonly exp_month: number | null
  readonly exp_year: number | null
}

/** A payment that went through. `tenant_id` is what we wrote on it. */
export interface Paid {
  readonly payment_id: string
  readonly tenant_id: string
  readonly kind: "checkout" | "auto_reload"
  /** In cents of USD. */
  readonly cents: number
  /** The attempt that it was made for. */
  readonly attempt: string | undefined
  /** By the processor's clock, in milliseconds. */
  readonly charged_at?: number | undefined
}

/** Money that left a payment after it was made, or came back to it. */
export interface Moved {
  /** The refund's or dispute's id; the payment's for a total. */
  readonly id: string
  /** `total`: all refunds of the payment together, as they stood then. */
  readonly kind: "refund" | "total" | "dispute"
  /** In cents of USD. */
  readonly cents: number
  /** The refund failed, or the money of the dispute was reinstated. */
  readonly returned: boolean
}

export type ProcessorEvent =
  | { readonly _tag: "Paid"; readonly id: string; readonly type: string; readonly paid: Paid }
  | {
      readonly _tag: "Moved"
      readonly id: string
      readonly type: string
      readonly payment_id: string
      readonly moved: ReadonlyArray<Moved>
    }
  | { readonly _tag: "Other"; readonly id: string; readonly type: string }
  /** Signed, but not what an event of the processor looks like. */
  | { readonly _tag: "Unreadable"; readonly field: string; readonly rule: string }

export interface PaymentsContract {
  /** Makes the tenant a customer; asked again it answers the same one. */
  readonly customer: (tenant_id: string, name: string) => Effect.Effect<string, ProcessorSilent>
  /** A page on which so many cents are paid for the tenant. */
  readonly checkout: (order: {
    readonly customer: string
    readonly tenant_id: string
    readonly cents: number
  }) => Effect.Effect<string, ProcessorSilent>
  /** A page on which a payment method is stored. */
  readonly setup: (customer: string, tenant_id: string) => Effect.Effect<string, ProcessorSilent>
  readonly methods: (customer: string) => Effect.Effect<ReadonlyArray<PaymentMethod>, ProcessorSilent>
  /** Charges a stored method without its owner there. `attempt` makes it happen once, however often it is asked. */
  readonly charge: (order: {
    readonly attempt: string
    readonly customer: string
    readonly tenant_id: string
    readonly method: string
    readonly cents: number
  }) => Effect.Effect<Paid, ChargeDeclined | ProcessorSilent>
  /**
   * The outcome of a payment attempt: its payment, a refusal, silence while it is under way, or `undefined` if there is no such payment. To
   * be asked before charging again: the processor forgets an idempotency key after a day.
   */
  readonly found: (order: {
    readonly attempt: string
    readonly customer: string
    readonly tenant_id: string
    /** When the attempt was begun, in milliseconds. */
    readonly since: number
  }) => Effect.Effect<Paid | undefined, ChargeDeclined | ProcessorSilent>
  /** The content of a webhook, if it is signed for us; `undefined` if it is not. `now` in milliseconds. */
  readonly event: (body: string, signature: string, now: number) => Effect.Effect<ProcessorEvent | undefined>
}

/** `undefined` where the deployment has no processor. */
export class Payments extends Context.Tag("tollgate/upstream/Payments")<Payments, PaymentsContract | undefined>() {
  static readonly layerStripe = (settings: PaymentSettings) => Layer.effect(Payments, make(settings))
  /** No payment is taken. */
  static readonly layerNone = Layer.succeed(Payments, undefined)
}

/** The adapter, loaded when it is first asked for something. */
const make = (settings: PaymentSettings): Effect.Effect<PaymentsContract> =>
  Effect.sync(() => {
    // One promise for all: a caller who leaves while it is loaded must not be what everybody gets from then on.
    let loading: Promise<PaymentsContract> | undefined
    const loaded = Effect.promise(() => (loading ??= import("./Stripe.ts").then((stripe) => stripe.make(settings))))
    return {
      customer: (...asked) => Effect.flatMap(loaded, ({ customer }) => customer(...asked)),
      checkout: (...asked) => Effect.flatMap(loaded, ({ checkout }) => checkout(...asked)),
      setup: (...asked) => Effect.flatMap(loaded, ({ setup }) => setup(...asked)),
      methods: (...asked) => Effect.flatMap(loaded, ({ methods }) => methods(...asked)),
      charge: (...asked) => Effect.flatMap(loaded, ({ charge }) => charge(...asked)),
      found: (...asked) => Effect.flatMap(loaded, ({ found }) => found(...asked)),
      event: (...asked) => Effect.flatMap(loaded, ({ event }) => event(...asked))
    }
  })
