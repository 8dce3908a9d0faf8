/** Counts the words of a text, each at a price. */
import { Context, Effect, Layer } from "effect"
import { Gate } from "../../../src/books/gate/Gate.ts"
import type { Claim } from "../../../src/books/gate/Gate.ts"
import { PriceVersions } from "../../../src/books/prices/PriceVersions.ts"
import { measuredOf } from "../../../src/calls/metered/Measured.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import { charge } from "../../../src/kernel/Price.ts"
import { WordPrice } from "./Settings.ts"

export interface WordsCall {
  readonly caller: Caller
  readonly text: string
  readonly beside?: Claim["beside"]
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const versions = yield* PriceVersions
  const price = yield* WordPrice

  const count = Effect.fnUntraced(function* ({ beside, caller, text }: WordsCall) {
    const words = text.split(" ").length
    const cost = charge([{ units: words, price }])
    const claim = {
      caller,
      usage_type: "tool",
      endpoint: "words",
      model: "words",
      provider: "toy",
      price: yield* versions.of([{ quantity: "units", unit: "word", price }]),
      most: cost,
      least: cost,
      beside
    } as const
    return yield* gate.meter(claim, (admission) =>
      admission.answer(measuredOf(cost, words, "toy"), (receipt) => ({ words, receipt }))
    )
  })

  return { count }
})

export class Words extends Context.Tag("test/toy/Words")<Words, Effect.Effect.Success<typeof make>>() {
  static readonly layer = Layer.effect(Words, make)
}
