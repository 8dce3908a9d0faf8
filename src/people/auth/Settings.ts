/** Reads the configured clients and identity providers: `clients`, `oauth_clients`, `web_clients`, `identity` and `email_sign_in`. */
import { Layer, Schema } from "effect"
import { NonEmpty, readAs } from "../../kernel/Setting.ts"
import { IdentityProviders } from "../../upstream/identity/Identity.ts"
import { ConfiguredClients, isRedirectAddress } from "../credentials/Clients.ts"
import type { Client } from "../credentials/Clients.ts"
import { EmailSignIn } from "./EmailSignIn.ts"
import * as IdentityEntries from "./IdentityEntries.ts"

const RedirectAddress = Schema.String.pipe(
  Schema.filter(isRedirectAddress, {
    message: () => "must be a URI without a fragment and must not use javascript: or file:"
  })
)

const ClientEntry = Schema.Struct({ client_id: NonEmpty, name: NonEmpty })

const clientsOf = (kind: "app" | "web") =>
  Schema.optionalWith(Schema.Array(readAs(ClientEntry, (entry): Client => ({ ...entry, kind, redirect_uris: [] }))), {
    default: () => []
  })

const OAuthClient = readAs(
  Schema.Struct({
    ...ClientEntry.fields,
    redirect_uris: Schema.optionalWith(Schema.Array(RedirectAddress), { default: () => [] }),
    /** Whether the client is the operator's application and may do everything that the user may do. The consent page says so. */
    trusted: Schema.optionalWith(Schema.Boolean, { default: () => false }),
    /** Whether the client may use the device flow. In this flow, the user reads a code on one device and approves it in a browser on another. */
    device: Schema.optionalWith(Schema.Boolean, { default: () => false })
  }).pipe(
    Schema.filter(({ device, redirect_uris }) =>
      device || redirect_uris.length > 0
        ? undefined
        : { path: ["redirect_uris"], message: "must contain at least one address, unless `device` is true" }
    )
  ),
  (entry): Client => ({ ...entry, kind: "oauth" })
)

export const fields = {
  /** Applications that sign users in with a provider's token. */
  clients: clientsOf("app"),
  /** Applications that use OAuth, with their redirect URIs and permission for the device flow. */
  oauth_clients: Schema.optionalWith(Schema.Array(OAuthClient), { default: () => [] }),
  /** Websites that send contact-form messages to the operator. */
  web_clients: clientsOf("web"),
  identity: IdentityEntries.field,
  /** Whether users may sign in with a link from an email. Requires `mail`. */
  email_sign_in: Schema.optionalWith(Schema.Boolean, { default: () => false })
}

export interface SignInSettings {
  readonly clients: ReadonlyArray<Client>
  readonly oauth_clients: ReadonlyArray<Client>
  readonly web_clients: ReadonlyArray<Client>
  readonly identity: IdentityEntries.IdentityEntries
  readonly email_sign_in?: boolean
}

/** Provides the clients and the identity providers. Fails if the environment variable for a client secret is not set. */
export const layer = ({ clients, email_sign_in = false, identity, oauth_clients, web_clients }: SignInSettings) =>
  Layer.mergeAll(
    Layer.succeed(EmailSignIn, email_sign_in),
    Layer.succeed(ConfiguredClients, [...clients, ...oauth_clients, ...web_clients]),
    Layer.effect(IdentityProviders, IdentityEntries.settingsOf(identity))
  )
