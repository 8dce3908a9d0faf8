/** The property suite for transfers, on this service's, on another implementation, and on deliberately wrong ones. */
import { Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { checkTransfers, layerTransfers, transfersOfLayer } from "../../src/app/entry/testing.ts"
import { Ledger } from "../../src/books/ledger/Ledger.ts"
import { foreignTransfers, mistakes } from "./ForeignTransfers.ts"
import type { Mistake } from "./ForeignTransfers.ts"
import * as TestDatabase from "../support/database.ts"

/** The end of a mistake's shortest story, if it is always the same. */
const ends: Partial<Record<Mistake, RegExp>> = {
  "pays twice when it is accepted twice at once": /a transfer pays out once|nothing is below zero/,
  "makes a second transfer for a key that was used": /Create/,
  "sends from a suspended account": /instead of BillingAccountInactive/,
  "answers the balance as giftable": /giftable of TransferInsufficientGiftable is \d+ but must be \d+/,
  "lets anybody accept": /instead of EmailMismatch/,
  "lets a declined transfer be accepted": /instead of TransferNotPending .*state: declined/
}

const over = (database: typeof TestDatabase.layer) =>
  layerTransfers.pipe(Layer.provideMerge(Ledger.layer), Layer.provideMerge(database))

describe("the property suite for transfers", () => {
  it("holds for this service's transfers", () =>
    checkTransfers({ make: transfersOfLayer(over(TestDatabase.layer)), stories: 25 }))

  it("holds for them with the writer on its own thread", () =>
    checkTransfers({
      make: async (clock) => {
        const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
        const file = join(folder, "books.db")
        const layer = over(Layer.provideMerge(TestDatabase.writerAt(file), TestDatabase.sqlAt(file)))
        const transfers = await transfersOfLayer(layer)(clock)
        const close = async () => {
          await transfers.close?.()
          await TestDatabase.drop(folder)
          rmSync(folder, { recursive: true, force: true })
        }
        return { ...transfers, close }
      },
      stories: 6
    }))

  it("holds for another implementation", () => checkTransfers({ make: foreignTransfers(), stories: 200 }))

  it.each(mistakes)("finds one that %s, with a short story", async (mistake) => {
    const failed: { readonly message: string; readonly steps: ReadonlyArray<string> } = await checkTransfers({
      make: foreignTransfers(mistake),
      seed: 1
    }).then(
      () => expect.fail("it is not found"),
      (error) => error
    )
    expect(failed.message).toMatch(ends[mistake] ?? /^story \d+ of \d+ fails/)
    expect(failed.steps.length).toBeLessThanOrEqual(5)
  })

  it("describes a failure in sentences", async () => {
    const make = foreignTransfers("returns what is accepted at the same time")
    const failed = await checkTransfers({ make, seed: 1 }).catch((error: Error) => error.message)
    expect(failed).toMatchInlineSnapshot(`
      "story 1 of 60 fails (in its shortest form; repeat it with seed 1):
        1. ada gets 0.01 (purchase)
        2. ada sends 0.01 to bob (gift with a message)
        3. concurrently: (1) bob accepts #1; (2) bob accepts #1
      nothing is below zero: ada@example.com has a negative amount
      (no order of the 2 fits; this error is from the order 1, 2)"
    `)
  })
})
