/** `tollgate/identity`: accounts, tenants, keys, sign-ins and tokens. */
import { Layer } from "effect"
import { Authorization } from "../../people/auth/Authorization.ts"
import { Clients } from "../../people/credentials/Clients.ts"
import { Credentials } from "../../people/auth/Credentials.ts"
import { Sessions } from "../../people/auth/Sessions.ts"
import { SigningKeys } from "../../people/auth/SigningKeys.ts"
import { Tokens } from "../../people/auth/Tokens.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Identity } from "../../upstream/identity/Identity.ts"
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
export { Registration } from "../../people/tenants/Registration.ts"
export { RegistrationPolicy } from "../../people/tenants/RegistrationPolicy.ts"
export type { Policy as RegistrationPolicyFacts } from "../../people/tenants/RegistrationPolicy.ts"
export { ConfiguredClients } from "../../people/credentials/Clients.ts"
export { fields as settings, layer as layerSettings } from "../../people/auth/Settings.ts"
export { DeploymentSecret, layer as layerSecret } from "../../storage/secret/DeploymentSecret.ts"
export { ServiceInfo } from "../../kernel/ServiceInfo.ts"
export { PriceList } from "../../books/prices/PriceList.ts"
export { IdentityProviders } from "../../upstream/identity/Identity.ts"
export type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
export type { Caller } from "../../kernel/Caller.ts"
export * from "../../people/auth/Problems.ts"
export * from "../../people/credentials/Problems.ts"
export * from "../../people/tenants/Problems.ts"
export * from "../../upstream/identity/Problems.ts"

/** All identity services. Requires a database, the secret, `IdentityProviders`, `ConfiguredClients`, `PriceList` and `ServiceInfo`. */
export const layer = Authorization.layer.pipe(
  Layer.provideMerge(Credentials.layer),
  Layer.provideMerge(Layer.mergeAll(Sessions.layer, Applications.layer, Clients.layer, Identity.layer)),
  Layer.provideMerge(Layer.mergeAll(Tenants.layer, Tokens.layer)),
  Layer.provideMerge(Layer.mergeAll(SigningKeys.layer, Belonging.layer))
)

/** The loop of `layer`. It rotates signing keys every 30 days. */
export const layerJobs = SigningKeys.layerJobs
