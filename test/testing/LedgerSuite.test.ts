/** The property suite for ledgers as its users run it: on this service's ledger, on another implementation, and on deliberately wrong ones. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { checkLedger, invariants, ofLayer } from "../../src/app/entry/testing.ts"
import type { LedgerUnderTest } from "../../src/app/entry/testing.ts"
import { verify } from "../../src/app/Checks.ts"
import { Ledger } from "../../src/books/ledger/Ledger.ts"
import { RollupLagMax } from "../../src/books/ledger/rows/RollupLag.ts"
import type { Writer } from "../../src/books/ledger/write/Writer.ts"
import * as transfers from "../../src/money/transfers/Checks.ts"
import { foreignLedger, limitMistakes, mistakes } from "./ForeignLedger.ts"
import type { Mistake } from "./ForeignLedger.ts"
import * as TestDatabase from "../support/database.ts"

/** The end of a mistake's shortest story, if it is always the same. */
const ends: Partial<Record<Mistake, RegExp>> = {
  "loses one of two updates at once": /no order of the 2 fits/,
  "gives more back than it holds": /it answered EscrowEnded .* instead of NotHeld /,
  "lets a suspended account pay": /it answered \w+ .* instead of AccountInactive /,
  "answers the cost as collected": /collected of Settled is \d+ but must be \d+/,
  "answers the balance as available": /available of InsufficientCredits is \d+ but must be \d+/,
  "answers the most as reserved": /amount of Reserved is \d+ but must be \d+/,
  "gives entries a wrong reference":
    /each movement has its entry: reference_id of entry \d+ of \w+ is purchase but must be pay_/,
  "gives a reservation back again when a settled call is released":
    /nothing is below zero|what is reserved is that of the/,
  "charges a call twice": /it answered Settled .* instead of AlreadySettled/,
  "spends giftable credit first": /granted credit is spent before giftable/,
  "pays an escrow twice": /it answered EscrowEnded .* instead of NotHeld /,
  "answers a missing account as one without credit": /instead of AccountMissing /
}

/** Stories of the ledger put credit into escrow without a transfer. */
const ofTransfers: ReadonlySet<string> = new Set(transfers.checks.map(({ name }) => name))

/** A ledger that is verified on close. */
const verified = <E>(layer: Layer.Layer<Ledger | Writer | SqlClient, E>): Promise<LedgerUnderTest> => {
  const looked = Effect.map(verify, (findings) => {
    expect(findings.filter(({ check }) => !ofTransfers.has(check))).toEqual([])
  })
  return ofLayer(Layer.provideMerge(Layer.scopedDiscard(Effect.addFinalizer(() => looked)), layer))()
}

/** A ledger whose clock moves only from month to month. */
const withMonths = async (make: (clock: Layer.Layer<never>) => Promise<LedgerUnderTest>): Promise<LedgerUnderTest> => {
  const shown = { now: Date.UTC(2026, 10, 20, 12) }
  const clock = Object.assign(Object.create(Clock.make()) as Clock.Clock, {
    currentTimeMillis: Effect.sync(() => shown.now),
    unsafeCurrentTimeMillis: () => shown.now
  })
  const ledger = await make(Layer.setClock(clock))
  const nextMonth = async () => {
    const date = new Date(shown.now)
    shown.now = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
  }
  return { ...ledger, nextMonth }
}

describe("the property suite for ledgers", () => {
  it("holds for this service's ledger", () =>
    checkLedger({ make: ofLayer(Layer.provideMerge(Ledger.layer, TestDatabase.layer)), stories: 30 }))

  // The second seed once found a call whose `enough` is more than a balance can be.
  it.each([undefined, 237381506])("holds for it with limits of keys and changing months (seed %s)", (seed) =>
    checkLedger({
      seed,
      make: () =>
        withMonths((clock) => {
          const sql = Layer.provide(TestDatabase.sql, clock)
          const writer = Layer.provide(TestDatabase.writer, [clock, Layer.succeed(RollupLagMax, 3)])
          const layer = Ledger.layer.pipe(Layer.provideMerge(writer), Layer.provideMerge(sql), Layer.merge(clock))
          return verified(layer)
        }),
      limits: true,
      stories: 30
    })
  )

  it("holds for it with the writer on its own thread", () =>
    checkLedger({
      make: async () => {
        const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
        const file = join(folder, "books.db")
        const layer = Ledger.layer.pipe(
          Layer.provideMerge(TestDatabase.writerAt(file)),
          Layer.provideMerge(TestDatabase.sqlAt(file))
        )
        const ledger = await ofLayer(layer)()
        const close = async () => {
          await ledger.close?.()
          await TestDatabase.drop(folder)
          rmSync(folder, { recursive: true, force: true })
        }
        return { ...ledger, close }
      },
      stories: 8
    }))

  // The second seed once found a call whose `enough` is more than a balance can be.
  it.each([undefined, -2027888790])("holds for another implementation, with 500 stories (seed %s)", async (seed) => {
    const said: Array<string> = []
    await checkLedger({ seed, make: async () => foreignLedger(), say: (sentence) => said.push(sentence) })
    expect(said).toEqual([expect.stringMatching(/^500 stories passed/)])
  })

  it.each(mistakes)("finds one that %s, with a short story", async (mistake) => {
    const failed: { readonly message: string; readonly steps: ReadonlyArray<string> } = await checkLedger({
      make: async () => foreignLedger(mistake),
      seed: 1
    }).then(
      () => expect.fail("it is not found"),
      (error) => error
    )
    expect(failed.message).toMatch(ends[mistake] ?? /^story \d+ of \d+ fails/)
    expect(failed.message).toMatch(/\n {2}1\. /)
    expect(failed.steps.length).toBeLessThanOrEqual(5)
  })

  // The second seed once found a balance above the largest credit.
  it.each([undefined, 543261654])("holds for another implementation with limits of keys (seed %s)", (seed) =>
    checkLedger({ seed, make: async () => foreignLedger(), limits: true, stories: 100 })
  )

  it.each(limitMistakes)("finds one that %s", async (mistake) => {
    const failed = await checkLedger({ make: async () => foreignLedger(mistake), limits: true, seed: 1 }).then(
      () => expect.fail("it is not found"),
      (error: Error) => error.message
    )
    expect(failed).toMatch(/limit|LimitReached|LimitSet|Reserved|Settled/)
  })

  it("describes a failure in sentences", async () => {
    const failed = await checkLedger({ make: async () => foreignLedger("charges a call twice"), seed: 1 }).catch(
      (error: Error) => error.message
    )
    expect(failed).toMatchInlineSnapshot(`
      "story 2 of 500 fails (in its shortest form; repeat it with seed 1):
        1. bob gets 1 (purchase)
        2. in one transaction: ada gets 1 (purchase); call_3 reserves 1 to 1 (1 is enough) from ada, else bob (team)
        3. concurrently: (1) call_3 is released; (2) call_3 ends at a cost of 1
      it answered Settled { usage_id: charge of call_3, collected: 1, balance: 0 } instead of AlreadySettled
      (no order of the 2 fits; this error is from the order 1, 2)"
    `)
  })

  it("names every invariant of the contract", () => {
    expect(Object.keys(invariants)).toEqual([
      "amounts are exact",
      "accounts are those that were opened",
      "a balance is the sum of its entries",
      "a balance is that of the last entry",
      "nothing is below zero",
      "what calls have reserved is within the balance",
      "what is reserved is that of the open calls",
      "held credit is that of the pending transfers",
      "a transfer pays out once",
      "a call is charged at most once",
      "credit is neither made nor lost",
      "granted credit is spent before giftable",
      "a status is the one that was set",
      "a limit holds what its key has spent and reserved",
      "each movement has its entry"
    ])
  })
})
