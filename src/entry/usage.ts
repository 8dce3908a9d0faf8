/** `tollgate/usage`: what was used: records, sums, rollups, and each charge explained. */
import { Layer } from "effect"
import { Sorter } from "../ledger/Sorter.ts"
import { Tallier } from "../ledger/Tallier.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Explanations } from "../usage/Explanations.ts"
import { Records } from "../usage/Records.ts"
import { Series } from "../usage/Series.ts"
import { Sums } from "../usage/Sums.ts"
import { TeamUsage } from "../usage/TeamUsage.ts"
import "./contracts.ts"

export { Explanations, Records, Series, Sums, TeamUsage }
export { PriceList } from "../prices/PriceList.ts"
export * from "../usage/Problems.ts"
export * from "../usage/Usage.ts"
export type { RecordsAsked } from "../usage/Records.ts"
export type { RollupAsked } from "../usage/Sums.ts"
export type { Columns, OneSeries, PayersAsked, SeriesAsked, SeriesSet } from "../usage/Series.ts"
export type { TeamAsked } from "../usage/TeamUsage.ts"
export type { Window } from "../usage/Window.ts"
export { Explanation } from "../usage/Explanation.ts"

/** All of it. Needs a database and `PriceList`. */
export const layer = Layer.mergeAll(Records.layer, TeamUsage.layer, Explanations.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Sums.layer, Series.layer, PriceVersions.layer, Sorter.layer, Tallier.layer)),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Belonging.layer)
)

/** The loops of `layer`: they keep large tenants' records sorted and summed up, so that their pages and series stay fast. */
export const layerJobs = Layer.merge(Sorter.layerJobs, Tallier.layerJobs)
