/** The operator's routes that create people, tenants and keys under the caller's own ids. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { InsufficientScope } from "../../people/credentials/Problems.ts"
import { AlreadyMember, TeamFull, TooManyApplications, TooManyTenants } from "../../people/tenants/Problems.ts"
import { MailUnavailable, TooManyLetters } from "../../people/mail/Problems.ts"
import { KeyLine, PersonLine } from "../operator/Found.ts"
import { before, Keyset, limit } from "../operator/Keyset.ts"
import { BalanceBeyondBooks, TenantClosed, TenantNotFound } from "../operator/Problems.ts"
import { OperatorToken } from "../operator/Security.ts"
import { ExternalIdNotFound, ExternalIdUsed, NoHolder } from "./Problems.ts"
import {
  ExternalId,
  InviteSent,
  InviteWanted,
  KeyWanted,
  PersonWanted,
  ProvisionedKey,
  ProvisionedPerson,
  ProvisionedTenant,
  Removed,
  TenantWanted
} from "./Provision.ts"

const byExternalId = Schema.Struct({ external_id: ExternalId })
const page = Schema.Struct({ limit, before })

export class ProvisioningApi extends HttpApiGroup.make("operatorProvisioning")
  .add(
    HttpApiEndpoint.get("people", "/v1/operator/people")
      .setUrlParams(page)
      .addSuccess(Envelope(Keyset(PersonLine)))
      .annotate(OpenApi.Summary, "List all people, newest first")
  )
  .add(
    HttpApiEndpoint.post("createPerson", "/v1/operator/people")
      .setPayload(PersonWanted.pipe(Schema.omit("credit_usd")))
      .addSuccess(Envelope(ProvisionedPerson))
      .addError(InsufficientScope)
      .addError(BalanceBeyondBooks)
      .addError(TenantClosed)
      .addError(ExternalIdNotFound)
      .addError(TeamFull)
      .addError(TooManyTenants)
      .annotate(Example, { body: { email: "grace@example.com", name: "Grace" } })
      .annotate(OpenApi.Summary, "Create a person by email address, unless an account already has that address")
  )
  .add(
    HttpApiEndpoint.put("putPerson", "/v1/operator/people/by-external-id/:external_id")
      .setPath(byExternalId)
      .setPayload(PersonWanted)
      .addSuccess(Envelope(ProvisionedPerson))
      .addError(InsufficientScope)
      .addError(ExternalIdUsed)
      .addError(ExternalIdNotFound)
      .addError(TeamFull)
      .addError(TooManyTenants)
      .addError(BalanceBeyondBooks)
      .addError(TenantClosed)
      .annotate(Example, { body: { email: "grace@example.com", name: "Grace", credit_usd: 5 } })
      .annotate(OpenApi.Summary, "Create or update a person; repeating the request changes nothing")
  )
  .add(
    HttpApiEndpoint.get("findPerson", "/v1/operator/people/by-external-id/:external_id")
      .setPath(byExternalId)
      .addSuccess(Envelope(ProvisionedPerson))
      .addError(ExternalIdNotFound)
      .annotate(OpenApi.Summary, "Get a person by external id")
  )
  .add(
    HttpApiEndpoint.del("removePerson", "/v1/operator/people/by-external-id/:external_id")
      .setPath(byExternalId)
      .addSuccess(Envelope(Removed))
      .addError(ExternalIdNotFound)
      .annotate(OpenApi.Summary, "Suspend a person and revoke their keys, without deleting credit or records")
  )
  .add(
    HttpApiEndpoint.post("createTenant", "/v1/operator/tenants")
      .setPayload(TenantWanted.pipe(Schema.omit("credit_usd")))
      .addSuccess(Envelope(ProvisionedTenant))
      .addError(InsufficientScope)
      .addError(TooManyTenants)
      .addError(BalanceBeyondBooks)
      .addError(TenantClosed)
      .annotate(Example, { body: { name: "Chemistry", owner_email: "grace@example.com" } })
      .annotate(OpenApi.Summary, "Create a tenant with its first owner; every request creates another tenant")
  )
  .add(
    HttpApiEndpoint.put("putTenant", "/v1/operator/tenants/by-external-id/:external_id")
      .setPath(byExternalId)
      .setPayload(TenantWanted)
      .addSuccess(Envelope(ProvisionedTenant))
      .addError(InsufficientScope)
      .addError(ExternalIdUsed)
      .addError(TooManyTenants)
      .addError(BalanceBeyondBooks)
      .addError(TenantClosed)
      .annotate(Example, { body: { name: "Physics", owner_email: "grace@example.com", credit_usd: 100 } })
      .annotate(OpenApi.Summary, "Create or update a tenant; repeating the request changes nothing")
  )
  .add(
    HttpApiEndpoint.get("findTenant", "/v1/operator/tenants/by-external-id/:external_id")
      .setPath(byExternalId)
      .addSuccess(Envelope(ProvisionedTenant))
      .addError(ExternalIdNotFound)
      .annotate(OpenApi.Summary, "Get a tenant by external id")
  )
  .add(
    HttpApiEndpoint.del("removeTenant", "/v1/operator/tenants/by-external-id/:external_id")
      .setPath(byExternalId)
      .addSuccess(Envelope(Removed))
      .addError(ExternalIdNotFound)
      .annotate(OpenApi.Summary, "Suspend a tenant and revoke its keys, without deleting credit or records")
  )
  .add(
    HttpApiEndpoint.post("invite", "/v1/operator/invites")
      .setPayload(InviteWanted)
      .addSuccess(Envelope(InviteSent))
      .addError(InsufficientScope)
      .addError(TenantNotFound)
      .addError(NoHolder)
      .addError(AlreadyMember)
      .addError(TooManyLetters)
      .addError(MailUnavailable)
      .annotate(Example, { body: { email: "grace@example.com", name: "Grace" } })
      .annotate(OpenApi.Summary, "Email a person a link that opens their console or lets them join a tenant")
  )
  .add(
    HttpApiEndpoint.get("keys", "/v1/operator/keys")
      .setUrlParams(page)
      .addSuccess(Envelope(Keyset(KeyLine)))
      .annotate(OpenApi.Summary, "List all API keys, newest first, without the keys themselves")
  )
  .add(
    HttpApiEndpoint.put("putKey", "/v1/operator/keys/by-external-id/:external_id")
      .setPath(byExternalId)
      .setPayload(KeyWanted)
      .addSuccess(Envelope(ProvisionedKey))
      .addError(ExternalIdUsed)
      .addError(ExternalIdNotFound)
      .addError(TenantNotFound)
      .addError(NoHolder)
      .addError(TooManyApplications)
      .annotate(Example, {
        body: {
          person_external_id: "student-17",
          name: "notebook",
          spending_limit_usd: 20,
          spending_limit_period: "month",
          allowed_models: ["sandbox-small"]
        }
      })
      .annotate(
        OpenApi.Summary,
        "Create an API key, or change its name and limits. Only the response that creates the key contains it (`api_key`)"
      )
  )
  .add(
    HttpApiEndpoint.get("findKey", "/v1/operator/keys/by-external-id/:external_id")
      .setPath(byExternalId)
      .addSuccess(Envelope(ProvisionedKey))
      .addError(ExternalIdNotFound)
      .annotate(OpenApi.Summary, "Get an API key by external id, without the key itself")
  )
  .add(
    HttpApiEndpoint.del("removeKey", "/v1/operator/keys/by-external-id/:external_id")
      .setPath(byExternalId)
      .addSuccess(Envelope(Removed))
      .addError(ExternalIdNotFound)
      .annotate(OpenApi.Summary, "Revoke an API key by external id")
  )
  .addError(InvalidRequest)
  .middleware(OperatorToken) {}
