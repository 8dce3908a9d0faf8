/** The operations of `Ledger`: each answers in its kind, and is refused with an error that holds data. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import type { CallFacts, CallOutcome } from "../../../src/app/entry/ledger.ts"
import {
  AccountExists,
  AccountInactive,
  AccountMissing,
  amountMax,
  BalanceTooLarge,
  Conflict,
  InsufficientCredits,
  InsufficientGiftable,
  Ledger,
  NotHeld
} from "../../../src/app/entry/ledger.ts"
import type { BillingAccountId } from "../../../src/kernel/Ids.ts"
import { verify } from "../../../src/app/Checks.ts"
import { layerMemory } from "../../../src/testing/LedgerLayer.ts"

const facts: CallFacts = {
  account_id: "acc_ada",
  tenant_id: "ten_ada",
  application_id: null,
  usage_type: "tool",
  endpoint: "work",
  model: "model",
  provider: "provider"
}
const outcome: CallOutcome = {
  cost: 4n,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 1,
  success: true,
  error_type: null,
  usage_source: "counted",
  latency_ms: 1
}
const own = { billing_account_id: "ada", tenant_id: "ten_ada", kind: "own", why: "own" } as const
const purchase = { account: "ada", amount: 10n, source: "purchase", reference: "pay_1" } as const
const call = { call: "call_1", sources: [own], least: 4n, most: 4n, run: "run_1", facts } as const
const returned = { source: "transfer_return", from: "ada", to: "ada", transfer: "trf_1" } as const

/** Two accounts, of which the first has credit. */
const funded = Effect.gen(function* () {
  const ledger = yield* Ledger
  yield* ledger.open({ account: "ada", tenant: "ten_ada" })
  yield* ledger.open({ account: "bob", tenant: "ten_bob" })
  yield* ledger.credit(purchase)
  yield* ledger.credit({ account: "ada", amount: 5n, source: "admin", reference: "gift", description: "a gift" })
  return ledger
})

describe("the operations of the ledger", () => {
  it.effect("charge a call that was released because its run had ended, once, with what is available", () =>
    Effect.gen(function* () {
      const ledger = yield* funded
      yield* ledger.reserve({ ...call, least: 12n, most: 12n })
      const release = { ...outcome, cost: 0n, success: false, error_type: "interrupted", usage_source: "none" } as const
      expect((yield* ledger.settle({ call: "call_1", outcome: release }))._tag).toBe("Settled")
      yield* ledger.reserve({ ...call, call: "call_2", least: 5n, most: 5n })
      const late = { call: "call_1", outcome: { ...outcome, cost: 12n } }
      expect(yield* ledger.settle(late)).toEqual({ _tag: "Settled", usage_id: "use_1", collected: 10n, balance: 5n })
      expect(yield* ledger.settle(late)).toEqual({ _tag: "AlreadySettled" })
      expect(yield* ledger.settle({ call: "call_1", outcome: release })).toEqual({ _tag: "AlreadySettled" })
      yield* ledger.settle({ call: "call_2", outcome })
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("answer each in its kind", () =>
    Effect.gen(function* () {
      const ledger = yield* funded
      expect((yield* ledger.escrow({ account: "ada", amount: 3n, transfer: "trf_1" })).balance).toBe(12n)
      const arrived = yield* ledger.endEscrow({
        source: "transfer_release",
        from: "ada",
        to: "bob",
        amount: 3n,
        transfer: "trf_1"
      })
      expect(arrived.balance).toBe(3n)
      const reserved = yield* ledger.reserve(call)
      expect([reserved.amount, reserved.source]).toEqual([4n, own])
      const settled = yield* ledger.settle({ call: "call_1", outcome })
      expect(settled).toEqual({ _tag: "Settled", usage_id: "use_1", collected: 4n, balance: 8n })
      expect(yield* ledger.settle({ call: "call_1", outcome })).toEqual({ _tag: "AlreadySettled" })
      const taken = yield* ledger.takeBack({ account: "ada", amount: 100n, reference: "pay_1" })
      expect([taken.taken, taken.balance]).toEqual([8n, 0n])
      const { records } = yield* ledger.entries("ada" as BillingAccountId, { page: 1, per_page: 10 })
      expect(records.map(({ description }) => description)).toEqual([
        "credit taken back",
        "work model",
        "transfer",
        "a gift",
        "credit"
      ])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("are refused with what a program wants to know", () =>
    Effect.gen(function* () {
      const ledger = yield* funded
      const refusals: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        ledger.credit({ ...purchase, account: "eve" }),
        ledger.credit({ ...purchase, amount: amountMax }),
        ledger.open({ account: "ada", tenant: "ten_ada" }),
        ledger.escrow({ account: "ada", amount: 16n, transfer: "trf_1" }),
        ledger.escrow({ account: "ada", amount: 11n, transfer: "trf_1" }),
        ledger.endEscrow({ ...returned, amount: 1n }),
        ledger.reserve({ ...call, least: 16n, most: 16n }),
        Effect.zipRight(ledger.setStatus({ account: "ada", status: "suspended" }), ledger.reserve(call))
      ]
      expect(yield* Effect.forEach(refusals, Effect.flip)).toEqual([
        new AccountMissing({ account: "eve" }),
        new BalanceTooLarge({ account: "ada" }),
        new AccountExists({ account: "ada" }),
        new InsufficientCredits({ available: 15n }),
        new InsufficientGiftable({ giftable: 10n }),
        new NotHeld({ account: "ada" }),
        new InsufficientCredits({ available: 15n }),
        new AccountInactive({ account: "ada" })
      ])
      // By tag, with money as it is kept.
      const available = yield* ledger.escrow({ account: "bob", amount: 1n, transfer: "trf_1" }).pipe(
        Effect.as(-1n),
        Effect.catchTag("InsufficientCredits", (refusal) => Effect.succeed(refusal.available))
      )
      expect(available).toBe(0n)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("stand or fall with the statements beside them", () =>
    Effect.gen(function* () {
      const ledger = yield* funded
      const found = { text: "SELECT 1", params: [], rows: 1 }
      const missing = { text: "SELECT 1 WHERE false", params: [], rows: 1 }
      expect((yield* ledger.credit(purchase, [found])).balance).toBe(25n)
      expect(yield* Effect.flip(ledger.credit(purchase, [found, missing]))).toEqual(new Conflict({ statement: 1 }))
      const ada = Option.getOrThrow(yield* ledger.account("ada" as BillingAccountId))
      expect([ada.giftable, ada.granted]).toEqual([20n, 5n])
    }).pipe(Effect.provide(layerMemory))
  )
})
