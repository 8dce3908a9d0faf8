/** Adds records to `KeyTotals` shortly after the charge. */
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

/** The batches are small, because a key's holder can query often, and each query adds the remaining records itself. */
const make = RowsIndexer.make({ name: "sums by key", enough: 2048, ...KeyTotals })
