/** `tollgate/payments`: purchases of credit, through a payment processor or recorded by the operator, with refunds and disputes. */
import { Layer } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import "./contracts.ts"

export { Ledger, Purchases, Tenants }
export * from "../../money/payments/Problems.ts"
export { fields as settings, layer as layerSettings } from "../../money/payments/Settings.ts"
export { PriceList } from "../../books/prices/PriceList.ts"
export { Payments } from "../../upstream/payments/Payments.ts"
export type { PaymentSettings } from "../../upstream/payments/Payments.ts"

/** Purchases. Requires a database, `Payments` and `PriceList`. */
export const layer = Purchases.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)

/** The loop of `layer`. It takes back credit that an earlier version left due. */
export const layerJobs = Purchases.layerJobs
