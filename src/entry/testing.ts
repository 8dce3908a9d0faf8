/**
 * `tollgate/testing`: the property suite for a ledger of one's own, and what it is made of. It wants `fast-check`.
 *
 * A ledger that is an Effect layer of `Ledger` and `Writer`:
 *
 *     import { checkLedger, ofLayer } from "tollgate/testing"
 *     it("keeps its books", () => checkLedger({ make: ofLayer(MyLedger.layer) }))
 *
 * Any other ledger, as an object of three functions that give promises (`LedgerUnderTest`):
 *
 *     import { checkLedger } from "tollgate/testing"
 *     const make = async () => ({ submit: (postings) => …, account: (id) => …, entries: (id) => … })
 *     it("keeps its books", () => checkLedger({ make }))
 */
import "./contracts.ts"
export { apply, empty } from "../testing/LedgerModel.ts"
export type { Expected, ExpectedResult, ModelAccount, ModelEntry, Notebook } from "../testing/LedgerModel.ts"
export { InvariantBroken, invariants } from "../testing/LedgerProperties.ts"
export type { AccountView, Answer, EntryView, Invariant, LedgerUnderTest, View } from "../testing/LedgerProperties.ts"
export { amounts, checkLedger, ledgerSteps } from "../testing/LedgerStories.ts"
export type { LedgerStep, LedgerStory, SuiteOptions } from "../testing/LedgerStories.ts"
export { layerMemory, ofLayer } from "../testing/LedgerLayer.ts"
export { tell } from "../testing/Story.ts"
export type { Step, Telling } from "../testing/Story.ts"
export * from "./sandbox.ts"
