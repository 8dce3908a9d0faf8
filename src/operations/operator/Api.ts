/** The operator's routes: their session, the audit log, what is found, and what is done. */
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
import { AccountNotFound, ApplicationNotFound } from "../../people/tenants/Problems.ts"
import { Explanation } from "../../money/usage/Explanation.ts"
import { UsageNotFound } from "../../money/usage/Problems.ts"
import { RecordPage, RecordsQuery } from "../../money/usage/Usage.ts"
import { Credited, KeyRevoked, Line, NewCredit, PersonChanged, Reason, SignInsEnded, TenantChanged } from "./Act.ts"
import { AuditEntry } from "./Audit.ts"
import { Found, PersonDetail, TenantDetail, TenantLine } from "./Found.ts"
import { Flight, InvariantsLooked, NewVerification, Owed, ReservationLine, Verifications, Work } from "./Flight.ts"
import { after, before, Keyset, limit } from "./Keyset.ts"
import { AlreadyRunning, BalanceBeyondBooks, ReferenceUsed, TenantClosed, TenantNotFound } from "./Problems.ts"
import { OperatorToken } from "./Security.ts"
import { Costs, dayQuery, Drift, UpstreamList } from "./Upstream.ts"
import { Me, SessionEnded, SessionRequest, Sessions, SessionToken } from "./Session.ts"

const ofTenant = Schema.Struct({ tenant_id: TenantId })
const ofPerson = Schema.Struct({ account_id: AccountId })

const reasonQuery = Schema.Struct({
  reason: Schema.optional(Line.annotations({ description: "Why it is done: for the audit log" }))
})

/** The longest invoice. */
const invoiceBytesMax = 4 * 1024 * 1024

/** How a browser of the operator's comes in. By its cookie, so pages of this service alone may ask. */
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
        "A short access token for the operator's routes: for the code of a link (`tollgate operator`), which sets a cookie, or for that cookie; 204 with neither"
      )
  )
  .add(
    HttpApiEndpoint.del("close", "/console/operator/session")
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "End the session of the cookie, with its tokens")
  )
  .addError(InvalidToken)
  .addError(RouteNotFound)
  .addError(CrossOrigin)
  .addError(RateLimited) {}

export class OperatorApi extends HttpApiGroup.make("operator")
  .add(
    HttpApiEndpoint.get("me", "/v1/operator/me")
      .addSuccess(Envelope(Me))
      .annotate(OpenApi.Summary, "Who acts, by which session")
  )
  .add(
    HttpApiEndpoint.get("sessions", "/v1/operator/sessions")
      .addSuccess(Envelope(Sessions))
      .annotate(OpenApi.Summary, "Links and sessions of operators that have not ended")
  )
  .add(
    HttpApiEndpoint.del("endSession", "/v1/operator/sessions/:session_id")
      .setPath(Schema.Struct({ session_id: Schema.String }))
      .addSuccess(Envelope(SessionEnded))
      .annotate(OpenApi.Summary, "End a link or a session of an operator")
  )
  .add(
    HttpApiEndpoint.get("audit", "/v1/operator/audit")
      .setUrlParams(
        Schema.Struct({
          limit,
          before,
          operator: Schema.optional(Schema.String.annotations({ description: "Only what this operator did" })),
          tenant_id: Schema.optional(Schema.String.annotations({ description: "Only what was done to this tenant" })),
          account_id: Schema.optional(Schema.String.annotations({ description: "Only what was done to this person" }))
        })
      )
      .addSuccess(Envelope(Keyset(AuditEntry)))
      .annotate(OpenApi.Summary, "What operators did, over HTTP and by commands, the newest first")
  )
  .add(
    HttpApiEndpoint.get("search", "/v1/operator/search")
      .setUrlParams(
        Schema.Struct({
          q: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200)).annotations({
            description: "An id, a reference, or the beginning of a name, an address or a key; never a whole key"
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
      .annotate(OpenApi.Summary, "All tenants, the newest first")
  )
  .add(
    HttpApiEndpoint.get("tenant", "/v1/operator/tenants/:tenant_id")
      .setPath(ofTenant)
      .addSuccess(Envelope(TenantDetail))
      .addError(TenantNotFound)
      .annotate(OpenApi.Summary, "A tenant: its money, plan, members and keys")
  )
  .add(
    HttpApiEndpoint.get("ledger", "/v1/operator/tenants/:tenant_id/ledger")
      .setPath(ofTenant)
      .setUrlParams(LedgerQuery)
      .addSuccess(Envelope(LedgerPage))
      .addError(TenantNotFound)
      .annotate(OpenApi.Summary, "A tenant's ledger, newest entry first")
  )
  .add(
    HttpApiEndpoint.get("usage", "/v1/operator/tenants/:tenant_id/usage")
      .setPath(ofTenant)
      .setUrlParams(RecordsQuery)
      .addSuccess(Envelope(RecordPage))
      .annotate(OpenApi.Summary, "The calls of a tenant, the latest first unless asked otherwise")
  )
  .add(
    HttpApiEndpoint.get("explain", "/v1/operator/usage/:usage_id/explain")
      .setPath(Schema.Struct({ usage_id: Schema.String }))
      .addSuccess(Envelope(Explanation))
      .addError(UsageNotFound)
      .annotate(OpenApi.Summary, "A charge computed again, as the tenant that called sees it")
  )
  .add(
    HttpApiEndpoint.get("person", "/v1/operator/people/:account_id")
      .setPath(ofPerson)
      .addSuccess(Envelope(PersonDetail))
      .addError(AccountNotFound)
      .annotate(OpenApi.Summary, "A person: identities, memberships, keys and sign-ins")
  )
  .add(
    HttpApiEndpoint.post("grant", "/v1/operator/tenants/:tenant_id/grants")
      .setPath(ofTenant)
      .setPayload(NewCredit)
      .addSuccess(Envelope(Credited))
      .addError(TenantNotFound)
      .addError(ReferenceUsed)
      .addError(BalanceBeyondBooks)
      .annotate(Example, { body: { amount: 5, reference: "case 4711", reason: "for the outage of Monday" } })
      .annotate(OpenApi.Summary, "Give a tenant credit that it can spend but not send on, once for a reference")
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
      .annotate(OpenApi.Summary, "Book a purchase that was paid another way, once for a reference")
  )
  .add(
    HttpApiEndpoint.post("suspendTenant", "/v1/operator/tenants/:tenant_id/suspend")
      .setPath(ofTenant)
      .setPayload(Reason)
      .addSuccess(Envelope(TenantChanged))
      .addError(TenantNotFound)
      .addError(TenantClosed)
      .annotate(Example, { body: { reason: "a card that was stolen" } })
      .annotate(OpenApi.Summary, "Suspend a tenant: it pays for no call and sends no transfer until it is activated")
  )
  .add(
    HttpApiEndpoint.post("activateTenant", "/v1/operator/tenants/:tenant_id/activate")
      .setPath(ofTenant)
      .setPayload(Reason)
      .addSuccess(Envelope(TenantChanged))
      .addError(TenantNotFound)
      .addError(TenantClosed)
      .annotate(Example, { body: {} })
      .annotate(OpenApi.Summary, "Activate a tenant that was suspended")
  )
  .add(
    HttpApiEndpoint.post("suspendPerson", "/v1/operator/people/:account_id/suspend")
      .setPath(ofPerson)
      .setPayload(Reason)
      .addSuccess(Envelope(PersonChanged))
      .addError(AccountNotFound)
      .annotate(Example, { body: { reason: "an account that was taken over" } })
      .annotate(
        OpenApi.Summary,
        "Suspend a person: their sign-ins end, and neither they nor their keys get in until they are activated"
      )
  )
  .add(
    HttpApiEndpoint.post("activatePerson", "/v1/operator/people/:account_id/activate")
      .setPath(ofPerson)
      .setPayload(Reason)
      .addSuccess(Envelope(PersonChanged))
      .addError(AccountNotFound)
      .annotate(Example, { body: {} })
      .annotate(OpenApi.Summary, "Activate a person who was suspended")
  )
  .add(
    HttpApiEndpoint.del("revokeKey", "/v1/operator/keys/:application_id")
      .setPath(Schema.Struct({ application_id: ApplicationId }))
      .setUrlParams(reasonQuery)
      .addSuccess(Envelope(KeyRevoked))
      .addError(ApplicationNotFound)
      .annotate(OpenApi.Summary, "Revoke an API key, whosever it is")
  )
  .add(
    HttpApiEndpoint.del("endSignIns", "/v1/operator/people/:account_id/sign-ins")
      .setPath(ofPerson)
      .setUrlParams(reasonQuery)
      .addSuccess(Envelope(SignInsEnded))
      .addError(AccountNotFound)
      .annotate(OpenApi.Summary, "End all sign-ins of a person, those of applications too")
  )
  .add(
    HttpApiEndpoint.get("upstreams", "/v1/operator/upstreams")
      .addSuccess(Envelope(UpstreamList))
      .annotate(OpenApi.Summary, "How the upstreams have answered in the last minutes, and which models they serve")
  )
  .add(
    HttpApiEndpoint.get("costs", "/v1/operator/costs")
      .setUrlParams(
        Schema.Struct({
          from: Schema.optional(dayQuery("The first day (UTC); six days before the last unless it is given")),
          to: Schema.optional(dayQuery("The last day (UTC); today unless it is given"))
        })
      )
      .addSuccess(Envelope(Costs))
      .annotate(OpenApi.Summary, "What was served and charged over all tenants, by day, provider and model")
  )
  .add(
    HttpApiEndpoint.post("drift", "/v1/operator/drift")
      .setUrlParams(
        Schema.Struct({
          provider: Schema.optional(
            Schema.String.annotations({
              description: "Whose invoice it is: only what this provider served is compared"
            })
          )
        })
      )
      .setPayload(HttpApiSchema.Text({ contentType: "text/csv" }))
      .addSuccess(Envelope(Drift))
      .addError(UnsupportedMediaType)
      .annotate(BodyBytesMax, invoiceBytesMax)
      .annotate(Example, { body: "date,model,cost\n2026-03-01,sandbox-small,0.25\n" })
      .annotate(OpenApi.Summary, "A vendor's invoice (CSV) beside what was charged, by day and model")
  )
  .add(
    HttpApiEndpoint.get("flight", "/v1/operator/flight")
      .addSuccess(Envelope(Flight))
      .annotate(OpenApi.Summary, "What is reserved and in escrow, by age; what is unsettled and owed")
  )
  .add(
    HttpApiEndpoint.get("reservations", "/v1/operator/reservations")
      .setUrlParams(Schema.Struct({ limit, after }))
      .addSuccess(Envelope(Keyset(ReservationLine)))
      .annotate(OpenApi.Summary, "Open reservations, the oldest first")
  )
  .add(
    HttpApiEndpoint.get("owed", "/v1/operator/owed")
      .addSuccess(Envelope(Owed))
      .annotate(OpenApi.Summary, "Refunds and disputes that balances could not give back")
  )
  .add(
    HttpApiEndpoint.get("loops", "/v1/operator/loops")
      .addSuccess(Envelope(Work))
      .annotate(OpenApi.Summary, "The loops of the service, its generation jobs and its outbox")
  )
  .add(
    HttpApiEndpoint.get("verifications", "/v1/operator/verify")
      .addSuccess(Envelope(Verifications))
      .annotate(OpenApi.Summary, "When the books were last found right, and how far a verification is that runs")
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
        "Server-sent events: `figures` once a second (calls a second, what is reserved and in escrow, open and unsettled calls, loops), and " +
          "`end` with a reason, the last one"
      )
  )
  .add(
    HttpApiEndpoint.post("invariants", "/v1/operator/invariants")
      .addSuccess(Envelope(InvariantsLooked))
      .addError(AlreadyRunning)
      .annotate(OpenApi.Summary, "Look at the invariants that cost little, now")
  )
  .addError(InvalidRequest)
  .middleware(OperatorToken) {}
