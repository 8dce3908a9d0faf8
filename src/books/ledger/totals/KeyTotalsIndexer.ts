/** Adds records to the totals of keys (`KeyTotals`) shortly after the charge. */
import { Context, Layer } from "effect"
import * as Loop from "../../../kernel/Loop.ts"
import * as KeyTotals from "./KeyTotals.ts"
import * as RowsIndexer from "./RowsIndexer.ts"
import type { RowsIndexerContract } from "./RowsIndexer.ts"

export class KeyTotalsIndexer extends Context.Tag("tollgate/ledger/KeyTotalsIndexer")<
  KeyTotalsIndexer,
  RowsIndexerContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(KeyTotalsIndexer, make))
  static readonly layerJobs = Loop.layer(KeyTotalsIndexer, ({ job }) => [job])
}

/** Adds records in small batches, because the holder of a key can query often and readers should add few records themselves. */
const make = RowsIndexer.make({ name: "sums by key", enough: 2048, ...KeyTotals })
