import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Clients } from "../credentials/Clients.ts"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { TenantsApi, OrganisationsApi, TenantInvitesApi } from "./Api.ts"
import { Applications } from "./Applications.ts"
import { Organisations } from "./Organisations.ts"
import { Tenants } from "./Tenants.ts"

export const TenantsHttp = HttpApiBuilder.group(
  contract.add(TenantsApi),
  "tenants",
  Effect.fnUntraced(function* (handlers) {
    const tenants = yield* Tenants
    const applications = yield* Applications
    const clients = yield* Clients
    const clientName = ({ oauth_client }: Caller) =>
      oauth_client === undefined
        ? Effect.succeed(undefined)
        : Effect.map(clients.find(oauth_client, ["oauth"]), (client) => client?.name)
    return handlers
      .handle("me", () => answer((caller) => tenants.me(caller.account_id)))
      .handle("memberships", () =>
        answer((caller) => Effect.map(tenants.memberships(caller.account_id), (memberships) => ({ memberships })))
      )
      .handle("account", ({ path }) => answer((caller) => tenants.account({ caller, ...path })))
      .handle("createApplication", ({ payload }) =>
        answer((caller) =>
          Effect.flatMap(clientName(caller), (client_name) =>
            applications.create({ caller, client_name, application: payload })
          )
        )
      )
      .handle("listApplications", ({ urlParams }) => answer((caller) => applications.list({ caller, ...urlParams })))
      .handle("application", ({ path }) =>
        answer((caller) => applications.find({ caller, application_id: path.application_id }))
      )
      .handle("changeApplication", ({ path, payload }) =>
        answer((caller) => applications.change({ caller, application_id: path.application_id, change: payload }))
      )
      .handle("deleteApplication", ({ path }) =>
        answer((caller) => applications.remove({ caller, application_id: path.application_id }))
      )
  })
)

export const OrganisationsHttp = HttpApiBuilder.group(
  contract.add(OrganisationsApi),
  "organisations",
  Effect.fnUntraced(function* (handlers) {
    const organisations = yield* Organisations
    return handlers
      .handle("create", ({ payload: { name } }) => answer((caller) => organisations.create({ caller, name })))
      .handle("members", ({ path }) =>
        answer((caller) => Effect.map(organisations.members({ caller, ...path }), (members) => ({ members })))
      )
      .handle("changeMember", ({ path, payload }) =>
        answer((caller) => organisations.change({ caller, ...path, change: payload }))
      )
      .handle("removeMember", ({ path }) =>
        answer((caller) => organisations.change({ caller, ...path, change: { status: "removed" } }))
      )
      .handle("invites", ({ path }) =>
        answer((caller) => Effect.map(organisations.invites({ caller, ...path }), (invites) => ({ invites })))
      )
      .handle("invite", ({ path, payload }) =>
        answer((caller) => organisations.invite({ caller, ...path, invite: payload }))
      )
      .handle("revokeInvite", ({ path }) => answer((caller) => organisations.revoke({ caller, ...path })))
      .handle("acceptInvite", ({ path }) => answer((caller) => organisations.accept({ caller, ...path })))
      .handle("settings", ({ path }) => answer((caller) => organisations.settings({ caller, ...path })))
      .handle("setSettings", ({ path, payload }) =>
        answer((caller) => organisations.setSettings({ caller, ...path, change: payload }))
      )
      .handle("plan", ({ path }) => answer((caller) => organisations.plan({ caller, ...path })))
      .handle("setPlan", ({ path, payload }) =>
        answer((caller) => organisations.setPlan({ caller, ...path, plan: payload }))
      )
  })
)

export const TenantInvitesHttp = HttpApiBuilder.group(
  contract.add(TenantInvitesApi),
  "tenantInvites",
  Effect.fnUntraced(function* (handlers) {
    const organisations = yield* Organisations
    const limits = yield* RateLimits
    return handlers.handle("preview", ({ path, request }) =>
      Effect.zipRight(limits.take("invite_preview", request), Effect.map(organisations.previewInvite(path), envelope))
    )
  })
)
