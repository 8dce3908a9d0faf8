/** The property suite as its users run it: on our ledger, on a second one, and on ones that are deliberately wrong. */
import { describe, expect, it } from "vitest"
import { checkLedger, invariants, layerMemory, ofLayer } from "../../src/entry/testing.ts"
import { secondLedger } from "./second.ts"
import type { Mistake } from "./second.ts"

describe("the property suite", () => {
  it("holds for the ledger of this service", () => checkLedger({ make: ofLayer(layerMemory), stories: 40 }))

  it("holds for a second ledger", () => checkLedger({ make: async () => secondLedger(), stories: 300 }))

  it.each<[Mistake, RegExp]>([
    ["gives back twice", /Settled, where AlreadySettled is due|charged twice|set aside/],
    ["spends gifts first", /granted credit is spent before giftable/],
    ["forgets what calls set aside", /where InsufficientCredits is due|set aside/],
    ["keeps what it held", /held credit|neither made nor lost/]
  ])("catches one that %s, with a story to read", async (mistake, words) => {
    const caught = await checkLedger({ make: async () => secondLedger(mistake), stories: 300, seed: 1 }).catch(
      (error: Error) => error
    )
    expect(caught).toBeInstanceOf(Error)
    const { message } = caught as Error
    expect(message).toMatch(words)
    // A few sentences, one a line.
    expect(message).toMatch(/\n {2}1\. (ada|bob|cyd) gets \d+ \(\w+\)\n/)
    expect(message.split("\n").length).toBeLessThan(12)
  })

  it("names every invariant of the contract", () => {
    expect(Object.keys(invariants)).toEqual([
      "a balance is the sum of its entries",
      "a balance is that of the last entry",
      "nothing is below zero",
      "what calls have set aside is within the balance",
      "what is set aside is that of the open calls",
      "held credit is that of the pending transfers",
      "a transfer pays out once",
      "a call is charged at most once",
      "credit is neither made nor lost",
      "granted credit is spent before giftable"
    ])
  })
})
