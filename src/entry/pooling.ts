/** `tollgate/pooling`: who may pay a call, in which order. */
import { Layer } from "effect"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { Pooling } from "../pooling/Pooling.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Sums } from "../usage/Sums.ts"
import "./contracts.ts"

export { BillingAccounts, Pooling, Tenants }
export { PriceList } from "../prices/PriceList.ts"
export * from "../pooling/Order.ts"
export * from "../pooling/Problems.ts"
export * from "../pooling/Source.ts"

/** Pooling, and `Payers` of the gate that follow from it. Needs a database and `PriceList`. */
export const layer = Pooling.layerPayers.pipe(
  Layer.provideMerge(Pooling.layer),
  Layer.provideMerge(Layer.mergeAll(Sums.layer, BillingAccounts.layer)),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)
