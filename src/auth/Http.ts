import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Brand } from "../Brand.ts"
import { InvalidRequest } from "../http/Problems.ts"
import { envelope } from "../kernel/Envelope.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Identity } from "../upstream/Identity.ts"
import type { ProviderName } from "../upstream/Identity.ts"
import type { RefreshRequest, SignInRequest } from "./Api.ts"
import { Clients } from "./Clients.ts"
import { ClientIdNotFound, ClientIdRequired, UnsupportedGrantType } from "./Problems.ts"
import { Sessions } from "./Sessions.ts"
import { SigningKeys } from "./SigningKeys.ts"

export const AuthHttp = HttpApiBuilder.group(
  Api,
  "auth",
  Effect.fnUntraced(function* (handlers) {
    const identity = yield* Identity
    const tenants = yield* Tenants
    const sessions = yield* Sessions
    const { published } = yield* SigningKeys
    const clients = yield* Clients
    const { service_name } = yield* Brand

    const knownClient = Effect.fnUntraced(function* (client_id: string | undefined) {
      if (client_id === undefined || client_id === "") {
        return yield* new ClientIdRequired({ error: `${service_name} client ID is required` })
      }
      if (!clients.some((client) => client.client_id === client_id)) return yield* new ClientIdNotFound()
      return client_id
    })

    const signIn = (provider: ProviderName) =>
      Effect.fnUntraced(function* ({ payload }: { readonly payload: typeof SignInRequest.Type }) {
        const client_id = yield* knownClient(payload.client_id)
        const person = yield* identity.verify(provider, payload)
        const { account_id, created, home_tenant_id } = yield* tenants.welcome(person)
        const pair = yield* sessions.open({ account_id, tenant_id: home_tenant_id, client_id, team_first: false })
        return envelope({ account_created: created, token_response: pair })
      })

    const refresh = Effect.fnUntraced(function* ({ payload }: { readonly payload: typeof RefreshRequest.Type }) {
      const { grant_type = "refresh_token", refresh_token, tenant_id } = payload
      if (grant_type !== "refresh_token") {
        return yield* new UnsupportedGrantType({ error: `Unsupported grant_type: ${grant_type}` })
      }
      const client_id = yield* knownClient(payload.client_id)
      if (refresh_token === undefined) {
        const details = { field: "refresh_token", rule: "required" }
        return yield* new InvalidRequest({ error: "refresh_token: required", details })
      }
      return envelope(yield* sessions.refresh({ refresh_token, client_id, tenant_id }))
    })

    return handlers
      .handle("google", signIn("google"))
      .handle("microsoft", signIn("microsoft"))
      .handle("refresh", refresh)
      .handle("refreshGoogle", refresh)
      .handle("refreshMicrosoft", refresh)
      .handle("revoke", ({ payload }) =>
        Effect.as(sessions.revoke(payload.token), envelope({ success: true as const }))
      )
      .handle("keys", () => Effect.succeed({ keys: published as ReadonlyArray<Record<string, unknown>> }))
  })
)
