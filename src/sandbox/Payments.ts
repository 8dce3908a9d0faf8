/**
 * A payment processor with Stripe's wire format: customers, checkout pages, stored methods, payments, and signed webhooks, as far as
 * the official library is used. Opening a checkout page pays it. What it knows outlives the process.
 */
import { Effect, Schema } from "effect"
import { createHmac, randomBytes } from "node:crypto"
import * as Kept from "./Kept.ts"
import { json, reader, Refusal } from "./Outside.ts"
import type { Answer, Lever, Make, Received, Route } from "./Outside.ts"

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
  /** Where its page leads back to; a world that was kept by an earlier version has none. */
  readonly back?: string | null
  payment_intent: string | null
}

interface Event {
  readonly id: string
  readonly type: string
  readonly body: string
}

interface Intent {
  readonly id: string
  readonly customer: string
  readonly created: number
  readonly amount: number
  amount_received: number
  /** `processing`: by a method that takes days. */
  status: "succeeded" | "processing" | "requires_payment_method"
}

interface Refund {
  readonly id: string
  readonly cents: number
  failed: boolean
}

interface World {
  readonly customers: Record<string, { readonly metadata: Fields; methods: Array<string> }>
  readonly sessions: Record<string, Session>
  readonly payments: Record<string, { readonly intent: Intent; readonly cents: number; refunds?: Array<Refund> }>
  /** What was answered to a request with this key. */
  readonly keys: Record<string, { readonly status: number; readonly body: string }>
  readonly events: Array<Event>
  /** Events are listed, but not delivered. */
  held?: boolean
}

/** The cards that there are. Every customer has the one that declines. */
const cards: Readonly<Record<string, { readonly brand: string; readonly last4: string }>> = {
  pm_card_visa: { brand: "visa", last4: "4242" },
  pm_card_declined: { brand: "visa", last4: "0002" }
}

const error = (status: number, type: string, message: string, more: object = {}): Answer =>
  json(status, { error: { type, message, ...more } })

/** What a test says of what happens to a payment. */
interface Later {
  /** In cents; without it all that is left. */
  readonly amount: number | undefined
  readonly refund_id: string | undefined
}

const readHold = reader(Schema.Struct({ hold: Schema.Boolean }))
const readAgain = reader(Schema.Struct({ as_new: Schema.optional(Schema.Boolean) }))
const readLater = reader(
  Schema.Struct({
    /** In USD. */
    amount: Schema.optional(Schema.Number.pipe(Schema.positive())),
    refund_id: Schema.optional(Schema.String)
  })
)

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

    const deliver = async ({ body }: Pick<Event, "body">): Promise<number> => {
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
      if (world.held === true) return
      setImmediate(() => {
        for (const event of events) void deliver(event)
      })
    }

    /** One after the other; answers the status of the last, 0 where they are held back. */
    const sendNow = async (events: ReadonlyArray<Event>): Promise<number> => {
      keep()
      let status = 0
      if (world.held !== true) for (const event of events) status = await deliver(event)
      return status
    }

    // ---- payments -----------------------------------------------------------------------------------------------------------

    const pay = (customer: string, method: string, cents: number, metadata: Fields, delayed = false) => {
      const id = fresh("pi")
      const intent = {
        id,
        object: "payment_intent",
        amount: cents,
        amount_received: delayed ? 0 : cents,
        currency: "usd",
        customer,
        payment_method: method,
        status: delayed ? ("processing" as const) : ("succeeded" as const),
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
        back: body.get("success_url"),
        payment_intent: null
      }
      keep()
      return json(200, { ...sessionShown(world.sessions[id]), url: `${origin}/payments-page/${id}` })
    }

    const isPaid = ({ payment_intent }: Session) =>
      payment_intent !== null && world.payments[payment_intent]?.intent.status === "succeeded"

    const sessionShown = (session: Session) => ({
      id: session.id,
      object: "checkout.session",
      mode: session.mode,
      customer: session.customer,
      amount_total: session.mode === "payment" ? session.cents : null,
      currency: "usd",
      metadata: session.metadata,
      payment_intent: session.payment_intent,
      payment_status: session.mode === "setup" ? "no_payment_required" : isPaid(session) ? "paid" : "unpaid",
      status: session.payment_intent === null ? "open" : "complete"
    })

    /** Whoever opens the page pays, with the card that always works; with `?method=delayed` by one that takes days. */
    const open = async ({ params, query }: Received): Promise<Answer> => {
      const session = world.sessions[params["id"] ?? ""]
      if (session === undefined) return page(404, "There is no such page.")
      const customer = world.customers[session.customer]
      if (customer !== undefined && !customer.methods.includes("pm_card_visa")) customer.methods.push("pm_card_visa")
      if (session.mode === "setup" || session.payment_intent !== null) {
        keep()
        return page(200, session.mode === "setup" ? "The card is stored." : "This was paid already.", session.back)
      }
      const delayed = query.get("method") === "delayed"
      const intent = pay(session.customer, "pm_card_visa", session.cents, session.payment_metadata, delayed)
      session.payment_intent = intent.id
      const completed = happen("checkout.session.completed", sessionShown(session))
      // A person is back when the word is: whoever looks then sees the credit.
      await sendNow(delayed ? [completed] : [completed, happen("payment_intent.succeeded", intent)])
      const amount = (session.cents / 100).toFixed(2)
      return page(200, delayed ? `${amount} USD are on their way.` : `Paid ${amount} USD.`, session.back)
    }

    // ---- what happens to a payment later -----------------------------------------------------------------------------------

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
      amount_refunded: refunds.reduce((sum, one) => sum + (one.failed ? 0 : one.cents), 0),
      currency: "usd",
      payment_intent: id
    })

    /** The events of what happens to a payment, the one by which money moves last. `undefined`: nothing like that can happen. */
    const happenTo = (id: string, what: string, { amount, refund_id }: Later): ReadonlyArray<Event> | undefined => {
      const payment = world.payments[id]
      if (payment === undefined) return undefined
      const { cents, intent } = payment
      const refunds = (payment.refunds ??= [])
      const session = Object.values(world.sessions).find(({ payment_intent }) => payment_intent === id)
      const disputed = (type: string, status: string) => happen(type, disputeOf(id, amount ?? cents, status))
      switch (what) {
        case "refund": {
          const left = cents - refunds.reduce((sum, one) => sum + (one.failed ? 0 : one.cents), 0)
          const refund = { id: fresh("re"), cents: amount ?? left, failed: false }
          if (refund.cents <= 0 || refund.cents > left) return undefined
          refunds.push(refund)
          return [
            happen("refund.created", refundOf(id, refund)),
            happen("charge.refunded", chargeOf(id, cents, refunds))
          ]
        }
        case "refund_fail": {
          const refund = refunds.findLast((one) => !one.failed && (refund_id ?? one.id) === one.id)
          if (refund === undefined) return undefined
          refund.failed = true
          return [happen("refund.updated", refundOf(id, refund)), happen("refund.failed", refundOf(id, refund))]
        }
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
        case "fail": {
          if (intent.status !== "processing" || session === undefined) return undefined
          const settles = what === "settle"
          intent.status = settles ? "succeeded" : "requires_payment_method"
          intent.amount_received = settles ? intent.amount : 0
          return [
            happen(settles ? "payment_intent.succeeded" : "payment_intent.payment_failed", intent),
            happen(`checkout.session.async_payment_${settles ? "succeeded" : "failed"}`, sessionShown(session))
          ]
        }
        default:
          return undefined
      }
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
            .map(({ intent }) => intent)
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

    const levers: ReadonlyArray<Lever> = [
      {
        method: "GET",
        path: "/payments-page/{id}",
        does: "The page of a checkout_url or setup_url: opening it pays with pm_card_visa and stores that card",
        answer: open
      },
      {
        method: "GET",
        path: "/control/webhooks",
        does: "Lists the payment events, the newest first",
        answer: () =>
          json(
            200,
            world.events.map(({ body, id, type }) => ({ id, type, event: JSON.parse(body) as unknown })).toReversed()
          )
      },
      {
        method: "POST",
        path: "/control/webhooks",
        does: "Holds payment events back, or delivers new ones again as they happen",
        body: { hold: false },
        answer: ({ body }) => {
          world.held = readHold(body).hold
          keep()
          return json(200, { hold: world.held })
        }
      },
      {
        method: "POST",
        path: "/control/webhooks/{event_id}",
        does: "Delivers a payment event again; as_new: under an id of its own",
        body: { as_new: false },
        answer: async ({ body, params }) => {
          const event = world.events.find(({ id }) => id === params["event_id"])
          if (event === undefined) throw new Refusal(json(404, { error: "event_id: there is no such event" }))
          // The processor may tell the same twice, by two events.
          const again = body.length > 0 && readAgain(body).as_new === true
          const told = again ? { ...(JSON.parse(event.body) as object), id: fresh("evt") } : undefined
          return json(200, {
            event_id: event.id,
            status: await deliver(told === undefined ? event : { body: JSON.stringify(told) })
          })
        }
      },
      {
        method: "POST",
        path: "/control/payments/{payment_id}/{what}",
        does: "Brings about what happens to a payment later (refund, refund_fail, inquire, dispute, win, lose, settle, fail), and delivers its events",
        body: { amount: 1 },
        answer: async ({ body, params }) => {
          const { amount, refund_id } = body.length > 0 ? readLater(body) : {}
          const later = { amount: amount === undefined ? undefined : Math.round(amount * 100), refund_id }
          const events = happenTo(params["payment_id"] ?? "", params["what"] ?? "", later)
          const last = events?.at(-1)
          if (events === undefined || last === undefined) {
            throw new Refusal(
              json(404, { error: "payment_id: there is no such payment, or nothing like that happens" })
            )
          }
          const status = await sendNow(events)
          return json(200, { event_id: last.id, status, events: events.map(({ id, type }) => ({ id, type })) })
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
          base_url: origin
        }
      }
    }
  })

/** `back`: the address that its link leads to. */
const page = (status: number, text: string, back?: string | null): Answer => {
  const link = back === undefined || back === null ? "" : `<p><a href="${encodeURI(back)}">Back to the service</a></p>`
  const head = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">${looks}`
  return {
    status,
    headers: { "content-type": "text/html; charset=utf-8" },
    body: `${head}<title>Sandbox payments</title><h1>Sandbox payments</h1><p>${text}</p>${link}`
  }
}

const looks = `<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:15vh auto;padding:0 1rem}h1{font-size:1rem;opacity:.7}</style>`

/** The fields of a nested object in a form: `metadata[tenant_id]=…`. */
const nested = (body: URLSearchParams, prefix: string): Fields =>
  Object.fromEntries(
    [...body].flatMap(([key, value]) =>
      key.startsWith(`${prefix}[`) && key.endsWith("]") ? [[key.slice(prefix.length + 1, -1), value]] : []
    )
  )
