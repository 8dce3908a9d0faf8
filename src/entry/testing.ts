/**
 * `tollgate/testing`: the property suite for a ledger of one's own, and what it is made of. It wants `fast-check`.
 *
 *     import { checkLedger, ofLayer } from "tollgate/testing"
 *     it("keeps its books", () => checkLedger({ make: ofLayer(MyLedger.layer) }))
 */
import "./contracts.ts"
export { apply, empty } from "../testing/LedgerModel.ts"
export type { Expected, Notebook, Purse } from "../testing/LedgerModel.ts"
export { amounts, checkLedger, deeds, InvariantBroken, invariants, people } from "../testing/LedgerProperties.ts"
export type {
  AccountView,
  Deed,
  EntryView,
  LedgerUnderTest,
  SuiteOptions,
  View,
  World
} from "../testing/LedgerProperties.ts"
export { layerMemory, ofLayer } from "../testing/LedgerLayer.ts"
export { tell } from "../testing/Story.ts"
export type { Step, Telling } from "../testing/Story.ts"
export * from "./sandbox.ts"
