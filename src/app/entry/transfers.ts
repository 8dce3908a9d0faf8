/** `tollgate/transfers`: transfers of credit between people, through escrow. */
import { Layer } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Transfers } from "../../money/transfers/Transfers.ts"
import "./contracts.ts"

export { Ledger, Tenants, Transfers }
export { DeploymentSecret, layer as layerSecret } from "../../storage/secret/DeploymentSecret.ts"
export { ServiceInfo } from "../../kernel/ServiceInfo.ts"
export { PriceList } from "../../books/prices/PriceList.ts"
export { Mail } from "../../upstream/mail/Mail.ts"
export { judge, moves } from "../../money/transfers/States.ts"
export type { NewTransfer, Transfer, TransferPage } from "../../money/transfers/Transfer.ts"
export type { Move, TransferId, TransferStatus } from "../../money/transfers/States.ts"
export * from "../../money/transfers/Problems.ts"
export { fields as settings, layer as layerSettings, TransferLimits } from "../../money/transfers/Settings.ts"

/** Transfers, with accounts and the outbox. Requires a database, the secret, `Mail`, `PriceList` and `ServiceInfo`. */
export const layer = Transfers.layer.pipe(
  Layer.provideMerge(Outbox.layer),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)

/** The loops of `layer`. They end expired transfers and send due emails. */
export const layerJobs = Layer.merge(Transfers.layerJobs, Outbox.layerJobs)
