/** The payment processor's routes that its official library calls: customers, checkout, payments and stored payment methods. */
import { json } from "./Outside.ts"
import type { Answer, Received, Route } from "./Outside.ts"
import { addEvent, deliverLater, deliverNow, newId } from "./PaymentWorld.ts"
import type { CheckoutSession, Fields, Intent, Processor } from "./PaymentWorld.ts"

/** The two cards. Every customer has the declined card, and opening a checkout page stores the other card. */
const cards: Readonly<Record<string, { readonly brand: string; readonly last4: string }>> = {
  pm_card_visa: { brand: "visa", last4: "4242" },
  pm_card_declined: { brand: "visa", last4: "0002" }
}

export const routes = (processor: Processor): ReadonlyArray<Route> => {
  const on = (method: Route["method"], path: string, answer: Handler): Route => ({
    method,
    path,
    answer: (received) => keyed(processor, received, answer)
  })
  return [
    on("POST", "/v1/customers", createCustomer),
    on("POST", "/v1/checkout/sessions", createSession),
    on("POST", "/v1/payment_intents", charge),
    on("GET", "/v1/payment_intents", listPayments),
    on("GET", "/v1/payment_methods", listMethods)
  ]
}

type Handler = (processor: Processor, body: URLSearchParams, received: Received) => Answer

/** Checks the API key, and repeats the first response for requests with the same idempotency key. */
const keyed = (processor: Processor, received: Received, handler: Handler): Answer => {
  const { save, world } = processor
  if (!/^bearer +sk_/i.test(received.headers.authorization ?? "")) {
    return error(401, "invalid_request_error", "You did not provide an API key.")
  }
  const key = received.headers["idempotency-key"]
  const known = typeof key === "string" ? world.keys[key] : undefined
  if (known !== undefined) {
    return { status: known.status, headers: { "content-type": "application/json" }, body: known.body }
  }
  const answer = handler(processor, new URLSearchParams(received.body.toString()), received)
  if (typeof key === "string" && "body" in answer) {
    world.keys[key] = { status: answer.status, body: String(answer.body) }
    save()
  }
  return answer
}

const error = (status: number, type: string, message: string, more: object = {}): Answer =>
  json(status, { error: { type, message, ...more } })

const createCustomer: Handler = ({ save, world }, body) => {
  const id = newId("cus")
  world.customers[id] = { metadata: nested(body, "metadata"), methods: [] }
  save()
  return json(200, { id, object: "customer", name: body.get("name"), metadata: world.customers[id].metadata })
}

const createSession: Handler = (processor, body) => {
  const { origin, save, world } = processor
  const id = newId("cs")
  const cents = Number(body.get("line_items[0][price_data][unit_amount]") ?? 0)
  world.sessions[id] = {
    id,
    mode: body.get("mode") === "setup" ? "setup" : "payment",
    customer: body.get("customer") ?? "",
    cents: cents * Number(body.get("line_items[0][quantity]") ?? 1),
    metadata: nested(body, "metadata"),
    payment_metadata: nested(body, "payment_intent_data[metadata]"),
    back: body.get("success_url"),
    payment_intent: null
  }
  save()
  return json(200, { ...sessionShown(processor, world.sessions[id]), url: `${origin}/payments-page/${id}` })
}

export const sessionShown = ({ world }: Processor, session: CheckoutSession) => {
  const { payment_intent } = session
  const isPaid = payment_intent !== null && world.payments[payment_intent]?.intent.status === "succeeded"
  return {
    id: session.id,
    object: "checkout.session",
    mode: session.mode,
    customer: session.customer,
    amount_total: session.mode === "payment" ? session.cents : null,
    currency: "usd",
    metadata: session.metadata,
    payment_intent,
    payment_status: session.mode === "setup" ? "no_payment_required" : isPaid ? "paid" : "unpaid",
    status: payment_intent === null ? "open" : "complete"
  }
}

const pay = (
  { seconds, world }: Processor,
  customer: string,
  method: string,
  cents: number,
  metadata: Fields,
  delayed = false
): Intent => {
  const id = newId("pi")
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

const charge: Handler = (processor, body) => {
  const customer = processor.world.customers[body.get("customer") ?? ""]
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
  const intent = pay(processor, body.get("customer")!, method, Number(body.get("amount")), nested(body, "metadata"))
  deliverLater(processor, [addEvent(processor, "payment_intent.succeeded", intent)])
  return json(200, intent)
}

const listPayments: Handler = ({ world }, _, { query }) => {
  const since = Number(query.get("created[gte]") ?? 0)
  const data = Object.values(world.payments)
    .map(({ intent }) => intent)
    .filter(({ created, customer }) => customer === query.get("customer") && created >= since)
    .toReversed()
  return json(200, { object: "list", url: "/v1/payment_intents", has_more: false, data })
}

const listMethods: Handler = ({ world }, _, { query }) => {
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
}

/** Returns the fields of a nested object in a form, such as `metadata[tenant_id]=…`. */
const nested = (body: URLSearchParams, prefix: string): Fields =>
  Object.fromEntries(
    [...body].flatMap(([key, value]) =>
      key.startsWith(`${prefix}[`) && key.endsWith("]") ? [[key.slice(prefix.length + 1, -1), value]] : []
    )
  )

/** Shows the checkout page. Opening it pays with the card that always works or, with `?method=delayed`, by a method that takes days. */
export const openPage = async (processor: Processor, { params, query }: Received): Promise<Answer> => {
  const { save, world } = processor
  const session = world.sessions[params["id"] ?? ""]
  if (session === undefined) return page(404, "This page does not exist.")
  const customer = world.customers[session.customer]
  if (customer !== undefined && !customer.methods.includes("pm_card_visa")) customer.methods.push("pm_card_visa")
  if (session.mode === "setup" || session.payment_intent !== null) {
    save()
    return page(200, session.mode === "setup" ? "The card is stored." : "This has already been paid.", session.back)
  }
  const delayed = query.get("method") === "delayed"
  const intent = pay(processor, session.customer, "pm_card_visa", session.cents, session.payment_metadata, delayed)
  session.payment_intent = intent.id
  const completed = addEvent(processor, "checkout.session.completed", sessionShown(processor, session))
  const events = delayed ? [completed] : [completed, addEvent(processor, "payment_intent.succeeded", intent)]
  // Respond only after the events are delivered, so that the credit is booked when the person returns.
  await deliverNow(processor, events)
  const amount = (session.cents / 100).toFixed(2)
  return page(200, delayed ? `${amount} USD is on its way.` : `Paid ${amount} USD.`, session.back)
}

const style = `<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:15vh auto;padding:0 1rem}h1{font-size:1rem;opacity:.7}</style>`

/** Builds a page. `back` is the target of the page's link. */
const page = (status: number, text: string, back?: string | null): Answer => {
  const link = back === undefined || back === null ? "" : `<p><a href="${encodeURI(back)}">Back to the service</a></p>`
  const head = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">${style}`
  return {
    status,
    headers: { "content-type": "text/html; charset=utf-8" },
    body: `${head}<title>Sandbox payments</title><h1>Sandbox payments</h1><p>${text}</p>${link}`
  }
}
