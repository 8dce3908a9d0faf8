/**
 * A payment processor with Stripe's wire format: customers, checkout pages, stored methods, payments, and signed webhooks, as far as
 * the official library is used. Opening a checkout page pays it. What it knows outlives the process.
 */
import { Effect } from "effect"
import { createHmac, randomBytes } from "node:crypto"
import * as Kept from "./Kept.ts"
import { json, Refusal } from "./Outside.ts"
import type { Answer, Make, Received, Route } from "./Outside.ts"

export const webhookSecret = "whsec_sandbox"
const name = "sandbox-payments.json"

type Fields = Readonly<Record<string, string>>

interface Session {
  readonly id: string
  readonly mode: "payment" | "setup"
  readonly customer: string
  readonly cents: number
  readonly metadata: Fields
  readonly payment_metadata: Fields
  payment_intent: string | null
}

interface Event {
  readonly id: string
  readonly type: string
  readonly body: string
}

interface World {
  readonly customers: Record<string, { readonly metadata: Fields; methods: Array<string> }>
  readonly sessions: Record<string, Session>
  readonly payments: Record<string, { readonly intent: object; readonly cents: number }>
  /** What was answered to a request with this key. */
  readonly keys: Record<string, { readonly status: number; readonly body: string }>
  readonly events: Array<Event>
}

/** The cards that there are. Every customer has the one that declines. */
const cards: Readonly<Record<string, { readonly brand: string; readonly last4: string }>> = {
  pm_card_visa: { brand: "visa", last4: "4242" },
  pm_card_declined: { brand: "visa", last4: "0002" }
}

const error = (status: number, type: string, message: string, more: object = {}): Answer =>
  json(status, { error: { type, message, ...more } })

export const make: Make = ({ clock, data_dir, origin }) =>
  Effect.sync(() => {
    const kept = Kept.read(data_dir, name)
    const world: World =
      kept === undefined
        ? { customers: {}, sessions: {}, payments: {}, keys: {}, events: [] }
        : (JSON.parse(kept) as World)
    const keep = () => Kept.write(data_dir, name, JSON.stringify(world))
    const seconds = () => Math.floor(clock.now() / 1_000)
    const fresh = (prefix: string) => `${prefix}_${randomBytes(12).toString("hex")}`

    let deliverTo: string | undefined

    // ---- events -----------------------------------------------------------------------------------------------------------

    const happen = (type: string, object: object): Event => {
      const id = fresh("evt")
      const body = JSON.stringify({
        id,
        object: "event",
        api_version: "2025-01-01",
        created: seconds(),
        livemode: false,
        pending_webhooks: 1,
        request: null,
        type,
        data: { object }
      })
      const event = { id, type, body }
      world.events.push(event)
      return event
    }

    const deliver = async ({ body }: Event): Promise<number> => {
      if (deliverTo === undefined) return 0
      const timestamp = seconds()
      const signature = createHmac("sha256", webhookSecret).update(`${timestamp}.${body}`).digest("hex")
      const response = await fetch(deliverTo, {
        method: "POST",
        headers: { "content-type": "application/json", "stripe-signature": `t=${timestamp},v1=${signature}` },
        body
      }).catch(() => undefined)
      return response?.status ?? 0
    }

    /** On their way by themselves: nobody waits for them. */
    const send = (events: ReadonlyArray<Event>) => {
      keep()
      setImmediate(() => {
        for (const event of events) void deliver(event)
      })
    }

    // ---- payments -----------------------------------------------------------------------------------------------------------

    const pay = (customer: string, method: string, cents: number, metadata: Fields) => {
      const id = fresh("pi")
      const intent = {
        id,
        object: "payment_intent",
        amount: cents,
        amount_received: cents,
        currency: "usd",
        customer,
        payment_method: method,
        status: "succeeded",
        metadata,
        created: seconds()
      }
      world.payments[id] = { intent, cents }
      return intent
    }

    const charge = (body: URLSearchParams): Answer => {
      const customer = world.customers[body.get("customer") ?? ""]
      if (customer === undefined) return error(400, "invalid_request_error", "No such customer")
      const method = body.get("payment_method") ?? ""
      if (method !== "pm_card_declined" && !customer.methods.includes(method)) {
        return error(400, "invalid_request_error", `No such PaymentMethod: '${method}'`)
      }
      if (method === "pm_card_declined") {
        return error(402, "card_error", "Your card was declined.", {
          code: "card_declined",
          decline_code: "generic_decline"
        })
      }
      const intent = pay(body.get("customer")!, method, Number(body.get("amount")), nested(body, "metadata"))
      send([happen("payment_intent.succeeded", intent)])
      return json(200, intent)
    }

    const createSession = (body: URLSearchParams): Answer => {
      const mode = body.get("mode") === "setup" ? "setup" : "payment"
      const id = fresh("cs")
      const cents = Number(body.get("line_items[0][price_data][unit_amount]") ?? 0)
      world.sessions[id] = {
        id,
        mode,
        customer: body.get("customer") ?? "",
        cents: cents * Number(body.get("line_items[0][quantity]") ?? 1),
        metadata: nested(body, "metadata"),
        payment_metadata: nested(body, "payment_intent_data[metadata]"),
        payment_intent: null
      }
      keep()
      return json(200, { ...sessionShown(world.sessions[id]), url: `${origin}/payments-page/${id}` })
    }

    const sessionShown = (session: Session) => ({
      id: session.id,
      object: "checkout.session",
      mode: session.mode,
      customer: session.customer,
      amount_total: session.mode === "payment" ? session.cents : null,
      currency: "usd",
      metadata: session.metadata,
      payment_intent: session.payment_intent,
      payment_status:
        session.mode === "setup" ? "no_payment_required" : session.payment_intent === null ? "unpaid" : "paid",
      status: session.payment_intent === null ? "open" : "complete"
    })

    /** Whoever opens the page pays, with the card that always works. */
    const open = async ({ params }: Received): Promise<Answer> => {
      const session = world.sessions[params["id"] ?? ""]
      if (session === undefined) return page(404, "There is no such page.")
      const customer = world.customers[session.customer]
      if (customer !== undefined && !customer.methods.includes("pm_card_visa")) customer.methods.push("pm_card_visa")
      if (session.mode === "setup" || session.payment_intent !== null) {
        keep()
        return page(200, session.mode === "setup" ? "The card is stored." : "This was paid already.")
      }
      const intent = pay(session.customer, "pm_card_visa", session.cents, session.payment_metadata)
      session.payment_intent = intent.id
      const events = [
        happen("checkout.session.completed", sessionShown(session)),
        happen("payment_intent.succeeded", intent)
      ]
      keep()
      // A person is back when the word is: whoever looks then sees the credit.
      for (const event of events) await deliver(event)
      return page(200, `Paid ${(session.cents / 100).toFixed(2)} USD. You can close this page.`)
    }

    // ---- the API ------------------------------------------------------------------------------------------------------------

    /** Answers a request with a key once, and the same again. */
    const keyed =
      (answer: (body: URLSearchParams, received: Received) => Answer) =>
      (received: Received): Answer => {
        if (!/^bearer +sk_/i.test(received.headers.authorization ?? "")) {
          return error(401, "invalid_request_error", "You did not provide an API key.")
        }
        const key = received.headers["idempotency-key"]
        const known = typeof key === "string" ? world.keys[key] : undefined
        if (known !== undefined) {
          return { status: known.status, headers: { "content-type": "application/json" }, body: known.body }
        }
        const given = answer(new URLSearchParams(received.body.toString()), received)
        if (typeof key === "string" && "body" in given) {
          world.keys[key] = { status: given.status, body: String(given.body) }
          keep()
        }
        return given
      }

    const routes: ReadonlyArray<Route> = [
      {
        method: "POST",
        path: "/v1/customers",
        answer: keyed((body) => {
          const id = fresh("cus")
          world.customers[id] = { metadata: nested(body, "metadata"), methods: [] }
          keep()
          return json(200, { id, object: "customer", name: body.get("name"), metadata: world.customers[id].metadata })
        })
      },
      { method: "POST", path: "/v1/checkout/sessions", answer: keyed(createSession) },
      { method: "POST", path: "/v1/payment_intents", answer: keyed(charge) },
      {
        method: "GET",
        path: "/v1/payment_intents",
        answer: keyed((_, { query }) => {
          const since = Number(query.get("created[gte]") ?? 0)
          const data = Object.values(world.payments)
            .map(({ intent }) => intent as { readonly customer: string; readonly created: number })
            .filter(({ created, customer }) => customer === query.get("customer") && created >= since)
            .toReversed()
          return json(200, { object: "list", url: "/v1/payment_intents", has_more: false, data })
        })
      },
      {
        method: "GET",
        path: "/v1/payment_methods",
        answer: keyed((_, { query }) => {
          const customer = world.customers[query.get("customer") ?? ""]
          if (customer === undefined) return error(404, "invalid_request_error", "No such customer")
          const data = [...customer.methods, "pm_card_declined"].map((id) => ({
            id,
            object: "payment_method",
            type: "card",
            customer: query.get("customer"),
            card: { ...cards[id], exp_month: 12, exp_year: 2040 }
          }))
          return json(200, { object: "list", url: "/v1/payment_methods", has_more: false, data })
        })
      }
    ]

    const levers: ReadonlyArray<Route> = [
      { method: "GET", path: "/payments-page/{id}", answer: open },
      {
        method: "GET",
        path: "/control/webhooks",
        answer: () =>
          json(
            200,
            world.events.map(({ body, id, type }) => ({ id, type, event: JSON.parse(body) as unknown })).toReversed()
          )
      },
      {
        method: "POST",
        path: "/control/webhooks/{event_id}",
        answer: async ({ params }) => {
          const event = world.events.find(({ id }) => id === params["event_id"])
          if (event === undefined) throw new Refusal(json(404, { error: "event_id: there is no such event" }))
          return json(200, { event_id: event.id, status: await deliver(event) })
        }
      },
      {
        method: "POST",
        path: "/control/payments/{payment_id}/{what}",
        answer: async ({ params }) => {
          const payment = world.payments[params["payment_id"] ?? ""]
          const type = { refund: "charge.refunded", dispute: "charge.dispute.created", win: "charge.dispute.closed" }[
            params["what"] ?? ""
          ]
          if (payment === undefined || type === undefined) {
            throw new Refusal(
              json(404, { error: "payment_id: there is no such payment, or nothing like that happens" })
            )
          }
          const object =
            type === "charge.refunded"
              ? { id: fresh("ch"), payment_intent: params["payment_id"], amount_refunded: payment.cents }
              : {
                  id: `dp_${params["payment_id"]}`,
                  payment_intent: params["payment_id"],
                  amount: payment.cents,
                  status: type === "charge.dispute.closed" ? "won" : "needs_response"
                }
          const event = happen(type, object)
          keep()
          return json(200, { event_id: event.id, status: await deliver(event) })
        }
      }
    ]

    return {
      service: "payments",
      routes,
      levers,
      connect: (url) => {
        deliverTo = `${url}/v1/webhooks/stripe`
      },
      configuration: {
        payments: {
          processor: "stripe",
          secret_key: "sk_sandbox",
          webhook_secret: webhookSecret,
          base_url: origin,
          return_url: origin
        }
      }
    }
  })

const page = (status: number, text: string): Answer => ({
  status,
  headers: { "content-type": "text/html; charset=utf-8" },
  body: `<!doctype html><meta charset="utf-8"><title>Sandbox payments</title><p>${text}</p>`
})

/** The fields of a nested object in a form: `metadata[tenant_id]=…`. */
const nested = (body: URLSearchParams, prefix: string): Fields =>
  Object.fromEntries(
    [...body].flatMap(([key, value]) =>
      key.startsWith(`${prefix}[`) && key.endsWith("]") ? [[key.slice(prefix.length + 1, -1), value]] : []
    )
  )
