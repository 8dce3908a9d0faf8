/** Receipts as a function: when there is one, and for whom. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ChargeLog } from "../../../src/books/log/ChargeLog.ts"
import { Liabilities } from "../../../src/books/log/Liabilities.ts"
import { Receipts } from "../../../src/money/receipts/Receipts.ts"
import { read, verify } from "../../../src/money/receipts/Verifier.ts"
import { layer as scene } from "../../books/log/LogScene.ts"
import * as Scene from "../usage/Scene.ts"
import { acme, other } from "../usage/Scene.ts"

const layer = Receipts.layer.pipe(Layer.provide(Liabilities.layer), Layer.provideMerge(scene))

const of = (tenant_id: typeof acme, usage_id: string) =>
  Effect.flatMap(Receipts, (receipts) => receipts.ofCharge({ caller: { tenant_id }, usage_id }))

const numbered = (tenant_id: typeof acme, number: number) =>
  Effect.flatMap(Receipts, (receipts) => receipts.ofEntry({ tenant_id, number }))

describe("receipts", () => {
  it.scoped("are refused until the entry is in the log, with the time to wait", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      const usage_id = yield* Scene.call({ cost: 5n })
      const refusals = [
        yield* Effect.flip(of(acme, usage_id)),
        yield* Effect.flip(numbered(acme, 1)),
        yield* Effect.flip(numbered(acme, 2))
      ]
      for (const refusal of refusals) expect(refusal).toMatchObject({ _tag: "NotInLog", status: 404, retry_after: 2 })
      const { add, keys } = yield* ChargeLog
      yield* add
      const receipt = yield* of(acme, usage_id)
      expect(yield* numbered(acme, 2)).toEqual(receipt)
      const trusted = yield* keys
      const { entry } = yield* Effect.promise(() => verify(read(JSON.stringify(receipt)), trusted))
      expect(entry).toMatchObject({ account: "bil_acme", number: 2, amount: 5n, reference: usage_id, type: "debit" })
      expect((yield* Effect.flip(numbered(acme, 3)))._tag).toBe("EntryNotFound")
      expect((yield* Effect.flip(numbered(other, 1)))._tag).toBe("EntryNotFound")
    }).pipe(Effect.provide(layer))
  )

  it.scoped("show the payer's balance to the payer alone", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      yield* Scene.tenant(other)
      const paid = yield* Scene.call({ cost: 5n, tenant_id: other, payer: acme })
      const free = yield* Scene.call({ cost: 0n })
      yield* Effect.flatMap(ChargeLog, ({ add }) => add)
      expect((yield* of(acme, paid)).leaf).toContain('account "bil_acme"')
      expect((yield* Effect.flip(of(other, paid)))._tag).toBe("PaidByAnother")
      expect((yield* Effect.flip(of(other, free)))._tag).toBe("UsageNotFound")
      expect((yield* Effect.flip(of(acme, free)))._tag).toBe("NothingCharged")
    }).pipe(Effect.provide(layer))
  )
})
