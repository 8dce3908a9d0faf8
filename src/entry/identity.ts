/** `tollgate/identity`: accounts, tenants, keys, sign-ins and tokens. */
import { Layer } from "effect"
import { Authorization } from "../auth/Authorization.ts"
import { Clients } from "../auth/Clients.ts"
import { Credentials } from "../auth/Credentials.ts"
import { Sessions } from "../auth/Sessions.ts"
import { SigningKeys } from "../auth/SigningKeys.ts"
import { Tokens } from "../auth/Tokens.ts"
import { Applications } from "../tenants/Applications.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Identity } from "../upstream/Identity.ts"
import "./contracts.ts"

export {
  Authorization,
  Applications,
  Belonging,
  Clients,
  Credentials,
  Identity,
  Sessions,
  SigningKeys,
  Tenants,
  Tokens
}
export { ConfiguredClients } from "../auth/Clients.ts"
export { fields as settings, layer as layerSettings } from "../auth/Settings.ts"
export { DeploymentSecret, layer as layerSecret } from "../auth/DeploymentSecret.ts"
export { ServiceInfo } from "../kernel/ServiceInfo.ts"
export { PriceList } from "../prices/PriceList.ts"
export { IdentityProviders } from "../upstream/Identity.ts"
export type { VerifiedIdentity } from "../upstream/Identity.ts"
export type { Caller } from "../kernel/Caller.ts"
export * from "../auth/Problems.ts"
export * from "../auth/credentials/Problems.ts"
export * from "../tenants/Problems.ts"
export * from "../upstream/identity/Problems.ts"

/** All of it. Needs a database, the secret, `IdentityProviders`, `ConfiguredClients`, `PriceList` and `ServiceInfo`. */
export const layer = Authorization.layer.pipe(
  Layer.provideMerge(Credentials.layer),
  Layer.provideMerge(Layer.mergeAll(Sessions.layer, Applications.layer, Clients.layer, Identity.layer)),
  Layer.provideMerge(Layer.mergeAll(Tenants.layer, Tokens.layer)),
  Layer.provideMerge(Layer.mergeAll(SigningKeys.layer, Belonging.layer))
)

/** The loop of `layer`: signing keys are rotated every 30 days. */
export const layerJobs = SigningKeys.layerJobs
