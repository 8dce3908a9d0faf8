/**
 * `tollgate/testing`: the property suites for a ledger and for transfers of one's own, and what they are made of. They want `fast-check`.
 *
 * A ledger that is an Effect layer of `Ledger` and `Writer`, and transfers that are one of `Transfers`, `Tenants` and `Ledger`:
 *
 *     import { checkLedger, checkTransfers, ofLayer, transfersOfLayer } from "tollgate/testing"
 *     it("keeps its books", () => checkLedger({ make: ofLayer(MyLedger.layer) }))
 *     it("loses no credit", () => checkTransfers({ make: transfersOfLayer(MyTransfers.layer) }))
 *
 * Any others, as objects of functions that give promises (`LedgerUnderTest`, `TransfersUnderTest`):
 *
 *     import { checkLedger, checkTransfers } from "tollgate/testing"
 *     const ledger = async () => ({ submit: (postings) => …, account: (id) => …, entries: (id) => … })
 *     it("keeps its books", () => checkLedger({ make: ledger }))
 *     const transfers = async ({ now }) => ({ create: (email, order) => …, accept: (email, id) => …, … })
 *     it("loses no credit", () => checkTransfers({ make: transfers }))
 *
 * With `limits: true` a ledger is asked to limit what keys spend (`SetLimit`), and with `nextMonth` months change. A ledger that lacks what
 * is ours alone says so, and which amount is its largest:
 *
 *     checkLedger({ make: ledger, without: ["limits", "teams", "escrow"], amountMax: 1_000_000_000_000n })
 *
 * Both make a fresh one for each story, do many operations at once, and reject with the shortest story that fails. `stories` and
 * `length` say how much is tried, `seed` tries the same again.
 */
import "./contracts.ts"
export { apply, empty } from "../../testing/LedgerModel.ts"
export type { Expected, ExpectedResult, ModelAccount, ModelEntry, Notebook } from "../../testing/LedgerModel.ts"
export { InvariantBroken, invariants } from "../../testing/LedgerProperties.ts"
export type {
  AccountView,
  Answer,
  EntryView,
  Invariant,
  LedgerUnderTest,
  LimitView,
  View
} from "../../testing/LedgerProperties.ts"
export { amounts, checkLedger, ledgerSteps, limitSteps } from "../../testing/LedgerStories.ts"
export type { LedgerPart, LedgerStep, LedgerStory, SuiteOptions } from "../../testing/LedgerStories.ts"
export { layerMemory, ofLayer } from "../../testing/LedgerLayer.ts"
export { layerTransfers, layerTransfersMemory, transfersOfLayer } from "../../testing/TransfersLayer.ts"
export { checkTransfers, transferSteps } from "../../testing/TransfersStories.ts"
export type {
  TransfersStep,
  TransfersStory,
  TransfersSuiteOptions,
  TransfersWorld
} from "../../testing/TransfersStories.ts"
export type { TransferAnswer, TransfersClock, TransfersUnderTest } from "../../testing/TransfersProperties.ts"
export type {
  TransferOrder,
  TransferRefusal,
  TransfersNotebook,
  TransferState,
  TransferView
} from "../../testing/TransfersModel.ts"
export { tell } from "../../testing/Story.ts"
export type { Step, Telling } from "../../testing/Story.ts"
export * from "./sandbox.ts"
