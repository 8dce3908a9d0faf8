/** The operator's routes for sessions, the audit log, search, actions and monitoring. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { InvalidToken } from "../../people/credentials/Problems.ts"
import { LedgerPage, LedgerQuery } from "../../money/billing/Billing.ts"
import { BodyBytesMax, NoHead } from "../../http/contract/Annotations.ts"
import { Example } from "../../http/contract/Documented.ts"
import { CrossOrigin, RateLimited, RouteNotFound, UnsupportedMediaType } from "../../http/contract/Problems.ts"
import { Busy } from "../../kernel/Busy.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { PasskeyId, Passkeys } from "../../people/passkeys/Passkey.ts"
import { PasskeyNotFound } from "../../people/passkeys/Problems.ts"
import { AccountNotFound, ApplicationNotFound } from "../../people/tenants/Problems.ts"
import { Explanation } from "../../money/usage/Explanation.ts"
import { UsageNotFound } from "../../money/usage/Problems.ts"
import { RecordPage, RecordsQuery } from "../../money/usage/Usage.ts"
import {
  Credited,
  KeyRevoked,
  Line,
  NewCredit,
  PasskeyDeleted,
  PersonChanged,
  Reason,
  SignInsEnded,
  TakenBack,
  TenantChanged
} from "./Act.ts"
import { AuditEntry } from "./Audit.ts"
import { Found, PersonDetail, TenantDetail, TenantLine } from "./Found.ts"
import {
  InvariantChecks,
  MoneyInFlight,
  NewVerification,
  Owed,
  ReservationLine,
  Verifications,
  Work
} from "./Figures.ts"
import { after, before, Keyset, limit } from "./Keyset.ts"
import { CreatedManagementKey, ManagementKeyEnded, ManagementKeys, NewManagementKey } from "./ManagementKey.ts"
import {
  AlreadyRunning,
  BalanceBeyondBooks,
  ReferenceUsed,
  ReloadRefused,
  TenantClosed,
  TenantNotFound
} from "./Problems.ts"
import { Reloaded } from "./Reload.ts"
import { OperatorToken } from "./Security.ts"
import { Costs, dayQuery, Drift, UpstreamList } from "./Upstream.ts"
import { Me, SessionEnded, SessionRequest, Sessions, SessionToken } from "./Session.ts"

const ofTenant = Schema.Struct({ tenant_id: TenantId })
const ofPerson = Schema.Struct({ account_id: AccountId })

const reasonQuery = Schema.Struct({
  reason: Schema.optional(Line.annotations({ description: "The reason, for the audit log" }))
})

const invoiceBytesMax = 4 * 1024 * 1024

/** The operator's browser sessions, authenticated by a cookie. Only this service's own pages may call these routes. */
export class OperatorSessionApi extends HttpApiGroup.make("operatorSession")
  .add(
    HttpApiEndpoint.post("open", "/console/operator/session")
      .setPayload(SessionRequest)
      .addSuccess(SessionToken)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(UnsupportedMediaType)
      .addError(InvalidRequest)
      .annotate(Example, { body: { code: "{operator_code}" } })
      .annotate(
        OpenApi.Summary,
        "Get a short-lived access token for the operator's routes, with the code from a link (`tollgate operator`) or with the cookie that the code sets; 204 with neither"
      )
  )
  .add(
    HttpApiEndpoint.del("close", "/console/operator/session")
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "End the cookie's session and its tokens")
  )
  .addError(InvalidToken)
  .addError(RouteNotFound)
  .addError(CrossOrigin)
  .addError(RateLimited) {}

export class OperatorApi extends HttpApiGroup.make("operator")
  .add(
    HttpApiEndpoint.get("me", "/v1/operator/me")
      .addSuccess(Envelope(Me))
      .annotate(OpenApi.Summary, "Show the current operator and session")
  )
  .add(
    HttpApiEndpoint.get("sessions", "/v1/operator/sessions")
      .addSuccess(Envelope(Sessions))
      .annotate(OpenApi.Summary, "List the open links and sessions of operators")
  )
  .add(
    HttpApiEndpoint.del("endSession", "/v1/operator/sessions/:session_id")
      .setPath(Schema.Struct({ session_id: Schema.String }))
      .addSuccess(Envelope(SessionEnded))
      .annotate(OpenApi.Summary, "End an operator's link or session")
  )
  .add(
    HttpApiEndpoint.get("managementKeys", "/v1/operator/management-keys")
      .addSuccess(Envelope(ManagementKeys))
      .annotate(OpenApi.Summary, "List active management keys, newest first, without the keys themselves")
  )
  .add(
    HttpApiEndpoint.post("createManagementKey", "/v1/operator/management-keys")
      .setPayload(NewManagementKey)
      .addSuccess(Envelope(CreatedManagementKey), { status: 201 })
      .annotate(Example, {
        body: { name: "terraform", scopes: ["read", "people", "tenants", "keys"], expires_at: "2027-11-01T00:00:00Z" }
      })
      .annotate(OpenApi.Summary, "Create a management key for a program. Only this response contains the key")
  )
  .add(
    HttpApiEndpoint.del("endManagementKey", "/v1/operator/management-keys/:key_id")
      .setPath(Schema.Struct({ key_id: Schema.String }))
      .addSuccess(Envelope(ManagementKeyEnded))
      .annotate(OpenApi.Summary, "Revoke a management key immediately")
  )
  .add(
    HttpApiEndpoint.get("audit", "/v1/operator/audit")
      .setUrlParams(
        Schema.Struct({
          limit,
          before,
          operator: Schema.optional(Schema.String.annotations({ description: "Return only actions by this operator" })),
          tenant_id: Schema.optional(Schema.String.annotations({ description: "Return only actions on this tenant" })),
          account_id: Schema.optional(Schema.String.annotations({ description: "Return only actions on this person" }))
        })
      )
      .addSuccess(Envelope(Keyset(AuditEntry)))
      .annotate(OpenApi.Summary, "List the actions of operators over HTTP and with commands, newest first")
  )
  .add(
    HttpApiEndpoint.get("search", "/v1/operator/search")
      .setUrlParams(
        Schema.Struct({
          q: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200)).annotations({
            description:
              "An id, a reference, or the beginning of a name, an address or a key (never send a complete key)"
          }),
          limit
        })
      )
      .addSuccess(Envelope(Found))
      .annotate(Example, { query: { q: "ada@example.com" } })
      .annotate(OpenApi.Summary, "Find tenants, people, keys, calls, transfers and payments")
  )
  .add(
    HttpApiEndpoint.get("tenants", "/v1/operator/tenants")
      .setUrlParams(Schema.Struct({ limit, before }))
      .addSuccess(Envelope(Keyset(TenantLine)))
      .annotate(OpenApi.Summary, "List all tenants, newest first")
  )
  .add(
    HttpApiEndpoint.get("tenant", "/v1/operator/tenants/:tenant_id")
      .setPath(ofTenant)
      .addSuccess(Envelope(TenantDetail))
      .addError(TenantNotFound)
      .annotate(OpenApi.Summary, "Get a tenant with its money, plan, members and keys")
  )
  .add(
    HttpApiEndpoint.get("ledger", "/v1/operator/tenants/:tenant_id/ledger")
      .setPath(ofTenant)
      .setUrlParams(LedgerQuery)
      .addSuccess(Envelope(LedgerPage))
      .addError(TenantNotFound)
      .annotate(OpenApi.Summary, "List a tenant's ledger, newest entry first")
  )
  .add(
    HttpApiEndpoint.get("usage", "/v1/operator/tenants/:tenant_id/usage")
      .setPath(ofTenant)
      .setUrlParams(RecordsQuery)
      .addSuccess(Envelope(RecordPage))
      .annotate(OpenApi.Summary, "List a tenant's calls, latest first by default")
  )
  .add(
    HttpApiEndpoint.get("explain", "/v1/operator/usage/:usage_id/explain")
      .setPath(Schema.Struct({ usage_id: Schema.String }))
      .addSuccess(Envelope(Explanation))
      .addError(UsageNotFound)
      .annotate(OpenApi.Summary, "Explain a charge, as the explanation is shown to the calling tenant")
  )
  .add(
    HttpApiEndpoint.get("person", "/v1/operator/people/:account_id")
      .setPath(ofPerson)
      .addSuccess(Envelope(PersonDetail))
      .addError(AccountNotFound)
      .annotate(OpenApi.Summary, "Get a person with their identities, memberships, keys and sign-ins")
  )
  .add(
    HttpApiEndpoint.post("grant", "/v1/operator/tenants/:tenant_id/grants")
      .setPath(ofTenant)
      .setPayload(NewCredit)
      .addSuccess(Envelope(Credited))
      .addError(TenantNotFound)
      .addError(ReferenceUsed)
      .addError(BalanceBeyondBooks)
      .annotate(Example, { body: { amount: 5, reference: "case 4711", reason: "for Monday's outage" } })
      .annotate(OpenApi.Summary, "Give a tenant credit that it can spend but not transfer, once per reference")
  )
  .add(
    HttpApiEndpoint.post("takeBack", "/v1/operator/tenants/:tenant_id/take-backs")
      .setPath(ofTenant)
      .setPayload(NewCredit)
      .addSuccess(Envelope(TakenBack))
      .addError(TenantNotFound)
      .addError(ReferenceUsed)
      .annotate(Example, { body: { amount: 1, reference: "case 4712", reason: "granted to the wrong tenant" } })
      .annotate(
        OpenApi.Summary,
        "Take back the part of a mistaken grant that is neither spent nor reserved, once per reference"
      )
  )
  .add(
    HttpApiEndpoint.post("purchase", "/v1/operator/tenants/:tenant_id/purchases")
      .setPath(ofTenant)
      .setPayload(NewCredit)
      .addSuccess(Envelope(Credited))
      .addError(TenantNotFound)
      .addError(ReferenceUsed)
      .addError(BalanceBeyondBooks)
      .annotate(Example, { body: { amount: 100, reference: "invoice 2026-17" } })
      .annotate(OpenApi.Summary, "Record a purchase that was paid outside the service, once per reference")
  )
  .add(
    HttpApiEndpoint.post("suspendTenant", "/v1/operator/tenants/:tenant_id/suspend")
      .setPath(ofTenant)
      .setPayload(Reason)
      .addSuccess(Envelope(TenantChanged))
      .addError(TenantNotFound)
      .addError(TenantClosed)
      .annotate(Example, { body: { reason: "stolen card" } })
      .annotate(OpenApi.Summary, "Suspend a tenant; until it is activated, it pays for no calls and sends no transfers")
  )
  .add(
    HttpApiEndpoint.post("activateTenant", "/v1/operator/tenants/:tenant_id/activate")
      .setPath(ofTenant)
      .setPayload(Reason)
      .addSuccess(Envelope(TenantChanged))
      .addError(TenantNotFound)
      .addError(TenantClosed)
      .annotate(Example, { body: {} })
      .annotate(OpenApi.Summary, "Activate a suspended tenant")
  )
  .add(
    HttpApiEndpoint.post("suspendPerson", "/v1/operator/people/:account_id/suspend")
      .setPath(ofPerson)
      .setPayload(Reason)
      .addSuccess(Envelope(PersonChanged))
      .addError(AccountNotFound)
      .annotate(Example, { body: { reason: "account taken over" } })
      .annotate(
        OpenApi.Summary,
        "Suspend a person and end their sign-ins; until they are activated, the service refuses them and their keys"
      )
  )
  .add(
    HttpApiEndpoint.post("activatePerson", "/v1/operator/people/:account_id/activate")
      .setPath(ofPerson)
      .setPayload(Reason)
      .addSuccess(Envelope(PersonChanged))
      .addError(AccountNotFound)
      .annotate(Example, { body: {} })
      .annotate(OpenApi.Summary, "Activate a suspended person")
  )
  .add(
    HttpApiEndpoint.del("revokeKey", "/v1/operator/keys/:application_id")
      .setPath(Schema.Struct({ application_id: ApplicationId }))
      .setUrlParams(reasonQuery)
      .addSuccess(Envelope(KeyRevoked))
      .addError(ApplicationNotFound)
      .annotate(OpenApi.Summary, "Revoke any API key")
  )
  .add(
    HttpApiEndpoint.del("endSignIns", "/v1/operator/people/:account_id/sign-ins")
      .setPath(ofPerson)
      .setUrlParams(
        Schema.Struct({
          ...reasonQuery.fields,
          passkeys: Schema.optional(
            Schema.BooleanFromString.annotations({
              description:
                "Whether to also delete the person's passkeys; by default, the passkeys remain and can sign in again"
            })
          )
        })
      )
      .addSuccess(Envelope(SignInsEnded))
      .addError(AccountNotFound)
      .annotate(
        OpenApi.Summary,
        "End all of a person's sign-ins, including those of applications, and optionally delete the person's passkeys"
      )
  )
  .add(
    HttpApiEndpoint.get("passkeys", "/v1/operator/people/:account_id/passkeys")
      .setPath(ofPerson)
      .addSuccess(Envelope(Passkeys))
      .addError(AccountNotFound)
      .annotate(OpenApi.Summary, "List a person's passkeys, oldest first")
  )
  .add(
    HttpApiEndpoint.del("deletePasskey", "/v1/operator/people/:account_id/passkeys/:passkey_id")
      .setPath(Schema.Struct({ account_id: AccountId, passkey_id: PasskeyId }))
      .setUrlParams(reasonQuery)
      .addSuccess(Envelope(PasskeyDeleted))
      .addError(AccountNotFound)
      .addError(PasskeyNotFound)
      .annotate(OpenApi.Summary, "Delete a person's passkey, so that it can no longer sign in")
  )
  .add(
    HttpApiEndpoint.get("upstreams", "/v1/operator/upstreams")
      .addSuccess(Envelope(UpstreamList))
      .annotate(OpenApi.Summary, "Get the upstreams' health over the last few minutes and the models that they serve")
  )
  .add(
    HttpApiEndpoint.get("costs", "/v1/operator/costs")
      .setUrlParams(
        Schema.Struct({
          from: Schema.optional(dayQuery("The first day (UTC); by default six days before the last")),
          to: Schema.optional(dayQuery("The last day (UTC); by default today"))
        })
      )
      .addSuccess(Envelope(Costs))
      .annotate(OpenApi.Summary, "Get usage and charges over all tenants, by day, provider and model")
  )
  .add(
    HttpApiEndpoint.post("drift", "/v1/operator/drift")
      .setUrlParams(
        Schema.Struct({
          provider: Schema.optional(
            Schema.String.annotations({
              description: "Compare only with calls that this provider served"
            })
          )
        })
      )
      .setPayload(HttpApiSchema.Text({ contentType: "text/csv" }))
      .addSuccess(Envelope(Drift))
      .addError(UnsupportedMediaType)
      .annotate(BodyBytesMax, invoiceBytesMax)
      .annotate(Example, { body: "date,model,cost\n2026-03-01,sandbox-small,0.25\n" })
      .annotate(OpenApi.Summary, "Compare a vendor's invoice (CSV) with our charges, by day and model")
  )
  .add(
    HttpApiEndpoint.get("flight", "/v1/operator/flight")
      .addSuccess(Envelope(MoneyInFlight))
      .annotate(OpenApi.Summary, "Get reservations and escrow by age, unsettled calls and debts")
  )
  .add(
    HttpApiEndpoint.get("reservations", "/v1/operator/reservations")
      .setUrlParams(Schema.Struct({ limit, after }))
      .addSuccess(Envelope(Keyset(ReservationLine)))
      .annotate(OpenApi.Summary, "List open reservations, oldest first")
  )
  .add(
    HttpApiEndpoint.get("owed", "/v1/operator/owed")
      .addSuccess(Envelope(Owed))
      .annotate(OpenApi.Summary, "List refunded and disputed amounts that the balances could not cover")
  )
  .add(
    HttpApiEndpoint.get("loops", "/v1/operator/loops")
      .addSuccess(Envelope(Work))
      .annotate(OpenApi.Summary, "Get the state of the service's loops, generation jobs and outbox")
  )
  .add(
    HttpApiEndpoint.get("verifications", "/v1/operator/verify")
      .addSuccess(Envelope(Verifications))
      .annotate(OpenApi.Summary, "Get the last verifications of the books and the progress of a running verification")
  )
  .add(
    HttpApiEndpoint.post("verify", "/v1/operator/verify")
      .setPayload(NewVerification)
      .addSuccess(Envelope(Verifications), { status: 202 })
      .addError(AlreadyRunning)
      .annotate(Example, { body: { whole: false } })
      .annotate(OpenApi.Summary, "Start a verification of the books")
  )
  .add(
    HttpApiEndpoint.get("events", "/v1/operator/events")
      .addSuccess(HttpApiSchema.Text({ contentType: "text/event-stream" }))
      .addError(Busy)
      .annotate(NoHead, true)
      .annotate(
        OpenApi.Summary,
        "Stream server-sent events: `figures` once a second (calls per second, credit reserved and in escrow, open and unsettled calls, and loops), and " +
          "finally `end` with a reason"
      )
  )
  .add(
    HttpApiEndpoint.post("invariants", "/v1/operator/invariants")
      .addSuccess(Envelope(InvariantChecks))
      .addError(AlreadyRunning)
      .annotate(OpenApi.Summary, "Check the quick invariants now")
  )
  .add(
    HttpApiEndpoint.post("reload", "/v1/operator/reload")
      .addSuccess(Envelope(Reloaded))
      .addError(ReloadRefused)
      .annotate(
        OpenApi.Summary,
        "Reload the configuration file and apply changed entries, without a restart and without interrupting any call"
      )
  )
  .addError(InvalidRequest)
  .middleware(OperatorToken) {}
