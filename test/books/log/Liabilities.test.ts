/** Proofs of liabilities: built once a day, resumed, recomputed by `verify`, and checked by customers. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { verify } from "../../../src/app/Checks.ts"
import { trialBalance } from "../../../src/books/ledger/audit/Invariants.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { ChargeLog } from "../../../src/books/log/ChargeLog.ts"
import { Liabilities } from "../../../src/books/log/Liabilities.ts"
import * as SumTree from "../../../src/books/log/SumTree.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { verifyLiability, verifyTotal } from "../../../src/money/receipts/LiabilityVerifier.ts"
import { isPostgres, trigger } from "../../support/database.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, other } from "../../money/usage/Scene.ts"
import { log } from "./LogScene.ts"

export const layer = Layer.fresh(Liabilities.layer).pipe(Layer.provideMerge(log), Layer.provideMerge(Scene.layer))

const build = Effect.flatMap(Liabilities, ({ build }) => build)
// On PostgreSQL, a gap of rows takes two turns.
const add = Effect.flatMap(ChargeLog, ({ add }) => Effect.zipRight(add, add))
const stated = (day?: string) => Effect.flatMap(Liabilities, ({ statement }) => statement(day))

const tenantNumbered = (n: number) => `ten_${String(n).padStart(5, "0")}` as TenantId

/** Tenants that each have their number as balance in nano-USD. */
const tenants = (count: number, from = 1) =>
  Effect.flatMap(Writer, ({ submit }) =>
    Effect.forEach(
      Array.from({ length: count }, (_, i) => from + i),
      (n) => {
        const tenant = tenantNumbered(n)
        const account = billingAccountOf(tenant)
        const credit = { amount: BigInt(n), source: "purchase", reference: `pay_${n}`, description: "" } as const
        return submit({
          postings: [
            { _tag: "Open", account, tenant },
            { _tag: "Credit", account, ...credit }
          ],
          statements: []
        })
      },
      { concurrency: 50, discard: true }
    )
  )

/** The verified proof of an account. */
const proven = (tenant: TenantId, day?: string) =>
  Effect.gen(function* () {
    const { proof } = yield* Liabilities
    const file = (yield* proof(billingAccountOf(tenant), (yield* stated(day))!))!
    const keys = yield* Effect.flatMap(ChargeLog, ({ keys }) => keys)
    return yield* Effect.promise(() => verifyLiability(file, keys))
  })

const total = (day?: string) =>
  Effect.gen(function* () {
    const { statement } = (yield* stated(day))!
    const keys = yield* Effect.flatMap(ChargeLog, ({ keys }) => keys)
    return yield* Effect.promise(() => verifyTotal(statement, keys))
  })

describe("the proof of liabilities", () => {
  it.scoped("has every balance at the end of the day, and each is in its total", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme, 1_000n)
      yield* Scene.tenant(other, 500n)
      yield* Scene.open("ten_empty" as TenantId)
      yield* Scene.call({ cost: 7n })
      yield* tenants(600)
      yield* Scene.now("2026-03-01T23:59:59.999Z")
      yield* Scene.call({ cost: 1n })
      const { customers } = yield* trialBalance
      yield* Scene.now("2026-03-02T00:00:00Z")
      // Calls after the end of the day, and a new account.
      yield* Scene.call({ cost: 100n })
      for (let i = 0; i < 70; i++) yield* Scene.call({ cost: 1n, tenant_id: other })
      yield* tenants(3, 9_000)
      yield* Scene.now("2026-03-02T00:00:59Z")
      yield* add
      yield* build
      expect((yield* stated())?.day).toBe("2026-02-28")
      yield* build
      expect(yield* stated("2026-03-01")).toBeUndefined()
      yield* Scene.now("2026-03-02T00:01:00Z")
      yield* build
      expect(yield* total()).toMatchObject({ day: "2026-03-01", total: customers, accounts: 602, entries: 604 })
      expect(yield* proven(acme)).toMatchObject({ account: "bil_acme", balance: 992n, entry: 3, total: customers })
      expect(yield* proven(other)).toMatchObject({ balance: 500n, entry: 1 })
      for (const n of [1, 253, 254, 255, 256, 511, 512, 600])
        expect(yield* proven(tenantNumbered(n))).toMatchObject({ balance: BigInt(n), entry: 1, accounts: 602 })
      const { proof } = yield* Liabilities
      expect(yield* proof("bil_empty", (yield* stated())!)).toBeUndefined()
      expect(yield* proof(billingAccountOf(tenantNumbered(9_000)), (yield* stated())!)).toBeUndefined()
      expect(yield* proof("bil_unknown", (yield* stated())!)).toBeUndefined()
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("is added for each day that was missed, and only once", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme, 1_000n)
      yield* add
      yield* build
      for (const day of [2, 3, 5]) {
        yield* Scene.now(`2026-03-0${day}T12:00:00Z`)
        yield* Scene.call({ cost: BigInt(day) })
      }
      yield* add
      yield* Scene.now("2026-03-06T00:10:00Z")
      for (let i = 0; i < 8; i++) yield* build
      const totals = []
      for (const day of [1, 2, 3, 4, 5]) totals.push((yield* total(`2026-03-0${day}`)).total)
      expect(totals).toEqual([1_000n, 998n, 995n, 995n, 990n])
      expect((yield* stated())?.day).toBe("2026-03-05")
      expect((yield* proven(acme, "2026-03-03")).entry).toBe(3)
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("waits until the log has every entry of the day", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme, 1_000n)
      yield* add
      yield* build
      yield* Scene.call({ cost: 3n })
      yield* Scene.now("2026-03-02T00:01:00Z")
      yield* build
      expect((yield* stated())?.day).toBe("2026-02-28")
      yield* add
      yield* build
      expect((yield* total()).total).toBe(997n)
    }).pipe(Effect.provide(layer))
  )

  it.scoped("is finished after a failure anywhere, by any node", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme, 1_000n)
      yield* add
      yield* build
      yield* tenants(5_000)
      yield* add
      const sql = yield* SqlClient
      const fail = isPostgres ? "RAISE EXCEPTION 'stopped';" : "SELECT RAISE(ABORT, 'stopped');"
      yield* Scene.now("2026-03-02T00:02:00Z")
      for (const [on, when] of [
        ["BEFORE INSERT ON tollgate_log_liability_blocks", "NEW.n = 3"],
        ["BEFORE INSERT ON tollgate_log_liability_blocks", "NEW.n = 17"],
        ["BEFORE UPDATE ON tollgate_log_liabilities", "true"]
      ] as const) {
        yield* trigger("stopped", { on, when, body: fail })
        expect(Exit.isFailure(yield* Effect.exit(build))).toBe(true)
        expect((yield* stated())?.day).toBe("2026-02-28")
        expect(yield* verify).toEqual([])
        yield* sql.unsafe(`DROP TRIGGER stopped${isPostgres ? ` ON ${on.split(" ").at(-1)}` : ""}`)
      }
      // Balances move on between the attempts.
      yield* Scene.call({ cost: 9n })
      const second = Context.get(yield* Layer.build(Layer.fresh(Liabilities.layer)), Liabilities)
      yield* Effect.all([build, second.build], { concurrency: "unbounded" })
      yield* build
      expect(yield* total()).toMatchObject({ accounts: 5_001, total: 1_000n + (5_000n * 5_001n) / 2n })
      expect(yield* proven(tenantNumbered(4_999))).toMatchObject({ balance: 4_999n })
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )
})

describe("a sum tree", () => {
  const nodes = (count: number) =>
    Array.from({ length: count }, (_, i): SumTree.SumNode => ({ hash: SumTree.leafHash(String(i)), sum: BigInt(i) }))

  it("has the same root over leaves and over blocks of leaves", () => {
    for (const count of [0, 1, 2, 3, 7, 255, 256, 257, 600, 1_024]) {
      const leaves = nodes(count)
      const blocks = Array.from({ length: Math.ceil(count / 256) }, (_, i) =>
        SumTree.rootOf(leaves.slice(256 * i, 256 * (i + 1)))
      )
      expect(SumTree.rootOf(blocks)).toEqual(SumTree.rootOf(leaves))
      for (const index of [0, 1, 255, 256, count - 1].filter((at) => at >= 0 && at < count)) {
        const block = Math.floor(index / 256)
        const within = SumTree.pathOf(leaves.slice(256 * block, 256 * (block + 1)), index % 256)
        expect([...within, ...SumTree.pathOf(blocks, block)]).toEqual(SumTree.pathOf(leaves, index))
      }
    }
  })

  it("has sums that no other tree has", () => {
    const [root, shifted] = [
      [5n, 7n],
      [6n, 6n]
    ].map((sums) => SumTree.rootOf(sums.map((sum) => ({ hash: SumTree.leafHash("x"), sum }))))
    expect(root!.sum).toBe(shifted!.sum)
    expect(Buffer.compare(root!.hash, shifted!.hash)).not.toBe(0)
    expect(SumTree.bytesOf({ hash: Buffer.alloc(32), sum: (1n << 100n) + 3n }).toString("hex")).toBe(
      `${"00".repeat(3)}10${"00".repeat(11)}03${"00".repeat(32)}`
    )
  })
})
