/** `tollgate/usage`: usage records, sums, rollups and explanations of charges. */
import { Layer } from "effect"
import { SortedIndexer } from "../../books/ledger/totals/SortedIndexer.ts"
import { TotalsIndexer } from "../../books/ledger/totals/TotalsIndexer.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Explanations } from "../../money/usage/Explanations.ts"
import { Records } from "../../money/usage/Records.ts"
import { Series } from "../../money/usage/Series.ts"
import { Sums } from "../../money/usage/Sums.ts"
import { TeamUsage } from "../../money/usage/TeamUsage.ts"
import "./contracts.ts"

export { Explanations, Records, Series, Sums, TeamUsage }
export { PriceList } from "../../books/prices/PriceList.ts"
export * from "../../money/usage/Problems.ts"
export * from "../../money/usage/Usage.ts"
export type { RecordsAsked } from "../../money/usage/Records.ts"
export type { RollupAsked } from "../../money/usage/Sums.ts"
export type { Columns, OneSeries, PayersAsked, SeriesAsked, SeriesSet } from "../../money/usage/Series.ts"
export type { TeamAsked } from "../../money/usage/TeamUsage.ts"
export type { Window } from "../../money/usage/Window.ts"
export { HeldKey } from "../../money/usage/HeldKey.ts"
export { Explanation } from "../../money/usage/Explanation.ts"

/** All usage services. Requires a database and `PriceList`. */
export const layer = Layer.mergeAll(Records.layer, TeamUsage.layer, Explanations.layer).pipe(
  Layer.provideMerge(
    Layer.mergeAll(Sums.layer, Series.layer, PriceVersions.layer, SortedIndexer.layer, TotalsIndexer.layer)
  ),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Belonging.layer)
)

/** The loops of `layer`. They update the sorted index and the totals of large tenants' records, so that pages and series stay fast. */
export const layerJobs = Layer.merge(SortedIndexer.layerJobs, TotalsIndexer.layerJobs)
