import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { answer } from "../http/Answer.ts"
import { Applications } from "./Applications.ts"
import { Organisations } from "./Organisations.ts"
import { Tenants } from "./Tenants.ts"

export const TenantsHttp = HttpApiBuilder.group(
  Api,
  "tenants",
  Effect.fnUntraced(function* (handlers) {
    const tenants = yield* Tenants
    const applications = yield* Applications
    return handlers
      .handle("me", () => answer((caller) => tenants.me(caller.account_id)))
      .handle("memberships", () =>
        answer((caller) => Effect.map(tenants.memberships(caller.account_id), (memberships) => ({ memberships })))
      )
      .handle("account", ({ path }) => answer((caller) => tenants.account(caller.account_id, path.account_id)))
      .handle("createApplication", ({ payload }) => answer((caller) => applications.create(caller, payload)))
      .handle("listApplications", ({ urlParams }) => answer((caller) => applications.list(caller, urlParams)))
      .handle("application", ({ path }) => answer((caller) => applications.find(caller, path.application_id)))
      .handle("changeApplication", ({ path, payload }) =>
        answer((caller) => applications.change(caller, path.application_id, payload))
      )
      .handle("deleteApplication", ({ path }) => answer((caller) => applications.remove(caller, path.application_id)))
  })
)

export const OrganisationsHttp = HttpApiBuilder.group(
  Api,
  "organisations",
  Effect.fnUntraced(function* (handlers) {
    const organisations = yield* Organisations
    return handlers
      .handle("create", ({ payload }) => answer(({ account_id }) => organisations.create(account_id, payload.name)))
      .handle("members", ({ path }) =>
        answer(({ account_id }) =>
          Effect.map(organisations.members(account_id, path.tenant_id), (members) => ({ members }))
        )
      )
      .handle("changeMember", ({ path, payload }) =>
        answer(({ account_id }) => organisations.change(account_id, path.tenant_id, path.account_id, payload))
      )
      .handle("removeMember", ({ path }) =>
        answer(({ account_id }) =>
          organisations.change(account_id, path.tenant_id, path.account_id, { status: "removed" })
        )
      )
      .handle("invites", ({ path }) =>
        answer(({ account_id }) =>
          Effect.map(organisations.invites(account_id, path.tenant_id), (invites) => ({ invites }))
        )
      )
      .handle("invite", ({ path, payload }) =>
        answer(({ account_id }) => organisations.invite(account_id, path.tenant_id, payload))
      )
      .handle("revokeInvite", ({ path }) =>
        answer(({ account_id }) => organisations.revoke(account_id, path.tenant_id, path.invite_id))
      )
      .handle("acceptInvite", ({ path }) => answer(({ account_id }) => organisations.accept(account_id, path.token)))
      .handle("plan", ({ path }) => answer(({ account_id }) => organisations.plan(account_id, path.tenant_id)))
      .handle("setPlan", ({ path, payload }) =>
        answer(({ account_id }) => organisations.setPlan(account_id, path.tenant_id, payload))
      )
  })
)
