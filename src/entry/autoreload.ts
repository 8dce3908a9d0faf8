/** `tollgate/auto-reload`: purchases of credit, and tenants that keep themselves funded. */
import { Layer } from "effect"
import { AutoReloads } from "../autoreload/AutoReloads.ts"
import { BillingAccounts } from "../billing/BillingAccounts.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { Outbox } from "../mail/Outbox.ts"
import { Purchases } from "../payments/Purchases.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import "./contracts.ts"

export { AutoReloads, Purchases }
export * from "../autoreload/Problems.ts"
export * from "../autoreload/AutoReload.ts"
export { layer as layerSecret } from "../auth/DeploymentSecret.ts"
export { PriceList } from "../prices/PriceList.ts"
export { Mail } from "../upstream/Mail.ts"
export { Payments } from "../upstream/Payments.ts"
export type { PaymentSettings } from "../upstream/Payments.ts"

/** Both. Needs a database, whose postings set a reload off, the secret, `Payments` (the processor, or none), `Mail` and `PriceList`. */
export const layer = AutoReloads.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Purchases.layer, Outbox.layer, BillingAccounts.layer)),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)

/** The loops of `layer`: due charges, alerts and letters. Without them nothing is charged or sent but on a call. */
export const layerJobs = Layer.mergeAll(AutoReloads.layerJobs, Outbox.layerJobs, Purchases.layerJobs)
