/** Who I am, where I belong, and the applications of a tenant. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { InvalidRequest, TenantMismatch } from "../http/Problems.ts"
import { UserToken } from "../http/Security.ts"
import { Envelope } from "../kernel/Envelope.ts"
import { AccountId, ApplicationId, TenantId } from "../kernel/Ids.ts"
import { PageQuery } from "../kernel/Page.ts"
import { Account, Me, Membership } from "./Account.ts"
import { Application, ApplicationChange, ApplicationPage, ApplicationWithKey, NewApplication } from "./Application.ts"
import { AccountNotFound, ApplicationNotFound } from "./Problems.ts"

const ofTenant = Schema.Struct({ tenant_id: TenantId })
const ofApplication = Schema.Struct({ tenant_id: TenantId, application_id: ApplicationId })

export class TenantsApi extends HttpApiGroup.make("tenants")
  .add(
    HttpApiEndpoint.get("me", "/v1/me")
      .addSuccess(Envelope(Me))
      .addError(AccountNotFound)
      .annotate(OpenApi.Summary, "Who I am: my account, the identity behind it, and what became of the signup credit")
  )
  .add(
    HttpApiEndpoint.get("memberships", "/v1/me/memberships")
      .addSuccess(Envelope(Schema.Struct({ memberships: Schema.Array(Membership) })))
      .annotate(OpenApi.Summary, "The tenants that I belong to, my home tenant first")
  )
  .add(
    HttpApiEndpoint.get("account", "/v1/accounts/:account_id")
      .setPath(Schema.Struct({ account_id: AccountId }))
      .addSuccess(Envelope(Account))
      .addError(AccountNotFound)
      .annotate(OpenApi.Summary, "My account, or that of somebody with whom I share a tenant")
  )
  .add(
    HttpApiEndpoint.post("createApplication", "/v1/tenants/:tenant_id/applications")
      .setPath(ofTenant)
      .setPayload(NewApplication)
      .addSuccess(
        Envelope(ApplicationWithKey).annotations(
          HttpApiSchema.annotations({ status: 201, identifier: "ApplicationCreated" })
        )
      )
      .addError(TenantMismatch)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "Make an API key; it is shown in this answer only")
  )
  .add(
    HttpApiEndpoint.get("listApplications", "/v1/tenants/:tenant_id/applications")
      .setPath(ofTenant)
      .setUrlParams(Schema.Struct(PageQuery))
      .addSuccess(Envelope(ApplicationPage))
      .addError(TenantMismatch)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "The API keys of the tenant, newest first, without the keys themselves")
  )
  .add(
    HttpApiEndpoint.get("application", "/v1/tenants/:tenant_id/applications/:application_id")
      .setPath(ofApplication)
      .addSuccess(Envelope(Application))
      .addError(TenantMismatch)
      .addError(ApplicationNotFound)
      .annotate(OpenApi.Summary, "One API key's record")
  )
  .add(
    HttpApiEndpoint.patch("changeApplication", "/v1/tenants/:tenant_id/applications/:application_id")
      .setPath(ofApplication)
      .setPayload(ApplicationChange)
      .addSuccess(Envelope(Application))
      .addError(TenantMismatch)
      .addError(ApplicationNotFound)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "Rename or redescribe an API key")
  )
  .add(
    HttpApiEndpoint.del("deleteApplication", "/v1/tenants/:tenant_id/applications/:application_id")
      .setPath(ofApplication)
      .addSuccess(Envelope(Application))
      .addError(TenantMismatch)
      .addError(ApplicationNotFound)
      .annotate(OpenApi.Summary, "Revoke an API key")
  )
  .middleware(UserToken) {}
