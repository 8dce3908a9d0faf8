/** Routes for accounts, memberships, applications, organizations and invitations. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { RateLimited } from "../../http/contract/Problems.ts"
import { OrganizationToken, ProfileToken, TenantKeysToken } from "../credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { PageQuery } from "../../kernel/Page.ts"
import { TooManyLetters } from "../mail/Problems.ts"
import { Account, Me, Member, Membership } from "./Account.ts"
import { Application, ApplicationChange, ApplicationPage, ApplicationWithKey, NewApplication } from "./Application.ts"
import {
  Invite,
  InviteId,
  InvitePreview,
  Invites,
  MemberChange,
  Members,
  NewInvite,
  NewOrganisation,
  Organisation,
  PlanChange,
  TenantChange,
  TenantPlan,
  TenantSettings
} from "./Organisation.ts"
import {
  AccountNotFound,
  AlreadyMember,
  ApplicationNotFound,
  EmailMismatch,
  HomeTenant,
  InsufficientRole,
  InviteNotFound,
  LastOwner,
  MemberNotFound,
  NotAMember,
  TeamFull,
  TooManyApplications,
  TooManyTenants
} from "./Problems.ts"

const ofTenant = Schema.Struct({ tenant_id: TenantId })
const ofApplication = Schema.Struct({ tenant_id: TenantId, application_id: ApplicationId })

export class TenantsApi extends HttpApiGroup.make("tenants")
  .add(
    HttpApiEndpoint.get("me", "/v1/me")
      .addSuccess(Envelope(Me))
      .addError(AccountNotFound)
      .middleware(ProfileToken)
      .annotate(OpenApi.Summary, "Get my account, its identity and the state of its signup credit")
  )
  .add(
    HttpApiEndpoint.get("memberships", "/v1/me/memberships")
      .addSuccess(Envelope(Schema.Struct({ memberships: Schema.Array(Membership) })))
      .middleware(ProfileToken)
      .annotate(OpenApi.Summary, "List the tenants that I belong to, my home tenant first")
  )
  .add(
    HttpApiEndpoint.get("account", "/v1/accounts/:account_id")
      .setPath(Schema.Struct({ account_id: AccountId }))
      .addSuccess(Envelope(Account))
      .addError(AccountNotFound)
      .middleware(OrganizationToken)
      .annotate(OpenApi.Summary, "Get my account, or the account of a user in one of my tenants")
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
      .middleware(TenantKeysToken)
      .addError(InvalidRequest)
      .addError(TooManyApplications)
      .annotate(Example, { body: { name: "nightly report", description: "reads usage" } })
      .annotate(OpenApi.Summary, "Create an API key; only this response contains the key")
  )
  .add(
    HttpApiEndpoint.get("listApplications", "/v1/tenants/:tenant_id/applications")
      .setPath(ofTenant)
      .setUrlParams(Schema.Struct(PageQuery))
      .addSuccess(Envelope(ApplicationPage))
      .middleware(TenantKeysToken)
      .addError(InvalidRequest)
      .annotate(
        OpenApi.Summary,
        "List the tenant's API keys, newest first, without the keys themselves; members see only their own"
      )
  )
  .add(
    HttpApiEndpoint.get("application", "/v1/tenants/:tenant_id/applications/:application_id")
      .setPath(ofApplication)
      .addSuccess(Envelope(Application))
      .middleware(TenantKeysToken)
      .addError(ApplicationNotFound)
      .addError(InsufficientRole)
      .annotate(OpenApi.Summary, "Get the record of one API key")
  )
  .add(
    HttpApiEndpoint.patch("changeApplication", "/v1/tenants/:tenant_id/applications/:application_id")
      .setPath(ofApplication)
      .setPayload(ApplicationChange)
      .addSuccess(Envelope(Application))
      .middleware(TenantKeysToken)
      .addError(ApplicationNotFound)
      .addError(InsufficientRole)
      .addError(InvalidRequest)
      .annotate(Example, { body: { name: "weekly report" } })
      .annotate(OpenApi.Summary, "Change my own API key, or any key as owner or admin")
  )
  .add(
    HttpApiEndpoint.del("deleteApplication", "/v1/tenants/:tenant_id/applications/:application_id")
      .setPath(ofApplication)
      .addSuccess(Envelope(Application))
      .middleware(TenantKeysToken)
      .addError(ApplicationNotFound)
      .addError(InsufficientRole)
      .annotate(OpenApi.Summary, "Delete my own API key, or any key as owner or admin")
  ) {}

const ofMember = Schema.Struct({ tenant_id: TenantId, account_id: AccountId })

/** Routes for organizations. The caller must be an active member of the path's tenant, but the token may be for another tenant. */
export class OrganisationsApi extends HttpApiGroup.make("organisations")
  .add(
    HttpApiEndpoint.post("create", "/v1/tenants")
      .setPayload(NewOrganisation)
      .addSuccess(
        Envelope(Organisation).annotations(
          HttpApiSchema.annotations({ status: 201, identifier: "OrganisationCreated" })
        )
      )
      .addError(TooManyTenants)
      .addError(InvalidRequest)
      .annotate(Example, { body: { name: "Acme" } })
      .annotate(OpenApi.Summary, "Create a shared tenant; it starts without credit")
  )
  .add(
    HttpApiEndpoint.get("members", "/v1/tenants/:tenant_id/members")
      .setPath(ofTenant)
      .addSuccess(Envelope(Members))
      .addError(NotAMember)
      .annotate(OpenApi.Summary, "List the members of the tenant")
  )
  .add(
    HttpApiEndpoint.patch("changeMember", "/v1/tenants/:tenant_id/members/:account_id")
      .setPath(ofMember)
      .setPayload(MemberChange)
      .addSuccess(Envelope(Member))
      .addError(NotAMember)
      .addError(InsufficientRole)
      .addError(MemberNotFound)
      .addError(LastOwner)
      .addError(HomeTenant)
      .addError(TooManyTenants)
      .addError(InvalidRequest)
      .annotate(Example, { body: { role: "admin" } })
      .annotate(OpenApi.Summary, "Change a member's role, or suspend or reinstate a member (owner or admin)")
  )
  .add(
    HttpApiEndpoint.del("removeMember", "/v1/tenants/:tenant_id/members/:account_id")
      .setPath(ofMember)
      .addSuccess(Envelope(Member))
      .addError(NotAMember)
      .addError(InsufficientRole)
      .addError(MemberNotFound)
      .addError(LastOwner)
      .addError(HomeTenant)
      .addError(TooManyTenants)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "Remove a member (owner or admin), or leave")
  )
  .add(
    HttpApiEndpoint.get("invites", "/v1/tenants/:tenant_id/invites")
      .setPath(ofTenant)
      .addSuccess(Envelope(Invites))
      .addError(NotAMember)
      .addError(InsufficientRole)
      .annotate(OpenApi.Summary, "List invitations to the tenant, newest first (owner or admin)")
  )
  .add(
    HttpApiEndpoint.post("invite", "/v1/tenants/:tenant_id/invites")
      .setPath(ofTenant)
      .setPayload(NewInvite)
      .addSuccess(Envelope(Invite).annotations(HttpApiSchema.annotations({ status: 201, identifier: "InviteCreated" })))
      .addError(NotAMember)
      .addError(InsufficientRole)
      .addError(AlreadyMember)
      .addError(TooManyLetters)
      .addError(InvalidRequest)
      .annotate(Example, { body: { email: "grace@example.com", role: "member" } })
      .annotate(
        OpenApi.Summary,
        "Invite a user by email (owner or admin); this replaces an open invitation to the same address"
      )
  )
  .add(
    HttpApiEndpoint.del("revokeInvite", "/v1/tenants/:tenant_id/invites/:invite_id")
      .setPath(Schema.Struct({ tenant_id: TenantId, invite_id: InviteId }))
      .addSuccess(Envelope(Invite))
      .addError(NotAMember)
      .addError(InsufficientRole)
      .addError(InviteNotFound)
      .annotate(OpenApi.Summary, "Revoke an invitation (owner or admin)")
  )
  .add(
    HttpApiEndpoint.post("acceptInvite", "/v1/tenant-invites/:token/accept")
      .setPath(Schema.Struct({ token: Schema.String }))
      .addSuccess(Envelope(Membership))
      .addError(InviteNotFound)
      .addError(EmailMismatch)
      .addError(TeamFull)
      .addError(TooManyTenants)
      .annotate(OpenApi.Summary, "Join with the token from an email")
  )
  .add(
    HttpApiEndpoint.get("settings", "/v1/tenants/:tenant_id")
      .setPath(ofTenant)
      .addSuccess(Envelope(TenantSettings))
      .addError(NotAMember)
      .annotate(OpenApi.Summary, "Get the tenant's settings")
  )
  .add(
    HttpApiEndpoint.patch("setSettings", "/v1/tenants/:tenant_id")
      .setPath(ofTenant)
      .setPayload(TenantChange)
      .addSuccess(Envelope(TenantSettings))
      .addError(NotAMember)
      .addError(InsufficientRole)
      .addError(InvalidRequest)
      .annotate(Example, { body: { attribution_tags: true } })
      .annotate(OpenApi.Summary, "Change the tenant's settings (owner or admin)")
  )
  .add(
    HttpApiEndpoint.get("plan", "/v1/tenants/:tenant_id/plan")
      .setPath(ofTenant)
      .addSuccess(Envelope(TenantPlan))
      .addError(NotAMember)
      .annotate(OpenApi.Summary, "Get the tenant's plan and its seats")
  )
  .add(
    HttpApiEndpoint.put("setPlan", "/v1/tenants/:tenant_id/plan")
      .setPath(ofTenant)
      .setPayload(PlanChange)
      .addSuccess(Envelope(TenantPlan))
      .addError(NotAMember)
      .addError(InsufficientRole)
      .addError(InvalidRequest)
      .annotate(Example, { body: { plan: "team", seats: 5 } })
      .annotate(OpenApi.Summary, "Set the plan and its seats (owner or admin)")
  )
  .middleware(OrganizationToken) {}

export class TenantInvitesApi extends HttpApiGroup.make("tenantInvites").add(
  HttpApiEndpoint.get("preview", "/v1/tenant-invites/:token")
    .setPath(Schema.Struct({ token: Schema.String }))
    .addSuccess(Envelope(InvitePreview))
    .addError(InviteNotFound)
    .addError(RateLimited)
    .annotate(OpenApi.Summary, "Get the invitation that a link refers to, without a credential")
) {}
