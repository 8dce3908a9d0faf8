/** Bookings of the sandbox's levers: the books balance, also for credit from a transfer. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { billingAccountOf } from "../../src/kernel/Ids.ts"
import { usd } from "../../src/kernel/Money.ts"
import { Ledger } from "../../src/books/ledger/Ledger.ts"
import { Jobs } from "../../src/calls/media/Jobs.ts"
import * as Levers from "../../src/sandbox/Levers.ts"
import { verify } from "../../src/app/Checks.ts"
import * as Scene from "../money/usage/Scene.ts"
import { acme } from "../money/usage/Scene.ts"

describe("a sandbox's credit", () => {
  it.effect("has the requested source, and the invariants hold", () =>
    Effect.gen(function* () {
      const levers = yield* Levers.make
      yield* Scene.open(acme)
      const sources = ["purchase", "admin", "transfer_release", "transfer_return"] as const
      for (const source of sources) expect(yield* levers.credit(acme, usd, source)).toBe(true)
      expect(yield* levers.credit("ten_nobody", usd, "transfer_release")).toBe(false)
      const ledger = yield* Ledger
      const { records } = yield* ledger.entries(billingAccountOf(acme), { page: 1, per_page: 10 })
      expect(records.map(({ amount, source, type }) => [type, amount, source])).toEqual(
        sources.toReversed().map((source) => ["credit", usd, source])
      )
      expect(records[0]!.reference_id).toMatch(/^sandbox_pay_/)
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Layer.merge(Scene.layer, Layer.succeed(Jobs, {} as Jobs["Type"]))))
  )
})
