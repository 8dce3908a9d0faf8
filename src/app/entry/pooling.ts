/** `tollgate/pooling`: decides which billing accounts may pay for a call, and in which order. */
import { Layer } from "effect"
import { BillingAccounts } from "../../money/billing/BillingAccounts.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { Pooling } from "../../money/pooling/Pooling.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Sums } from "../../money/usage/Sums.ts"
import "./contracts.ts"

export { BillingAccounts, Pooling, Tenants }
export { PriceList } from "../../books/prices/PriceList.ts"
export * from "../../money/pooling/Order.ts"
export * from "../../money/pooling/Problems.ts"
export * from "../../money/pooling/Source.ts"

/** Pooling, and the gate's `Payers` based on it. Requires a database and `PriceList`. */
export const layer = Pooling.layerPayers.pipe(
  Layer.provideMerge(Pooling.layer),
  Layer.provideMerge(Layer.mergeAll(Sums.layer, BillingAccounts.layer)),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)
