/** Adds records to `ProviderTotals` shortly after the charge. */
import { Context, Layer } from "effect"
import * as Loop from "../../../kernel/Loop.ts"
import * as ProviderTotals from "./ProviderTotals.ts"
import * as RowsIndexer from "./RowsIndexer.ts"
import type { RowsIndexerContract } from "./RowsIndexer.ts"

export type ProviderTotalsIndexerContract = RowsIndexerContract

export class ProviderTotalsIndexer extends Context.Tag("tollgate/ledger/ProviderTotalsIndexer")<
  ProviderTotalsIndexer,
  ProviderTotalsIndexerContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(ProviderTotalsIndexer, make))
  static readonly layerJobs = Loop.layer(ProviderTotalsIndexer, ({ job }) => [job])
}

const make = RowsIndexer.make({ name: "daily sums", enough: 16_384, ...ProviderTotals })
