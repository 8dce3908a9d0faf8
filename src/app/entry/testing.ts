/**
 * `tollgate/testing`: property suites for your own ledger and transfers, and the parts of these suites. They require `fast-check`.
 *
 * With Effect layers (`Ledger` and `Writer` for a ledger; `Transfers`, `Tenants` and `Ledger` for transfers):
 *
 *     import { checkLedger, checkTransfers, ofLayer, transfersOfLayer } from "tollgate/testing"
 *     it("keeps its books", () => checkLedger({ make: ofLayer(MyLedger.layer) }))
 *     it("loses no credit", () => checkTransfers({ make: transfersOfLayer(MyTransfers.layer) }))
 *
 * Without Effect, as objects of functions that return promises (`LedgerUnderTest`, `TransfersUnderTest`):
 *
 *     import { checkLedger, checkTransfers } from "tollgate/testing"
 *     const ledger = async () => ({ submit: (postings) => …, account: (id) => …, entries: (id) => … })
 *     it("keeps its books", () => checkLedger({ make: ledger }))
 *     const transfers = async ({ now }) => ({ create: (email, order) => …, accept: (email, id) => …, … })
 *     it("loses no credit", () => checkTransfers({ make: transfers }))
 *
 * `limits: true` also tests spending limits of keys (`SetLimit`), and `nextMonth` lets months pass. `without` lists the features that a ledger lacks,
 * and `amountMax` is the largest amount that it supports:
 *
 *     checkLedger({ make: ledger, without: ["limits", "teams", "escrow"], amountMax: 1_000_000_000_000n })
 *
 * Both suites create a new implementation for each story, run operations concurrently, and reject with the shortest story that fails. `stories` and
 * `length` set the amount of work, and `seed` repeats a run.
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
export type { StoryPosting } from "../../testing/LedgerModel.ts"
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
