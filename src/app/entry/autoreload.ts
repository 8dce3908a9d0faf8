/** `tollgate/auto-reload`: purchases of credit, and automatic reloads of balances. */
import { Layer } from "effect"
import { AutoReloads } from "../../money/autoreload/AutoReloads.ts"
import { BillingAccounts } from "../../money/billing/BillingAccounts.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import "./contracts.ts"

export { AutoReloads, Purchases }
export * from "../../money/autoreload/Problems.ts"
export * from "../../money/autoreload/AutoReload.ts"
export { layer as layerSecret } from "../../storage/secret/DeploymentSecret.ts"
export { PriceList } from "../../books/prices/PriceList.ts"
export { Mail } from "../../upstream/mail/Mail.ts"
export { Payments } from "../../upstream/payments/Payments.ts"
export type { PaymentSettings } from "../../upstream/payments/Payments.ts"

/** Purchases and reloads. Requires a database (its postings trigger reloads), the secret, `Payments`, `Mail` and `PriceList`. */
export const layer = AutoReloads.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Purchases.layer, Outbox.layer, BillingAccounts.layer)),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)

/** The loops of `layer`. They process due charges, alerts and emails. Without the loops, only calls trigger this work. */
export const layerJobs = Layer.mergeAll(AutoReloads.layerJobs, Outbox.layerJobs, Purchases.layerJobs)
