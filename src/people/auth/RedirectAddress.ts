/** The redirect URIs to register with identity providers. */
import type { ProviderName } from "../../upstream/identity/Identity.ts"
import type { IdentityEntries } from "./IdentityEntries.ts"

/**
 * Returns a provider's redirect URI. In the code flow, each provider has its own redirect URI, so that no provider can respond in place of another.
 */
export const redirectAddress = (public_url: string, provider: ProviderName, flow: "code" | "form"): string =>
  `${public_url}/oauth/signed-in${flow === "code" ? `/${provider}` : ""}`

/** Returns each configured provider's redirect URI. The operator must register it with the provider. */
export const redirectAddresses = (identity: IdentityEntries, public_url: string) =>
  Object.entries(identity).map(([provider, { client_id, name = provider }]) => ({
    provider,
    name,
    address: redirectAddress(public_url, provider, client_id === undefined ? "form" : "code")
  }))
