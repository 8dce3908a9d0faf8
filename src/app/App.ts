/**
 * Assembles the service from layers. `domains` contains every service without HTTP and needs a database, its writer and the settings. `jobs` contains
 * the background loops. `face` is the service over HTTP, either on Node's own server or mounted on another server.
 */
import { HttpApiBuilder } from "@effect/platform"
import type { HttpApi } from "@effect/platform"
import { Effect, Layer } from "effect"
import { Api } from "./Api.ts"
import { knownCalls, knownModels } from "./CallNames.ts"
import { merged, partsOf } from "./Capabilities.ts"
import { Credentials } from "../people/auth/Credentials.ts"
import { Authorization } from "../people/auth/Authorization.ts"
import { Browser } from "../people/auth/Browser.ts"
import { BrowserSessions } from "../people/auth/BrowserSessions.ts"
import { Clients } from "../people/credentials/Clients.ts"
import { AuthHttp, BrowserHttp, ConsentHttp, OAuthHttp, UserInfoHttp } from "../people/auth/Http.ts"
import { SecurityHttp } from "../people/auth/SecurityHttp.ts"
import { Sessions } from "../people/auth/Sessions.ts"
import { SigningKeys } from "../people/auth/SigningKeys.ts"
import { Tokens } from "../people/auth/Tokens.ts"
import { Allowances } from "../money/allowances/Allowances.ts"
import { TenantPlans } from "../money/allowances/TenantPlans.ts"
import { AllowancesHttp } from "../money/allowances/Http.ts"
import { AutoReloads } from "../money/autoreload/AutoReloads.ts"
import { AutoReloadHttp } from "../money/autoreload/Http.ts"
import { BillingAccounts } from "../money/billing/BillingAccounts.ts"
import { BillingHttp } from "../money/billing/Http.ts"
import { ConsoleHttp } from "../console/Http.ts"
import { page } from "../console/PageHttp.ts"
import { Contacts } from "../people/contact/Contacts.ts"
import { ContactHttp } from "../people/contact/Http.ts"
import { Feed } from "../money/events/Feed.ts"
import { EventsHttp } from "../money/events/Http.ts"
import { CallObserver } from "../books/gate/CallObserver.ts"
import { Gate } from "../books/gate/Gate.ts"
import type { Authentication } from "../http/lanes/Authentication.ts"
import { Face } from "../http/lanes/Face.ts"
import { ApiMiddleware } from "../http/lanes/ApiMiddleware.ts"
import { Observer } from "../http/lanes/Observer.ts"
import { RateLimits } from "../http/transport/RateLimits.ts"
import { Idempotency } from "../http/idempotency/Idempotency.ts"
import { KeyTotalsIndexer } from "../books/ledger/totals/KeyTotalsIndexer.ts"
import { ProviderTotalsIndexer } from "../books/ledger/totals/ProviderTotalsIndexer.ts"
import { Ledger } from "../books/ledger/Ledger.ts"
import { SortedIndexer } from "../books/ledger/totals/SortedIndexer.ts"
import { TotalsIndexer } from "../books/ledger/totals/TotalsIndexer.ts"
import { Verifier } from "../books/ledger/audit/Verifier.ts"
import { ChargeLog } from "../books/log/ChargeLog.ts"
import { Cosigning } from "../books/log/Cosigning.ts"
import { Liabilities } from "../books/log/Liabilities.ts"
import { Outbox } from "../people/mail/Outbox.ts"
import { PasskeysHttp } from "../people/passkeys/Http.ts"
import { Passkeys } from "../people/passkeys/Passkeys.ts"
import { NotificationsHttp } from "../people/notifications/Http.ts"
import { Notifications } from "../people/notifications/Notifications.ts"
import { OperatorCreditHttp } from "../operations/credit/Http.ts"
import { ProvisioningHttp } from "../operations/provisioning/Http.ts"
import { Provisioning } from "../operations/provisioning/Provisioning.ts"
import { ScimTokenHttp } from "../operations/scim/Bearer.ts"
import { ScimHttp } from "../operations/scim/Http.ts"
import { BillDrifts, WitnessStates } from "../operations/ops/Gauges.ts"
import { ReconciliationsHttp } from "../operations/reconciliation/Http.ts"
import { Reconciliations } from "../operations/reconciliation/Reconciliations.ts"
import { Scim } from "../operations/scim/Scim.ts"
import { OperatorActs } from "../operations/operator/Acts.ts"
import { AuditLog } from "../operations/operator/AuditLog.ts"
import { OperatorDirectory } from "../operations/operator/Directory.ts"
import { OperatorHttp } from "../operations/operator/Http.ts"
import { ManagementKeys } from "../operations/operator/ManagementKeys.ts"
import { OperatorTokenHttp } from "../operations/operator/Bearer.ts"
import { OperatorSessionHttp } from "../operations/operator/SessionHttp.ts"
import { OperatorSessions } from "../operations/operator/Sessions.ts"
import { OperatorUpstreams } from "../operations/operator/Upstreams.ts"
import { OperatorWatch } from "../operations/operator/Watch.ts"
import { documents } from "../operations/ops/DocumentsHttp.ts"
import { OpsHttp } from "../operations/ops/Http.ts"
import { Metrics } from "../operations/ops/Metrics.ts"
import { RoutingLog } from "../operations/ops/RoutingLog.ts"
import { PaymentsHttp, WebhooksHttp } from "../money/payments/Http.ts"
import { Purchases } from "../money/payments/Purchases.ts"
import { PoolingHttp } from "../money/pooling/Http.ts"
import { Exports } from "../money/exports/Exports.ts"
import { ExportsHttp } from "../money/exports/Http.ts"
import { ReceiptsHttp } from "../money/receipts/Http.ts"
import { LogHttp } from "../money/receipts/LogHttp.ts"
import { Receipts } from "../money/receipts/Receipts.ts"
import { Witnesses } from "../money/receipts/Witnesses.ts"
import { Pooling } from "../money/pooling/Pooling.ts"
import { PricesHttp } from "../money/prices/Http.ts"
import { Indexes } from "../storage/engine/Indexes.ts"
import * as Leadership from "../storage/engine/Leadership.ts"
import { SandboxHttp } from "../sandbox/Http.ts"
import { BudgetedRuns } from "../people/runs/BudgetedRuns.ts"
import { RunsHttp } from "../people/runs/Http.ts"
import { Applications } from "../people/tenants/Applications.ts"
import { Belonging } from "../people/tenants/Belonging.ts"
import { OrganisationsHttp, TenantInvitesHttp, TenantsHttp } from "../people/tenants/Http.ts"
import { Registration } from "../people/tenants/Registration.ts"
import { Organisations } from "../people/tenants/Organisations.ts"
import { Tenants } from "../people/tenants/Tenants.ts"
import { TransferInvitesHttp, TransfersHttp } from "../money/transfers/Http.ts"
import { invitedByTransfer } from "../money/transfers/Invited.ts"
import { Transfers } from "../money/transfers/Transfers.ts"
import { Identity } from "../upstream/identity/Identity.ts"
import { UpstreamObserver } from "../upstream/models/Upstreams.ts"
import { RoutingObserver } from "../upstream/routing/Decision.ts"
import { Explanations } from "../money/usage/Explanations.ts"
import { PriceVersions } from "../books/prices/PriceVersions.ts"
import { Daily } from "../money/usage/Daily.ts"
import { HeldKeys } from "../money/usage/HeldKeys.ts"
import { Records } from "../money/usage/Records.ts"
import { Series } from "../money/usage/Series.ts"
import { Sums } from "../money/usage/Sums.ts"
import { TeamUsage } from "../money/usage/TeamUsage.ts"
import { Budgets } from "../money/budgets/Budgets.ts"
import { layerNewTenants } from "../money/budgets/Templates.ts"
import { BudgetsHttp } from "../money/budgets/Http.ts"
import { OperatorBudgetsHttp } from "../operations/budgets/Http.ts"
import { VouchersHttp } from "../money/vouchers/Http.ts"
import { Vouchers } from "../money/vouchers/Vouchers.ts"
import { UsageHttp } from "../money/usage/Http.ts"

/** The verifier. It loads the audit only when verification first runs. */
const verifier = Verifier.layer(
  Effect.map(
    Effect.promise(() => import("./Checks.ts")),
    ({ verifySince }) => verifySince
  )
)

/** The operator's services that depend on other rooms. */
const operator = Layer.mergeAll(
  OperatorSessions.layer,
  ManagementKeys.layer,
  OperatorDirectory.layer,
  OperatorActs.layer
).pipe(Layer.provideMerge(AuditLog.layer))

/** The operator's services that describe this process. */
const watched = Layer.mergeAll(
  OperatorUpstreams.layer,
  OperatorWatch.layer(
    Effect.map(
      Effect.promise(() => import("./Checks.ts")),
      ({ shortChecks }) => shortChecks
    )
  )
)

/** The services of all rooms. Each service is listed above its dependencies. */
export const domains = Layer.mergeAll(
  operator,
  merged(partsOf("layer")),
  Explanations.layer,
  Receipts.layer,
  Layer.provide(Witnesses.layer, Cosigning.layer),
  Exports.layer,
  HeldKeys.layer,
  TeamUsage.layer,
  Credentials.layer,
  Organisations.layer,
  Transfers.layer,
  Provisioning.layer,
  Vouchers.layer,
  Layer.provide(Budgets.layer, knownCalls),
  Browser.layer,
  Contacts.layer,
  Reconciliations.layer
).pipe(
  Layer.provideMerge(Allowances.layer),
  Layer.provideMerge(Feed.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      Authorization.layer,
      BrowserSessions.layer,
      Passkeys.layer,
      Records.layer,
      Notifications.layer,
      Layer.provide(BudgetedRuns.layer, knownModels)
    )
  ),
  Layer.provideMerge(
    Layer.mergeAll(
      Gate.layer,
      Records.layer,
      Idempotency.layer,
      PriceVersions.layer,
      TenantPlans.layerFactors.pipe(Layer.provideMerge(TenantPlans.layer)),
      Sessions.layer,
      Layer.provide(Applications.layer, knownModels),
      Clients.layer,
      RateLimits.layer,
      Identity.layer,
      Layer.provide(Registration.layer, invitedByTransfer)
    )
  ),
  Layer.provideMerge(AutoReloads.layer),
  Layer.provideMerge(Layer.mergeAll(Purchases.layer, Outbox.layer)),
  Layer.provideMerge(Pooling.layerPayers),
  Layer.provideMerge(Pooling.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      Sums.layer,
      Series.layer,
      Daily.layer,
      BillingAccounts.layer,
      ProviderTotalsIndexer.layer,
      KeyTotalsIndexer.layer,
      SortedIndexer.layer,
      TotalsIndexer.layer,
      Liabilities.layer.pipe(Layer.provideMerge(ChargeLog.layer)),
      verifier
    )
  ),
  Layer.provideMerge(Ledger.layer),
  Layer.provideMerge(Layer.mergeAll(Tenants.layer, Tokens.layer)),
  Layer.provideMerge(Layer.mergeAll(SigningKeys.layer, Belonging.layer, Indexes.layer, layerNewTenants))
)

/** The background loops of `domains`. Some loops run on every node; only the leader runs the others. */
export const jobs = Layer.mergeAll(
  Gate.layerJobs,
  Allowances.layerJobs,
  Budgets.layerJobs,
  TenantPlans.layerJobs,
  AutoReloads.layerJobs,
  merged(partsOf("jobs")),
  Idempotency.layerJobs,
  Indexes.layerJobs,
  Outbox.layerJobs,
  Purchases.layerJobs,
  SigningKeys.layerJobs,
  SortedIndexer.layerJobs,
  TotalsIndexer.layerJobs,
  ProviderTotalsIndexer.layerJobs,
  KeyTotalsIndexer.layerJobs,
  ChargeLog.layerJobs,
  Witnesses.layerJobs,
  Liabilities.layerJobs,
  Feed.layerJobs,
  Verifier.layerJobs,
  Transfers.layerJobs,
  BudgetedRuns.layerJobs,
  Reconciliations.layerJobs
).pipe(Layer.provide(Leadership.layer))

const billDrifts = Layer.effect(
  BillDrifts,
  Effect.map(Reconciliations, ({ drifts }) => drifts)
)

const witnessStates = Layer.effect(
  WitnessStates,
  Effect.map(Witnesses, ({ figures }) => figures)
)

export const handlers = Layer.mergeAll(
  merged(partsOf("handlers")),
  AuthHttp,
  OAuthHttp,
  ConsentHttp,
  UserInfoHttp,
  BrowserHttp,
  ConsoleHttp,
  AllowancesHttp,
  VouchersHttp,
  BudgetsHttp,
  AutoReloadHttp,
  BillingHttp,
  ContactHttp,
  EventsHttp,
  ExportsHttp,
  NotificationsHttp,
  PasskeysHttp,
  Layer.provide(OperatorHttp, [watched, OperatorTokenHttp]),
  Layer.provide(OperatorCreditHttp, OperatorTokenHttp),
  Layer.provide(OperatorBudgetsHttp, OperatorTokenHttp),
  Layer.provide(ReconciliationsHttp, OperatorTokenHttp),
  Layer.provide(ProvisioningHttp, OperatorTokenHttp),
  Layer.provide(ScimHttp, [Scim.layer, ScimTokenHttp]),
  OperatorSessionHttp,
  Layer.provide(OpsHttp, [billDrifts, witnessStates]),
  OrganisationsHttp,
  PaymentsHttp,
  WebhooksHttp,
  PoolingHttp,
  PricesHttp,
  ReceiptsHttp,
  LogHttp,
  RunsHttp,
  SandboxHttp,
  TenantsHttp,
  TransferInvitesHttp,
  TenantInvitesHttp,
  TransfersHttp,
  UsageHttp
)

const api = HttpApiBuilder.api(Api).pipe(Layer.provide(handlers), Layer.provideMerge(SecurityHttp))

/** Serves a contract over HTTP under a prefix. `api` must provide the contract's handlers. */
export const faceOf = <E, R>(
  contract: HttpApi.HttpApi.AnyWithProps,
  api: Layer.Layer<HttpApi.Api | Authentication, E, R>,
  prefix: "" | `/${string}`
) =>
  Face.layer(
    Layer.mergeAll(
      ApiMiddleware,
      documents(contract, prefix, () => import("./guides/GuidePages.ts")),
      page(prefix)
    ).pipe(Layer.provideMerge(api))
  )

/** Serves the service over HTTP. On the service's own server, the prefix is empty. */
export const face = (prefix: "" | `/${string}`) => faceOf(Api as unknown as HttpApi.HttpApi.AnyWithProps, api, prefix)

/** Connects observers: the metrics receive requests, settled calls and upstream exchanges, and the routing log receives routing decisions. */
export const observers = Layer.mergeAll(
  Layer.effect(
    Observer,
    Effect.map(Metrics, ({ observe }) => observe)
  ),
  Layer.effect(
    UpstreamObserver,
    Effect.map(Metrics, ({ observeUpstream }) => observeUpstream)
  ),
  Layer.effect(
    CallObserver,
    Effect.map(Metrics, ({ observeCall }) => observeCall)
  ),
  Layer.effect(
    RoutingObserver,
    Effect.map(RoutingLog, ({ observe }) => observe)
  )
).pipe(Layer.provideMerge(RoutingLog.layer))
