/**
 * The service as layers. `domains` is everything but HTTP; it needs a database with its writer, and the settings. `jobs` is what
 * the rooms repeat by themselves. `face` is the service over HTTP, for node's own server and to be mounted in any server of the platform.
 */
import { HttpApiBuilder } from "@effect/platform"
import type { HttpApi } from "@effect/platform"
import { Effect, Layer } from "effect"
import { Api } from "./Api.ts"
import { Credentials } from "./auth/Credentials.ts"
import { Authorization } from "./auth/Authorization.ts"
import { Browser } from "./auth/Browser.ts"
import { BrowserSessions } from "./auth/BrowserSessions.ts"
import { Clients } from "./auth/Clients.ts"
import { AuthHttp, BrowserHttp, ConsentHttp, OAuthHttp, UserInfoHttp } from "./auth/Http.ts"
import { SecurityHttp } from "./auth/SecurityHttp.ts"
import { Sessions } from "./auth/Sessions.ts"
import { SigningKeys } from "./auth/SigningKeys.ts"
import { Tokens } from "./auth/Tokens.ts"
import { AutoReloads } from "./autoreload/AutoReloads.ts"
import { AutoReloadHttp } from "./autoreload/Http.ts"
import { BillingAccounts } from "./billing/BillingAccounts.ts"
import { BillingHttp } from "./billing/Http.ts"
import { Chat } from "./chat/Chat.ts"
import { ChatHttp } from "./chat/Http.ts"
import { ConsoleHttp } from "./console/Http.ts"
import { page } from "./console/PageHttp.ts"
import { Contacts } from "./contact/Contacts.ts"
import { ContactHttp } from "./contact/Http.ts"
import { Decisions } from "./decisions/Decisions.ts"
import { DecisionsHttp } from "./decisions/Http.ts"
import { Embeddings } from "./embeddings/Embeddings.ts"
import { EmbeddingsHttp } from "./embeddings/Http.ts"
import { Feed } from "./events/Feed.ts"
import { EventsHttp } from "./events/Http.ts"
import { Gate } from "./gate/Gate.ts"
import { Face } from "./http/Face.ts"
import { ApiMiddleware } from "./http/ApiMiddleware.ts"
import { Observer } from "./http/Observer.ts"
import { RateLimits } from "./http/RateLimits.ts"
import { Idempotency } from "./idempotency/Idempotency.ts"
import { Adder } from "./ledger/Adder.ts"
import { Ledger } from "./ledger/Ledger.ts"
import { Sorter } from "./ledger/Sorter.ts"
import { Tallier } from "./ledger/Tallier.ts"
import { Verifier } from "./ledger/Verifier.ts"
import { Outbox } from "./mail/Outbox.ts"
import { MessagesHttp } from "./messages/Http.ts"
import { Messages } from "./messages/Messages.ts"
import { NotificationsHttp } from "./notifications/Http.ts"
import { Notifications } from "./notifications/Notifications.ts"
import { OperatorActs } from "./operator/Acts.ts"
import { AuditLog } from "./operator/AuditLog.ts"
import { OperatorDirectory } from "./operator/Directory.ts"
import { OperatorHttp } from "./operator/Http.ts"
import { OperatorSessionHttp } from "./operator/SessionHttp.ts"
import { OperatorSessions } from "./operator/Sessions.ts"
import { OperatorUpstreams } from "./operator/Upstreams.ts"
import { OperatorWatch } from "./operator/Watch.ts"
import { documents } from "./ops/DocumentsHttp.ts"
import { OpsHttp } from "./ops/Http.ts"
import { Metrics } from "./ops/Metrics.ts"
import { UpstreamHealth } from "./ops/UpstreamHealth.ts"
import { PaymentsHttp, WebhooksHttp } from "./payments/Http.ts"
import { Purchases } from "./payments/Purchases.ts"
import { PoolingHttp } from "./pooling/Http.ts"
import { Pooling } from "./pooling/Pooling.ts"
import { PricesHttp } from "./prices/Http.ts"
import { ResponsesHttp } from "./responses/Http.ts"
import { Responses } from "./responses/Responses.ts"
import { RerankHttp } from "./rerank/Http.ts"
import { Rerank } from "./rerank/Rerank.ts"
import { Indexes } from "./sql/Indexes.ts"
import * as Leadership from "./sql/Leadership.ts"
import { SandboxHttp } from "./sandbox/Http.ts"
import { Applications } from "./tenants/Applications.ts"
import { Belonging } from "./tenants/Belonging.ts"
import { OrganisationsHttp, TenantInvitesHttp, TenantsHttp } from "./tenants/Http.ts"
import { Organisations } from "./tenants/Organisations.ts"
import { Tenants } from "./tenants/Tenants.ts"
import { TransferInvitesHttp, TransfersHttp } from "./transfers/Http.ts"
import { Transfers } from "./transfers/Transfers.ts"
import { SearchHttp } from "./search/Http.ts"
import { Search } from "./search/Search.ts"
import { SpeechHttp, SpeechModelsHttp } from "./speech/Http.ts"
import { Speech } from "./speech/Speech.ts"
import { TranscriptionHttp, TranscriptionModelsHttp } from "./transcription/Http.ts"
import { Transcription } from "./transcription/Transcription.ts"
import { MailHttp } from "./mail/Http.ts"
import { SelfMail } from "./mail/SelfMail.ts"
import { ImagesHttp } from "./images/Http.ts"
import { Images } from "./images/Images.ts"
import { MediaHttp, MediaModelsHttp } from "./media/Http.ts"
import { Jobs } from "./media/Jobs.ts"
import { Media } from "./media/Media.ts"
import { Identity } from "./upstream/Identity.ts"
import { UpstreamObserver } from "./upstream/Upstreams.ts"
import { Explanations } from "./usage/Explanations.ts"
import { PriceVersions } from "./prices/PriceVersions.ts"
import { Daily } from "./usage/Daily.ts"
import { Records } from "./usage/Records.ts"
import { Series } from "./usage/Series.ts"
import { Sums } from "./usage/Sums.ts"
import { TeamUsage } from "./usage/TeamUsage.ts"
import { UsageHttp } from "./usage/Http.ts"

/** What looks at the books is loaded when they are first verified. */
const verifier = Verifier.layer(
  Effect.map(
    Effect.promise(() => import("./Checks.ts")),
    ({ verifySince }) => verifySince
  )
)

/** What the operator asks of the other rooms. */
const operator = Layer.mergeAll(OperatorSessions.layer, OperatorDirectory.layer, OperatorActs.layer).pipe(
  Layer.provideMerge(AuditLog.layer)
)

/** What the operator asks of the process that answers. */
const watched = Layer.mergeAll(
  OperatorUpstreams.layer,
  OperatorWatch.layer(
    Effect.map(
      Effect.promise(() => import("./Checks.ts")),
      ({ short }) => short
    )
  )
)

/** Every room's service, and below it what it is made of. */
export const domains = Layer.mergeAll(
  operator,
  Chat.layer,
  Messages.layer,
  Responses.layer,
  Decisions.layer,
  Embeddings.layer,
  Rerank.layer,
  Images.layer,
  Media.layer,
  SelfMail.layer,
  Transcription.layer,
  Speech.layer,
  Search.layer,
  Explanations.layer,
  TeamUsage.layer,
  Credentials.layer,
  Organisations.layer,
  Transfers.layer,
  Browser.layer,
  Contacts.layer
).pipe(
  Layer.provideMerge(Feed.layer),
  Layer.provideMerge(Layer.mergeAll(Authorization.layer, BrowserSessions.layer, Records.layer, Notifications.layer)),
  Layer.provideMerge(Jobs.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      Gate.layer,
      Records.layer,
      Idempotency.layer,
      PriceVersions.layer,
      Sessions.layer,
      Applications.layer,
      Clients.layer,
      RateLimits.layer,
      Identity.layer
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
      Adder.layer,
      Sorter.layer,
      Tallier.layer,
      verifier
    )
  ),
  Layer.provideMerge(Ledger.layer),
  Layer.provideMerge(Layer.mergeAll(Tenants.layer, Tokens.layer)),
  Layer.provideMerge(Layer.mergeAll(SigningKeys.layer, Belonging.layer, Indexes.layer))
)

/** The loops of the rooms of `domains`: what the service does without being asked; of several nodes, one. */
export const jobs = Layer.mergeAll(
  Gate.layerJobs,
  AutoReloads.layerJobs,
  Jobs.layerJobs,
  Idempotency.layerJobs,
  Indexes.layerJobs,
  Outbox.layerJobs,
  Purchases.layerJobs,
  SigningKeys.layerJobs,
  Sorter.layerJobs,
  Tallier.layerJobs,
  Adder.layerJobs,
  Feed.layerJobs,
  Verifier.layerJobs,
  Transfers.layerJobs
).pipe(Layer.provide(Leadership.layer))

const api = HttpApiBuilder.api(Api).pipe(
  Layer.provide([
    AuthHttp,
    OAuthHttp,
    ConsentHttp,
    UserInfoHttp,
    BrowserHttp,
    ConsoleHttp,
    AutoReloadHttp,
    BillingHttp,
    ChatHttp,
    MessagesHttp,
    ResponsesHttp,
    ContactHttp,
    DecisionsHttp,
    EmbeddingsHttp,
    EventsHttp,
    RerankHttp,
    ImagesHttp,
    MediaHttp,
    MediaModelsHttp,
    MailHttp,
    TranscriptionHttp,
    TranscriptionModelsHttp,
    SpeechHttp,
    SpeechModelsHttp,
    SearchHttp,
    NotificationsHttp,
    Layer.provide(OperatorHttp, watched),
    OperatorSessionHttp,
    OpsHttp,
    OrganisationsHttp,
    PaymentsHttp,
    WebhooksHttp,
    PoolingHttp,
    PricesHttp,
    SandboxHttp,
    TenantsHttp,
    TransferInvitesHttp,
    TenantInvitesHttp,
    TransfersHttp,
    UsageHttp
  ]),
  Layer.provideMerge(SecurityHttp)
)

/** The service over HTTP, beneath a prefix of the server that serves it (its documents say where that is); empty on its own server. */
export const face = (prefix: "" | `/${string}`) =>
  Face.layer(
    Layer.mergeAll(
      ApiMiddleware,
      documents(Api as unknown as HttpApi.HttpApi.AnyWithProps, prefix, () => import("./app/guides/GuidePages.ts")),
      page(prefix)
    ).pipe(Layer.provideMerge(api))
  )

/** Tells the metrics of every request that is over, and them and the health of upstreams of every exchange with one. */
export const observers = Layer.merge(
  Layer.effect(
    Observer,
    Effect.map(Metrics, ({ observe }) => observe)
  ),
  Layer.effect(
    UpstreamObserver,
    Effect.zipWith(Metrics, UpstreamHealth, (metrics, health) => (upstream, outcome, millis) => {
      metrics.observeUpstream(upstream, outcome)
      health.observe(upstream, outcome, millis)
    })
  )
).pipe(Layer.provideMerge(UpstreamHealth.layer))
