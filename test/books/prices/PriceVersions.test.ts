/** Prices that charges were made by, found again by their versions. */
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import type { PriceLine } from "../../../src/books/prices/Lines.ts"
import { PriceVersions } from "../../../src/books/prices/PriceVersions.ts"
import * as TestDatabase from "../../support/database.ts"

const line = (quantity: PriceLine["quantity"], price: bigint, above?: number): PriceLine => ({
  quantity,
  unit: "token",
  price: price as UnitPrice,
  ...(above !== undefined && { above })
})

layer(Layer.provideMerge(PriceVersions.layer, TestDatabase.layer))("the version of a price", (it) => {
  it.effect("has its lines, those for longer prompts too", () =>
    Effect.gen(function* () {
      const { find, of } = yield* PriceVersions
      const lines = [line("prompt_tokens", 10n ** 15n), line("cached_tokens", 1n), line("prompt_tokens", 7n, 200_000)]
      const version = yield* of(lines)
      expect(yield* find(version)).toEqual(lines)
      expect(yield* of(lines)).toBe(version)
      expect(yield* of(lines.slice(0, 2))).not.toBe(version)
      expect(yield* find("nothing")).toBe(undefined)
    })
  )

  it.effect("is the one that it always was where nothing is billed apart", () =>
    Effect.gen(function* () {
      const { of } = yield* PriceVersions
      const text =
        '[{"quantity":"prompt_tokens","unit":"token","price":"150"},{"quantity":"completion_tokens","unit":"token","price":"600"}]'
      const expected = createHash("sha256").update(text).digest("hex").slice(0, 16)
      expect(yield* of([line("prompt_tokens", 150n), line("completion_tokens", 600n)])).toBe(expected)
    })
  )
})
