/** A factor on prices: it is in the charge, in the bound, in the version of the price and in the explanation. List prices do not change. */
import { expect, layer } from "@effect/vitest"
import { Effect, Either, Layer, Schema } from "effect"
import { describe, it } from "vitest"
import { PriceFactor, PriceFactors } from "../../../src/books/prices/PriceFactors.ts"
import { Chat } from "../../../src/calls/chat/Chat.ts"
import { withFactor } from "../../../src/calls/prompts/Factor.ts"
import { linesOf, Models } from "../../../src/calls/prompts/Model.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Explanations } from "../../../src/money/usage/Explanations.ts"
import { booksOf, over, person } from "../../support/Called.ts"
import { smallModel as small } from "../../support/SmallModel.ts"

const factorOf = Schema.decodeSync(PriceFactor)

const dear = withFactor({ ...small, id: "dear" }, factorOf("1.5"))
/** Two words, and two again. */
const cost = 2n + 2n * 10n

const byTenant = new Map<string, PriceFactor>()
const all = ["2", "1.15", "0.8"].map((text) => factorOf(text))
const factors = Layer.succeed(PriceFactors, { of: (tenant: string) => byTenant.get(tenant), all })
const room = Layer.merge(Chat.layer, Explanations.layer).pipe(
  Layer.provide(Layer.succeed(Models, { models: [small, dear], auto: undefined }))
)

/** A call of a person at a factor, explained. */
const called = (model: string, factor?: string) =>
  Effect.gen(function* () {
    const caller = yield* person(usd)
    const at = all.find(({ text }) => text === factor)
    if (at !== undefined) byTenant.set(caller.tenant_id, at)
    const chat = yield* Chat
    const prompt = { model, messages: [{ role: "user", content: "hello there" }], max_tokens: 50 } as const
    const { receipt } = yield* chat.complete({ caller, prompt })
    const explanation = yield* Effect.flatMap(Explanations, ({ of }) => of({ caller, usage_id: receipt.usage_id }))
    expect((yield* booksOf(caller)).findings).toEqual([])
    expect(receipt.balance).toBe(usd - receipt.charged)
    expect(explanation.computed_usd).toBe(receipt.charged)
    return { charged: receipt.charged, explanation }
  })

layer(over(room, "chat-a/v1", factors), { excludeTestServices: true })("a price factor", (it) => {
  it.effect("leaves calls of others at list price, and their version as it was", () =>
    Effect.gen(function* () {
      const { charged, explanation } = yield* called("small")
      expect(charged).toBe(cost)
      expect(explanation.price).not.toHaveProperty("factors")
    })
  )

  it.effect("is in the charge, the bound, the version and the explanation", () =>
    Effect.gen(function* () {
      const list = yield* called("small")
      const twice = yield* called("small", "2")
      expect(twice.charged).toBe(2n * cost)
      expect(twice.explanation.reserved_usd).toBe(2n * list.explanation.reserved_usd)
      expect(twice.explanation.price).toMatchObject({
        factors: ["2"],
        lines: [
          { quantity: 2, unit_price_usd: "0.000000002", amount_usd: "0.000000004" },
          { quantity: 2, unit_price_usd: "0.00000002", amount_usd: "0.00000004" }
        ]
      })
      expect(twice.explanation.price?.version).not.toBe(list.explanation.price?.version)
    })
  )

  it.effect("is applied before the one rounding", () =>
    Effect.gen(function* () {
      // 2 at 1.15 and 2 at 11.5: 25.3.
      expect((yield* called("small", "1.15")).charged).toBe(25n)
    })
  )

  it.effect("of a model and that of a tenant multiply", () =>
    Effect.gen(function* () {
      expect((yield* called("dear")).charged).toBe(33n)
      const { charged, explanation } = yield* called("dear", "0.8")
      // 22 at 1.5 and 0.8: 26.4.
      expect(charged).toBe(26n)
      expect(explanation.price?.factors).toEqual(["1.5", "0.8"])
    })
  )
})

describe("a factor in the configuration", () => {
  it.each(["1.15", 1.15, "0.000001", "1000", "2e-1"])("may be %s", (literal) => {
    expect(Schema.decodeEither(PriceFactor)(literal)).toMatchObject({ _tag: "Right" })
  })

  it.each(["0", "-1", "1.1234567", "1000.1", "x", ""])("may not be %s", (literal) => {
    expect(Either.isLeft(Schema.decodeEither(PriceFactor)(literal))).toBe(true)
  })

  it("that is 1 changes nothing", () => {
    expect(linesOf(withFactor(small, factorOf("1.00")))).toBe(linesOf(small))
  })
})
