/** `tollgate/payments`: credit that is bought through a payment processor or booked by the operator, refunds and disputes. */
import { Layer } from "effect"
import { Ledger } from "../ledger/Ledger.ts"
import { Purchases } from "../payments/Purchases.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import "./contracts.ts"

export { Ledger, Purchases, Tenants }
export * from "../payments/Problems.ts"
export { fields as settings, layer as layerSettings } from "../payments/Settings.ts"
export { PriceList } from "../prices/PriceList.ts"
export { Payments } from "../upstream/Payments.ts"
export type { PaymentSettings } from "../upstream/Payments.ts"

/** Purchases. Needs a database, `Payments` (the processor, or none) and `PriceList`. */
export const layer = Purchases.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)

/** Takes back what an earlier version left due. */
export const layerJobs = Purchases.layerJobs
