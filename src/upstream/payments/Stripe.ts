/** The payment adapter for Stripe, with Stripe's library. */
import { Effect, Either, ParseResult, Redacted, Schema } from "effect"
import { Stripe } from "stripe"
import { amountMax, cent } from "../../kernel/Money.ts"
import { StoredText } from "../../kernel/StoredText.ts"
import { ChargeDeclined, ProcessorSilent } from "./Payments.ts"
import type { Moved, Paid, PaymentsContract, PaymentSettings, ProcessorEvent } from "./Payments.ts"

/** The maximum difference between a webhook's time and the service's clock, in seconds. */
const tolerance = 300

interface Parts {
  readonly settings: PaymentSettings
  readonly stripe: Stripe
}

export const make = (settings: PaymentSettings): PaymentsContract => {
  const parts: Parts = { settings, stripe: clientOf(settings) }
  return {
    customer: customer(parts),
    checkout: checkout(parts),
    setup: setup(parts),
    methods: methods(parts),
    charge: charge(parts),
    found: found(parts),
    event: event(parts)
  }
}

const clientOf = (settings: PaymentSettings): Stripe => {
  const address = settings.base_url === undefined ? undefined : new URL(settings.base_url)
  return new Stripe(Redacted.value(settings.secret_key), {
    // The service decides about retries, not the client library.
    maxNetworkRetries: 0,
    timeout: 20_000,
    telemetry: false,
    ...(address !== undefined && {
      protocol: address.protocol === "http:" ? "http" : "https",
      host: address.hostname,
      port: Number(address.port || (address.protocol === "http:" ? 80 : 443))
    })
  })
}

const silent = (error: unknown) => new ProcessorSilent({ reason: reasonOf(error) })
const ask = <A>(call: () => Promise<A>) => Effect.tryPromise({ try: call, catch: silent })

const customer =
  ({ stripe }: Parts): PaymentsContract["customer"] =>
  (tenant_id, name) =>
    Effect.map(
      ask(() =>
        stripe.customers.create({ name, metadata: { tenant_id } }, { idempotencyKey: `customer/${tenant_id}` })
      ),
      ({ id }) => id
    )

const checkout =
  ({ settings, stripe }: Parts): PaymentsContract["checkout"] =>
  ({ cents, customer, tenant_id }) =>
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
    )

const setup =
  ({ settings, stripe }: Parts): PaymentsContract["setup"] =>
  (customer, tenant_id) =>
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
    )

const methods =
  ({ stripe }: Parts): PaymentsContract["methods"] =>
  (customer) =>
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
    )

const charge = ({ stripe }: Parts): PaymentsContract["charge"] =>
  Effect.fnUntraced(function* ({ attempt, cents, customer, method, tenant_id }) {
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
  })

const found = ({ stripe }: Parts): PaymentsContract["found"] =>
  Effect.fnUntraced(function* ({ attempt, customer, since, tenant_id }) {
    const intent = yield* ask(async () => {
      // Stripe's clock and the service's clock can differ by minutes.
      const gte = Math.floor(since / 1_000) - 600
      for await (const paymentIntent of stripe.paymentIntents.list({ customer, created: { gte }, limit: 100 })) {
        if (paymentIntent.metadata["attempt"] === attempt) return paymentIntent
      }
      return undefined
    })
    return intent === undefined ? undefined : yield* outcomeOf(intent, attempt, tenant_id)
  })

const event =
  ({ settings, stripe }: Parts): PaymentsContract["event"] =>
  (body, signature, now) =>
    Effect.sync(() => {
      if (!hasTime(signature)) return undefined
      try {
        stripe.webhooks.signature!.verifyHeader(
          body,
          signature,
          Redacted.value(settings.webhook_secret),
          tolerance,
          undefined,
          now
        )
      } catch {
        return undefined
      }
      return eventOf(body)
    })

const outcomeOf = (
  { amount_received, created, id: payment_id, last_payment_error, status }: Stripe.PaymentIntent,
  attempt: string,
  tenant_id: string
): Effect.Effect<Paid, ChargeDeclined | ProcessorSilent> => {
  if (status === "succeeded") {
    const charged_at = created * 1_000
    return Effect.succeed({ payment_id, tenant_id, kind: "auto_reload", cents: amount_received, attempt, charged_at })
  }
  return status === "processing"
    ? new ProcessorSilent({ reason: "the payment is still being processed" })
    : new ChargeDeclined({
        reason: last_payment_error?.message ?? `the payment requires action by its owner (${status})`
      })
}

const addressOf = ({ url }: { readonly url: string | null }): Effect.Effect<string, ProcessorSilent> =>
  url === null ? new ProcessorSilent({ reason: "the response contains no URL" }) : Effect.succeed(url)

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Returns whether the signature's time is a number. The library accepts any other time as recent. */
const hasTime = (signature: string): boolean =>
  signature.split(",").every((part) => !part.startsWith("t=") || /^t=\d+$/.test(part))

// ---- events ---------------------------------------------------------------------------------------------------------------

/** An id, or an expanded object that contains one. Ids connect rows of several tables, so they must be stored unchanged. */
const Id = Schema.transform(Schema.Union(StoredText, Schema.Struct({ id: StoredText })), Schema.String, {
  strict: true,
  decode: (thing) => (typeof thing === "string" ? thing : thing.id),
  encode: (id) => id
})
const maybe = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(Schema.NullOr(schema), { default: () => null })

const Cents = Schema.Int.pipe(Schema.between(0, Number(amountMax / cent)))
const Metadata = Schema.Record({ key: Schema.String, value: StoredText })

const Intent = Schema.Struct({
  id: StoredText,
  amount_received: Cents,
  currency: Schema.String,
  metadata: maybe(Metadata)
})

const Session = Schema.Struct({
  mode: Schema.String,
  payment_status: Schema.String,
  payment_intent: maybe(Id),
  amount_total: maybe(Cents),
  currency: maybe(Schema.String),
  metadata: maybe(Metadata)
})

const Refund = Schema.Struct({
  id: StoredText,
  amount: Cents,
  currency: maybe(Schema.String),
  payment_intent: maybe(Id),
  status: maybe(Schema.String)
})

const Charge = Schema.Struct({
  amount_refunded: Cents,
  currency: maybe(Schema.String),
  payment_intent: maybe(Id),
  refunds: maybe(Schema.Struct({ data: Schema.Array(Refund) }))
})

const Dispute = Schema.Struct({
  id: StoredText,
  amount: Cents,
  currency: maybe(Schema.String),
  payment_intent: maybe(Id)
})

const Event = Schema.Struct({ id: StoredText, type: Schema.String, data: Schema.Struct({ object: Schema.Unknown }) })

type Read = Either.Either<ProcessorEvent, ParseResult.ParseError>

/** Reads a signed event. An event of an unknown type or in a currency other than USD becomes `Other`. */
const eventOf = (body: string): ProcessorEvent => {
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch {
    return { _tag: "Unreadable", field: "", rule: "must be a JSON document" }
  }
  return Schema.decodeUnknownEither(Event)(json).pipe(
    Either.flatMap(({ data: { object }, id, type }): Read => {
      const read = readers.get(type)
      return read === undefined ? Either.right({ _tag: "Other", id, type }) : read(object, { id, type })
    }),
    Either.getOrElse((error): ProcessorEvent => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      return { _tag: "Unreadable", field: issue?.path.join(".") ?? "", rule: issue?.message ?? "an event" }
    })
  )
}

type Named = Pick<Extract<ProcessorEvent, { _tag: "Other" }>, "id" | "type">

/** Creates the reader for one type of event. If `tell` returns `undefined`, the event becomes `Other`. */
const reader =
  <A, I>(schema: Schema.Schema<A, I>, tell: (object: A, event: Named) => ProcessorEvent | undefined) =>
  (object: unknown, event: Named): Read =>
    Schema.decodeUnknownEither(Schema.Struct({ data: Schema.Struct({ object: schema }) }))({ data: { object } }).pipe(
      Either.map(({ data }) => tell(data.object, event) ?? { _tag: "Other", ...event })
    )

const inUsd = ({ currency }: { readonly currency: string | null }) => currency === null || currency === "usd"

const session = reader(Session, ({ amount_total, metadata, mode, payment_intent, payment_status, ...rest }, event) => {
  const tenant_id = metadata?.["tenant_id"]
  const paid = mode === "payment" && payment_status === "paid" && rest.currency === "usd"
  if (!paid || tenant_id === undefined || payment_intent === null || amount_total === null) return undefined
  const payment = { payment_id: payment_intent, tenant_id, kind: "checkout", cents: amount_total, attempt: undefined }
  return { _tag: "Paid", ...event, paid: payment as Paid }
})

const moved = (payment_id: string | null, event: Named, all: ReadonlyArray<Moved>): ProcessorEvent | undefined =>
  payment_id === null ? undefined : { _tag: "Moved", ...event, payment_id, moved: all }

const refundMoved = ({ amount, id, status }: typeof Refund.Type): Moved => ({
  id,
  kind: "refund",
  cents: amount,
  returned: status === "failed" || status === "canceled"
})

const refund = reader(Refund, (object, event) =>
  inUsd(object) ? moved(object.payment_intent, event, [refundMoved(object)]) : undefined
)

const dispute = (returned: boolean) =>
  reader(Dispute, (object, event) => {
    const { amount: cents, id, payment_intent } = object
    return inUsd(object) ? moved(payment_intent, event, [{ id, kind: "dispute", cents, returned }]) : undefined
  })

const readers = new Map(
  Object.entries<(object: unknown, event: Named) => Read>({
    "payment_intent.succeeded": reader(Intent, ({ amount_received, currency, id, metadata }, event) => {
      const { attempt, kind, tenant_id } = metadata ?? {}
      if (tenant_id === undefined || currency !== "usd" || (kind !== "checkout" && kind !== "auto_reload"))
        return undefined
      return { _tag: "Paid", ...event, paid: { payment_id: id, tenant_id, kind, cents: amount_received, attempt } }
    }),
    "checkout.session.completed": session,
    // With payment methods that take days, the session completes before it is paid.
    "checkout.session.async_payment_succeeded": session,
    "charge.refunded": reader(Charge, (object, event) => {
      const { amount_refunded: cents, payment_intent, refunds } = object
      if (!inUsd(object) || payment_intent === null) return undefined
      const total: Moved = { id: payment_intent, kind: "total", cents, returned: false }
      return moved(payment_intent, event, [total, ...(refunds?.data ?? []).map(refundMoved)])
    }),
    "refund.created": refund,
    "refund.updated": refund,
    "refund.failed": refund,
    "charge.refund.updated": refund,
    // Opening a dispute moves no money and can be a mere inquiry, so only the movements count.
    "charge.dispute.funds_withdrawn": dispute(false),
    "charge.dispute.funds_reinstated": dispute(true)
  })
)
