/** The clients that sign people in, and the identity providers: `clients`, `oauth_clients`, `web_clients` and `identity`. */
import { Layer, Schema } from "effect"
import { Address, NonEmpty, readAs } from "../../kernel/Setting.ts"
import { IdentityProviders } from "../../upstream/identity/Identity.ts"
import type { ProviderName, ProviderSettings } from "../../upstream/identity/Identity.ts"
import { ConfiguredClients, isRedirectAddress } from "../credentials/Clients.ts"
import type { Client } from "../credentials/Clients.ts"

const RedirectAddress = Schema.String.pipe(
  Schema.filter(isRedirectAddress, { message: () => "an address without a fragment, no script and no file" })
)

const IdentityProvider = Schema.Struct({
  /** The OpenID Connect issuer. Its discovery document names its keys. */
  issuer: Address,
  /** The client ids that its tokens may be issued for. */
  audiences: Schema.NonEmptyArray(NonEmpty),
  jwks_uri: Schema.optional(Address),
  /** Treat addresses as verified if its tokens do not say (Microsoft's do not). */
  trust_email: Schema.optional(Schema.Boolean)
})

const ClientEntry = Schema.Struct({ client_id: NonEmpty, name: NonEmpty })

const clientsOf = (kind: "app" | "web") =>
  Schema.optionalWith(Schema.Array(readAs(ClientEntry, (entry): Client => ({ ...entry, kind, redirect_uris: [] }))), {
    default: () => []
  })

const OAuthClient = readAs(
  Schema.Struct({
    ...ClientEntry.fields,
    redirect_uris: Schema.optionalWith(Schema.Array(RedirectAddress), { default: () => [] }),
    /** An application of the operator: it may do everything that the person may, and its consent page says so. */
    trusted: Schema.optionalWith(Schema.Boolean, { default: () => false }),
    /** May use the device flow: the person reads a code on one device and allows it in a browser on another. */
    device: Schema.optionalWith(Schema.Boolean, { default: () => false })
  }).pipe(
    Schema.filter(({ device, redirect_uris }) =>
      device || redirect_uris.length > 0
        ? undefined
        : { path: ["redirect_uris"], message: "at least one address, where `device` is not true" }
    )
  ),
  (entry): Client => ({ ...entry, kind: "oauth" })
)

export const fields = {
  /** Applications that sign people in with a provider's token. */
  clients: clientsOf("app"),
  /** Applications that use OAuth: their redirect addresses, and whether they may use the device flow. */
  oauth_clients: Schema.optionalWith(Schema.Array(OAuthClient), { default: () => [] }),
  /** Websites whose contact forms write to the operator. */
  web_clients: clientsOf("web"),
  identity: Schema.optionalWith(
    Schema.Struct({ google: Schema.optional(IdentityProvider), microsoft: Schema.optional(IdentityProvider) }),
    { default: () => ({}) }
  )
}

export interface SignInSettings {
  readonly clients: ReadonlyArray<Client>
  readonly oauth_clients: ReadonlyArray<Client>
  readonly web_clients: ReadonlyArray<Client>
  readonly identity: { readonly [provider in ProviderName]?: ProviderSettings | undefined }
}

export const layer = ({ clients, identity, oauth_clients, web_clients }: SignInSettings) =>
  Layer.merge(
    Layer.succeed(ConfiguredClients, [...clients, ...oauth_clients, ...web_clients]),
    Layer.succeed(IdentityProviders, identity)
  )
