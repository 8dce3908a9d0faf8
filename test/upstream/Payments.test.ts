/** The processor's adapter, which is loaded by whoever first asks for something. */
import { Effect, Fiber, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { Payments } from "../../src/upstream/Payments.ts"

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
})
