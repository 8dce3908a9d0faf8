/** The payment processor, by Stripe's own library: what is asked of it, and what its events mean. */
import { Context, Data, Effect, Redacted } from "effect"
import { Stripe } from "stripe"

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
}

export type ProcessorEvent =
  | { readonly _tag: "Paid"; readonly id: string; readonly type: string; readonly paid: Paid }
  | {
      readonly _tag: "Refunded"
      readonly id: string
      readonly type: string
      readonly payment_id: string
      /** All refunds of the payment together. */
      readonly cents: number
    }
  | {
      readonly _tag: "Disputed" | "DisputeWon"
      readonly id: string
      readonly type: string
      readonly dispute_id: string
      readonly payment_id: string
      readonly cents: number
    }
  | { readonly _tag: "Other"; readonly id: string; readonly type: string }

export interface Contract {
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
   * What became of an attempt that the processor was asked for: its payment, a refusal, silence while it is under way, or `undefined`
   * if there is no such payment. To be asked before charging again: the processor forgets an idempotency key after a day.
   */
  readonly found: (order: {
    readonly attempt: string
    readonly customer: string
    readonly tenant_id: string
    /** When the attempt was begun, in milliseconds. */
    readonly since: number
  }) => Effect.Effect<Paid | undefined, ChargeDeclined | ProcessorSilent>
  /** What a webhook says, if it is signed for us; `undefined` if it is not. `now` in milliseconds. */
  readonly event: (body: string, signature: string, now: number) => ProcessorEvent | undefined
}

/** Absent where the deployment has no processor. */
export class Payments extends Context.Reference<Payments>()("tollgate/upstream/Payments", {
  defaultValue: (): Contract | undefined => undefined
}) {}

/** How far a webhook's time may be from ours, in seconds. */
const tolerance = 300

export const make = (settings: PaymentSettings): Contract => {
  const address = settings.base_url === undefined ? undefined : new URL(settings.base_url)
  const stripe = new Stripe(Redacted.value(settings.secret_key), {
    // What may be asked again, and when, is decided here and not there.
    maxNetworkRetries: 0,
    timeout: 20_000,
    telemetry: false,
    ...(address !== undefined && {
      protocol: address.protocol === "http:" ? "http" : "https",
      host: address.hostname,
      port: Number(address.port || (address.protocol === "http:" ? 80 : 443))
    })
  })

  const silent = (error: unknown) => new ProcessorSilent({ reason: reasonOf(error) })
  const ask = <A>(call: () => Promise<A>) => Effect.tryPromise({ try: call, catch: silent })

  return {
    customer: (tenant_id, name) =>
      Effect.map(
        ask(() =>
          stripe.customers.create({ name, metadata: { tenant_id } }, { idempotencyKey: `customer/${tenant_id}` })
        ),
        ({ id }) => id
      ),
    checkout: ({ cents, customer, tenant_id }) =>
      Effect.flatMap(
        ask(() =>
          stripe.checkout.sessions.create({
            mode: "payment",
            customer,
            line_items: [
              {
                quantity: 1,
                price_data: { currency: "usd", unit_amount: cents, product_data: { name: "Credits" } }
              }
            ],
            payment_intent_data: {
              setup_future_usage: "off_session",
              metadata: { tenant_id, kind: "checkout" }
            },
            metadata: { tenant_id },
            success_url: settings.return_url,
            cancel_url: settings.return_url
          })
        ),
        addressOf
      ),
    setup: (customer, tenant_id) =>
      Effect.flatMap(
        ask(() =>
          stripe.checkout.sessions.create({
            mode: "setup",
            customer,
            currency: "usd",
            metadata: { tenant_id },
            success_url: settings.return_url,
            cancel_url: settings.return_url
          })
        ),
        addressOf
      ),
    methods: (customer) =>
      Effect.map(
        ask(() => stripe.paymentMethods.list({ customer, limit: 100 })),
        ({ data }) =>
          data.map(({ card, id, type }) => ({
            id,
            type,
            brand: card?.brand ?? null,
            last4: card?.last4 ?? null,
            exp_month: card?.exp_month ?? null,
            exp_year: card?.exp_year ?? null
          }))
      ),
    charge: Effect.fnUntraced(function* ({ attempt, cents, customer, method, tenant_id }) {
      const intent = yield* Effect.tryPromise({
        try: () =>
          stripe.paymentIntents.create(
            {
              amount: cents,
              currency: "usd",
              customer,
              payment_method: method,
              off_session: true,
              confirm: true,
              metadata: { tenant_id, kind: "auto_reload", attempt }
            },
            { idempotencyKey: attempt }
          ),
        catch: (error) =>
          error instanceof Stripe.errors.StripeCardError || error instanceof Stripe.errors.StripeInvalidRequestError
            ? new ChargeDeclined({ reason: reasonOf(error) })
            : silent(error)
      })
      return yield* outcomeOf(intent, attempt, tenant_id)
    }),
    found: Effect.fnUntraced(function* ({ attempt, customer, since, tenant_id }) {
      const intent = yield* ask(async () => {
        // Its clock and ours may differ by minutes.
        const gte = Math.floor(since / 1_000) - 600
        for await (const one of stripe.paymentIntents.list({ customer, created: { gte }, limit: 100 })) {
          if (one.metadata["attempt"] === attempt) return one
        }
        return undefined
      })
      return intent === undefined ? undefined : yield* outcomeOf(intent, attempt, tenant_id)
    }),
    event: (body, signature, now) => {
      try {
        return eventOf(
          stripe.webhooks.constructEvent(
            body,
            signature,
            Redacted.value(settings.webhook_secret),
            tolerance,
            undefined,
            now
          )
        )
      } catch {
        return undefined
      }
    }
  }
}

const outcomeOf = (
  { amount_received, id: payment_id, last_payment_error, status }: Stripe.PaymentIntent,
  attempt: string,
  tenant_id: string
): Effect.Effect<Paid, ChargeDeclined | ProcessorSilent> => {
  if (status === "succeeded") {
    return Effect.succeed({ payment_id, tenant_id, kind: "auto_reload", cents: amount_received, attempt })
  }
  return status === "processing"
    ? new ProcessorSilent({ reason: "the payment is still being processed" })
    : new ChargeDeclined({ reason: last_payment_error?.message ?? `the payment needs its owner (${status})` })
}

const addressOf = ({ url }: { readonly url: string | null }): Effect.Effect<string, ProcessorSilent> =>
  url === null ? new ProcessorSilent({ reason: "it answered no address" }) : Effect.succeed(url)

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const idOf = (thing: string | { readonly id: string } | null | undefined): string | undefined =>
  typeof thing === "string" ? thing : thing?.id

const eventOf = (event: Stripe.Event): ProcessorEvent => {
  const { id, type } = event
  const other = { _tag: "Other", id, type } as const
  switch (event.type) {
    case "payment_intent.succeeded": {
      const { amount_received, currency, id: payment_id, metadata } = event.data.object
      const { attempt, kind, tenant_id } = metadata
      if (tenant_id === undefined || currency !== "usd" || (kind !== "checkout" && kind !== "auto_reload")) return other
      return { _tag: "Paid", id, type, paid: { payment_id, tenant_id, kind, cents: amount_received, attempt } }
    }
    case "checkout.session.completed": {
      const { amount_total, currency, metadata, mode, payment_intent, payment_status } = event.data.object
      const tenant_id = metadata?.tenant_id
      const payment_id = idOf(payment_intent)
      const paid = mode === "payment" && payment_status === "paid" && currency === "usd"
      if (!paid || tenant_id === undefined || payment_id === undefined || amount_total === null) return other
      return {
        _tag: "Paid",
        id,
        type,
        paid: { payment_id, tenant_id, kind: "checkout", cents: amount_total, attempt: undefined }
      }
    }
    case "charge.refunded": {
      const { amount_refunded, payment_intent } = event.data.object
      const payment_id = idOf(payment_intent)
      return payment_id === undefined ? other : { _tag: "Refunded", id, type, payment_id, cents: amount_refunded }
    }
    case "charge.dispute.created":
    case "charge.dispute.closed": {
      const { amount, id: dispute_id, payment_intent, status } = event.data.object
      const payment_id = idOf(payment_intent)
      if (payment_id === undefined) return other
      if (event.type === "charge.dispute.created") {
        return { _tag: "Disputed", id, type, dispute_id, payment_id, cents: amount }
      }
      return status === "won" ? { _tag: "DisputeWon", id, type, dispute_id, payment_id, cents: amount } : other
    }
    default:
      return other
  }
}
