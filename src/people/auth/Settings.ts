/** Who may sign people in, and by which providers: `clients`, `oauth_clients`, `web_clients` and `identity`. */
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
  /** The OpenID Connect issuer; its discovery document says where its keys are. */
  issuer: Address,
  /** The client ids for which its tokens may have been made. */
  audiences: Schema.NonEmptyArray(NonEmpty),
  jwks_uri: Schema.optional(Address),
  /** Its addresses are verified even where its tokens do not say so (Microsoft's do not). */
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
    /** The operator's own: it may do all that the person may, and its consent page says so. */
    trusted: Schema.optionalWith(Schema.Boolean, { default: () => false }),
    /** It may use the device flow: a person who reads a code on one device allows it in the browser of another. */
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
  /** The applications that may sign people in with a provider's token. */
  clients: clientsOf("app"),
  /** The applications that may use OAuth: where the code flow may lead back to, and whether they may use the device flow. */
  oauth_clients: Schema.optionalWith(Schema.Array(OAuthClient), { default: () => [] }),
  /** The websites whose contact forms may write to the operator. */
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
