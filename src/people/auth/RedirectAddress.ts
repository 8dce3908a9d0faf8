/** The redirect URIs that must be registered with identity providers. */
import type { ProviderName } from "../../upstream/identity/Identity.ts"
import type { IdentityEntries } from "./IdentityEntries.ts"

/** In the code flow, each provider has a separate address. One provider can therefore not respond in place of another. */
export const redirectAddress = (public_url: string, provider: ProviderName, flow: "code" | "form"): string =>
  `${public_url}/oauth/signed-in${flow === "code" ? `/${provider}` : ""}`

/** The redirect URI of each configured provider, for the operator to register there. */
export const redirectAddresses = (identity: IdentityEntries, public_url: string) =>
  Object.entries(identity).map(([provider, { client_id, name = provider }]) => ({
    provider,
    name,
    address: redirectAddress(public_url, provider, client_id === undefined ? "form" : "code")
  }))
