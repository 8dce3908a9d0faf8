/** The sandbox's payment processor, in Stripe's wire format. Opening a checkout page pays for it. Its state survives a restart. */
import { Effect, Schema } from "effect"
import { json, reader, Refusal } from "./Outside.ts"
import type { Lever, Make } from "./Outside.ts"
import { change } from "./PaymentChanges.ts"
import { openPage, routes } from "./PaymentRoutes.ts"
import { deliver, deliverNow, newId, open, webhookSecret } from "./PaymentWorld.ts"
import type { Processor } from "./PaymentWorld.ts"

const readHold = reader(Schema.Struct({ hold: Schema.Boolean }))
const readAgain = reader(Schema.Struct({ as_new: Schema.optional(Schema.Boolean) }))
const readChange = reader(
  Schema.Struct({
    /** The amount in USD. */
    amount: Schema.optional(Schema.Number.pipe(Schema.positive())),
    refund_id: Schema.optional(Schema.String)
  })
)

export const make: Make = (surroundings) =>
  Effect.sync(() => {
    const processor = open(surroundings)
    return {
      routes: routes(processor),
      levers: [
        {
          method: "GET",
          path: "/payments-page/{id}",
          does: "Shows the page of a checkout_url or setup_url. Opening it pays with pm_card_visa and stores that card",
          answer: (received) => openPage(processor, received)
        },
        ...webhookLevers(processor),
        paymentLever(processor)
      ],
      connect: (url) => {
        processor.webhook = `${url}/v1/webhooks/stripe`
      },
      configuration: {
        payments: {
          processor: "stripe",
          secret_key: "sk_sandbox",
          webhook_secret: webhookSecret,
          base_url: processor.origin
        }
      }
    }
  })

const webhookLevers = (processor: Processor): ReadonlyArray<Lever> => {
  const { save, world } = processor
  return [
    {
      method: "GET",
      path: "/control/webhooks",
      does: "Lists the payment events, newest first",
      answer: () =>
        json(
          200,
          world.events.map(({ body, id, type }) => ({ id, type, event: JSON.parse(body) as unknown })).toReversed()
        )
    },
    {
      method: "POST",
      path: "/control/webhooks",
      does: "Holds payment events back, or resumes the delivery of new ones",
      body: { hold: false },
      answer: ({ body }) => {
        world.held = readHold(body).hold
        save()
        return json(200, { hold: world.held })
      }
    },
    {
      method: "POST",
      path: "/control/webhooks/{event_id}",
      does: "Delivers a payment event again; with as_new, under a new id",
      body: { as_new: false },
      answer: async ({ body, params }) => {
        const event = world.events.find(({ id }) => id === params["event_id"])
        if (event === undefined) throw new Refusal(json(404, { error: "event_id: there is no such event" }))
        // A processor can report one fact in two events.
        const isNew = body.length > 0 && readAgain(body).as_new === true
        const sent = isNew
          ? { body: JSON.stringify({ ...(JSON.parse(event.body) as object), id: newId("evt") }) }
          : event
        return json(200, { event_id: event.id, status: await deliver(processor, sent) })
      }
    }
  ]
}

const paymentLever = (processor: Processor): Lever => ({
  method: "POST",
  path: "/control/payments/{payment_id}/{what}",
  does: "Changes a payment (refund, refund_fail, inquire, dispute, win, lose, settle, fail) and delivers the events",
  body: { amount: 1 },
  answer: async ({ body, params }) => {
    const { amount, refund_id } = body.length > 0 ? readChange(body) : {}
    const details = { amount: amount === undefined ? undefined : Math.round(amount * 100), refund_id }
    const events = change(processor, params["payment_id"] ?? "", params["what"] ?? "", details)
    const last = events?.at(-1)
    if (events === undefined || last === undefined) {
      throw new Refusal(json(404, { error: "payment_id: there is no such payment, or this change is not possible" }))
    }
    const status = await deliverNow(processor, events)
    return json(200, { event_id: last.id, status, events: events.map(({ id, type }) => ({ id, type })) })
  }
})
