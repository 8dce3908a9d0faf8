/** `tollgate/organisations`: shared tenants with members, roles, invitations, plans and seats. */
import { Layer } from "effect"
import { Outbox } from "../../people/mail/Outbox.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Organisations } from "../../people/tenants/Organisations.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import "./contracts.ts"

export { Organisations, Outbox, Tenants }
export { layer as layerSecret } from "../../storage/secret/DeploymentSecret.ts"
export { ServiceInfo } from "../../kernel/ServiceInfo.ts"
export { PriceList } from "../../books/prices/PriceList.ts"
export * from "../../people/tenants/Organisation.ts"
export * from "../../people/tenants/Problems.ts"
export { Mail } from "../../upstream/mail/Mail.ts"

/** Organizations, with accounts and the outbox for invitations. Requires a database, the secret, `Mail`, `PriceList` and `ServiceInfo`. */
export const layer = Organisations.layer.pipe(
  Layer.provideMerge(Layer.merge(Outbox.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer)
)

/** The loop of `layer`. It sends due emails. */
export const layerJobs = Outbox.layerJobs
