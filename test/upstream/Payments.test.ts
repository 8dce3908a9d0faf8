/** The processor's adapter, which is loaded by whoever first asks for something. */
import { Effect, Fiber, Redacted } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "vitest"
import { Payments } from "../../src/upstream/payments/Payments.ts"

const settings = {
  processor: "stripe",
  secret_key: Redacted.make("sk"),
  webhook_secret: Redacted.make("whsec"),
  return_url: "http://127.0.0.1/"
} as const

describe("the processor's adapter", () => {
  it("is there for everybody, though who loads it leaves meanwhile", async () => {
    const asked = Effect.gen(function* () {
      const port = (yield* Payments)!
      const first = yield* Effect.fork(port.event("{}", "", 0))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(first)
      return yield* port.event("{}", "", 0)
    })
    expect(await Effect.runPromise(Effect.provide(asked, Payments.layerStripe(settings as never)))).toBeUndefined()
  })

  it("takes no event whose time is no number", async () => {
    const { Stripe } = await import("stripe")
    const payload = "{}"
    const signature = new Stripe("sk").webhooks.generateTestHeaderString({
      payload,
      secret: "whsec",
      timestamp: Number.NaN
    })
    const asked = Effect.flatMap(Payments, (port) => port!.event(payload, signature.replace(/t=\d+/, "t=NaN"), 0))
    expect(await Effect.runPromise(Effect.provide(asked, Payments.layerStripe(settings as never)))).toBeUndefined()
  })

  // With U+0000 as its id a payment was credited, and `verify` found no ledger entry for it. No engine stores half a surrogate pair.
  it.each(["pi_\ud800", "pi_\0"])("refuses an event with an id that the books cannot store: %j", async (id) => {
    const { Stripe } = await import("stripe")
    const object = { id, amount_received: 500, currency: "usd", metadata: { tenant_id: "ten_1", kind: "checkout" } }
    const payload = JSON.stringify({ id: "evt_1", type: "payment_intent.succeeded", data: { object } })
    const signature = new Stripe("sk").webhooks.generateTestHeaderString({ payload, secret: "whsec", timestamp: 1 })
    const asked = Effect.flatMap(Payments, (port) => port!.event(payload, signature, 1_000))
    expect(await Effect.runPromise(Effect.provide(asked, Payments.layerStripe(settings as never)))).toMatchObject({
      _tag: "Unreadable",
      field: "data.object.id"
    })
  })

  // An earlier request of the same attempt may be under way (409): it may charge yet.
  it.each([
    [409, "invalid_request_error", "ProcessorSilent"],
    [400, "idempotency_error", "ProcessorSilent"],
    [400, "invalid_request_error", "ChargeDeclined"],
    [402, "card_error", "ChargeDeclined"]
  ])("takes a charge that was answered %i %s for %s", async (status, type, expected) => {
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify({ error: { type, message: "no" } }))
    })
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const order = { attempt: "pay_1", customer: "cus_1", tenant_id: "ten_1", method: "pm_1", cents: 500 }
    const charged = Effect.flatMap(Payments, (port) => Effect.flip(port!.charge(order))).pipe(
      Effect.provide(Payments.layerStripe({ ...settings, base_url }))
    )
    expect(await Effect.runPromise(charged)).toMatchObject({ _tag: expected })
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
})
