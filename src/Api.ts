/** The contract: every route of the service. The OpenAPI document and the typed client derive from it. */
import { OpenApi } from "@effect/platform"
import { AuthApi, BrowserApi, ConsentApi, OAuthApi, UserInfoApi } from "./auth/Api.ts"
import { AutoReloadApi } from "./autoreload/Api.ts"
import { BillingApi } from "./billing/Api.ts"
import { contract } from "./http/Contract.ts"
import { described } from "./http/Documented.ts"
import { InternalError } from "./http/Problems.ts"
import { ChatApi } from "./chat/Api.ts"
import { ConsoleApi } from "./console/Api.ts"
import { ContactApi } from "./contact/Api.ts"
import { DecisionsApi } from "./decisions/Api.ts"
import { MessagesApi } from "./messages/Api.ts"
import { EventsApi } from "./events/Api.ts"
import { EmbeddingsApi } from "./embeddings/Api.ts"
import { NotificationsApi } from "./notifications/Api.ts"
import { OperatorApi, OperatorSessionApi } from "./operator/Api.ts"
import { OpsApi } from "./ops/Api.ts"
import { PoolingApi } from "./pooling/Api.ts"
import { PaymentsApi, WebhooksApi } from "./payments/Api.ts"
import { PricesApi } from "./prices/Api.ts"
import { ResponsesApi } from "./responses/Api.ts"
import { RerankApi } from "./rerank/Api.ts"
import { SandboxApi } from "./sandbox/Api.ts"
import { OrganisationsApi, TenantInvitesApi, TenantsApi } from "./tenants/Api.ts"
import { TransferInvitesApi, TransfersApi } from "./transfers/Api.ts"
import { ImagesApi } from "./images/Api.ts"
import { MediaApi, MediaModelsApi } from "./media/Api.ts"
import { MailApi } from "./mail/Api.ts"
import { SearchApi } from "./search/Api.ts"
import { SpeechApi, SpeechModelsApi } from "./speech/Api.ts"
import { TranscriptionApi, TranscriptionModelsApi } from "./transcription/Api.ts"
import { UsageApi } from "./usage/Api.ts"
import { version } from "./Version.ts"

const routes = contract
  .add(AuthApi)
  .add(OAuthApi)
  .add(ConsentApi)
  .add(UserInfoApi)
  .add(BrowserApi)
  .add(ConsoleApi)
  .add(TenantsApi)
  .add(OrganisationsApi)
  .add(PricesApi)
  .add(BillingApi)
  .add(AutoReloadApi)
  .add(PaymentsApi)
  .add(WebhooksApi)
  .add(TransfersApi)
  .add(TransferInvitesApi)
  .add(TenantInvitesApi)
  .add(PoolingApi)
  .add(UsageApi)
  .add(EventsApi)
  .add(ChatApi)
  .add(MessagesApi)
  .add(ResponsesApi)
  .add(DecisionsApi)
  .add(EmbeddingsApi)
  .add(RerankApi)
  .add(MailApi)
  .add(ImagesApi)
  .add(MediaApi)
  .add(MediaModelsApi)
  .add(SearchApi)
  .add(SpeechApi)
  .add(SpeechModelsApi)
  .add(TranscriptionApi)
  .add(TranscriptionModelsApi)
  .add(NotificationsApi)
  .add(ContactApi)
  .add(OperatorSessionApi)
  .add(OperatorApi)
  .add(OpsApi)
  .add(SandboxApi)
  .addError(InternalError)
  .annotate(OpenApi.Title, "Tollgate")
  .annotate(OpenApi.Version, version)
  .annotate(
    OpenApi.Description,
    "Metered access to AI models. 1 credit is 1 USD. Errors are `{ error, code?, details? }` with the status that fits. In examples " +
      "`{name}` stands for what an earlier answer gave."
  )

export class Api extends routes.annotate(OpenApi.Transform, described(routes)) {}
