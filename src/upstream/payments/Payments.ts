/** The port to the payment processor: its requests and the meaning of its events. The adapter (`Stripe`) is loaded with the first request. */
import { Context, Data, Effect, Layer } from "effect"
import type { Redacted } from "effect"

export interface PaymentSettings {
  readonly secret_key: Redacted.Redacted
  readonly webhook_secret: Redacted.Redacted
  /** A base URL that replaces Stripe's own, such as `http://127.0.0.1:9000`. */
  readonly base_url: string | undefined
  /** The URL that the processor's pages return to. */
  readonly return_url: string
}

/** The processor did not respond, or its response does not reveal the outcome. */
export class ProcessorSilent extends Data.TaggedError("ProcessorSilent")<{ readonly reason: string }> {}

/** The processor refused, for example because the card was declined or the payment method was deleted. The message is for the customer. */
export class ChargeDeclined extends Data.TaggedError("ChargeDeclined")<{ readonly reason: string }> {}

export interface PaymentMethod {
  readonly id: string
  readonly type: string
  readonly brand: string | null
  readonly last4: string | null
  readonly exp_month: number | null
  readonly exp_year: number | null
}

/** A successful payment. The service sets `tenant_id` in the payment's metadata. */
export interface Paid {
  readonly payment_id: string
  readonly tenant_id: string
  readonly kind: "checkout" | "auto_reload"
  /** The amount, in US cents. */
  readonly cents: number
  /** The attempt that caused the payment. */
  readonly attempt: string | undefined
  /** The time by the processor's clock, in milliseconds since 1970. */
  readonly charged_at?: number | undefined
}

/** A later movement of a payment's money: a refund, a dispute or a reversal. */
export interface Moved {
  /** The id of the refund or dispute, or of the payment for a `total`. */
  readonly id: string
  /** The kind of movement. A `total` is the sum of the payment's refunds at that time. */
  readonly kind: "refund" | "total" | "dispute"
  /** The amount, in US cents. */
  readonly cents: number
  /** Whether the refund failed or the disputed money was reinstated. */
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
  /** A signed event in an unknown format. */
  | { readonly _tag: "Unreadable"; readonly field: string; readonly rule: string }

export interface PaymentsContract {
  /** Registers the tenant as a customer and returns the customer's id. The request can be repeated safely. */
  readonly customer: (tenant_id: string, name: string) => Effect.Effect<string, ProcessorSilent>
  /** Creates a page for paying this amount and returns its URL. */
  readonly checkout: (order: {
    readonly customer: string
    readonly tenant_id: string
    readonly cents: number
  }) => Effect.Effect<string, ProcessorSilent>
  /** Creates a page for storing a payment method and returns its URL. */
  readonly setup: (customer: string, tenant_id: string) => Effect.Effect<string, ProcessorSilent>
  readonly methods: (customer: string) => Effect.Effect<ReadonlyArray<PaymentMethod>, ProcessorSilent>
  /** Charges a stored payment method without its owner's involvement. `attempt` makes the request idempotent. */
  readonly charge: (order: {
    readonly attempt: string
    readonly customer: string
    readonly tenant_id: string
    readonly method: string
    readonly cents: number
  }) => Effect.Effect<Paid, ChargeDeclined | ProcessorSilent>
  /**
   * Finds the outcome of a payment attempt. Returns its payment, or `undefined` if the attempt does not exist. Fails with `ChargeDeclined` if it was
   * refused and with `ProcessorSilent` while it is in progress. Call this before charging again, because the processor forgets an idempotency key
   * after a day.
   */
  readonly found: (order: {
    readonly attempt: string
    readonly customer: string
    readonly tenant_id: string
    /** The start of the attempt, in milliseconds since 1970. */
    readonly since: number
  }) => Effect.Effect<Paid | undefined, ChargeDeclined | ProcessorSilent>
  /** Reads a webhook. Returns `undefined` if its signature is invalid. `now` is in milliseconds since 1970. */
  readonly event: (body: string, signature: string, now: number) => Effect.Effect<ProcessorEvent | undefined>
}

/** `undefined` if the deployment has no payment processor. */
export class Payments extends Context.Tag("tollgate/upstream/Payments")<Payments, PaymentsContract | undefined>() {
  static readonly layerStripe = (settings: PaymentSettings) => Layer.effect(Payments, make(settings))
  static readonly layerNone = Layer.succeed(Payments, undefined)
}

const make = (settings: PaymentSettings): Effect.Effect<PaymentsContract> =>
  Effect.sync(() => {
    // The promise is shared, so that interrupting one caller does not affect the others.
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
