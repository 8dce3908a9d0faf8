/** The contract: all routes of the service. The OpenAPI document and the typed client derive from it. */
import { OpenApi } from "@effect/platform"
import { AuthApi, BrowserApi, ConsentApi, OAuthApi, UserInfoApi } from "../people/auth/Api.ts"
import { AllowancesApi } from "../money/allowances/Api.ts"
import { AutoReloadApi } from "../money/autoreload/Api.ts"
import { BillingApi } from "../money/billing/Api.ts"
import { contract } from "../http/contract/Contract.ts"
import { described } from "../http/contract/Documented.ts"
import { InternalError } from "../http/contract/Problems.ts"
import { ChatApi } from "../calls/chat/Api.ts"
import { ConsoleApi } from "../console/Api.ts"
import { ContactApi } from "../people/contact/Api.ts"
import { DecisionsApi } from "../calls/decisions/Api.ts"
import { MessagesApi } from "../calls/messages/Api.ts"
import { BudgetsApi } from "../money/budgets/Api.ts"
import { EventsApi } from "../money/events/Api.ts"
import { ExportsApi } from "../money/exports/Api.ts"
import { EmbeddingsApi } from "../calls/embeddings/Api.ts"
import { PasskeysApi } from "../people/passkeys/Api.ts"
import { NotificationsApi } from "../people/notifications/Api.ts"
import { OperatorApi, OperatorSessionApi } from "../operations/operator/Api.ts"
import { OperatorBudgetsApi } from "../operations/budgets/Api.ts"
import { OperatorCreditApi } from "../operations/credit/Api.ts"
import { ReconciliationsApi } from "../operations/reconciliation/Api.ts"
import { ProvisioningApi } from "../operations/provisioning/Api.ts"
import { ScimApi } from "../operations/scim/Api.ts"
import { OpsApi } from "../operations/ops/Api.ts"
import { PoolingApi } from "../money/pooling/Api.ts"
import { PaymentsApi, WebhooksApi } from "../money/payments/Api.ts"
import { PricesApi } from "../money/prices/Api.ts"
import { ResponsesApi } from "../calls/responses/Api.ts"
import { RerankApi } from "../calls/rerank/Api.ts"
import { SandboxApi } from "../sandbox/Api.ts"
import { RunsApi } from "../people/runs/Api.ts"
import { OrganisationsApi, TenantInvitesApi, TenantsApi } from "../people/tenants/Api.ts"
import { TransferInvitesApi, TransfersApi } from "../money/transfers/Api.ts"
import { ImagesApi } from "../calls/images/Api.ts"
import { MediaApi, MediaModelsApi } from "../calls/media/Api.ts"
import { MailApi } from "../calls/email/Api.ts"
import { SearchApi } from "../calls/search/Api.ts"
import { SpeechApi, SpeechModelsApi } from "../calls/speech/Api.ts"
import { TranscriptionApi, TranscriptionModelsApi } from "../calls/transcription/Api.ts"
import { VouchersApi } from "../money/vouchers/Api.ts"
import { ReceiptsApi } from "../money/receipts/Api.ts"
import { UsageApi } from "../money/usage/Api.ts"
import { version } from "../kernel/Version.ts"

const routes = contract
  .add(AuthApi)
  .add(OAuthApi)
  .add(ConsentApi)
  .add(UserInfoApi)
  .add(BrowserApi)
  .add(ConsoleApi)
  .add(PasskeysApi)
  .add(TenantsApi)
  .add(OrganisationsApi)
  .add(RunsApi)
  .add(PricesApi)
  .add(BillingApi)
  .add(ExportsApi)
  .add(AllowancesApi)
  .add(BudgetsApi)
  .add(VouchersApi)
  .add(AutoReloadApi)
  .add(PaymentsApi)
  .add(WebhooksApi)
  .add(TransfersApi)
  .add(TransferInvitesApi)
  .add(TenantInvitesApi)
  .add(PoolingApi)
  .add(UsageApi)
  .add(ReceiptsApi)
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
  .add(OperatorCreditApi)
  .add(OperatorBudgetsApi)
  .add(ReconciliationsApi)
  .add(ProvisioningApi)
  .add(ScimApi)
  .add(OpsApi)
  .add(SandboxApi)
  .addError(InternalError)
  .annotate(OpenApi.Title, "Tollgate")
  .annotate(OpenApi.Version, version)
  .annotate(
    OpenApi.Description,
    "Metered access to AI models. 1 credit is 1 USD. An error response contains `{ error, code?, details? }` and has a matching status. In examples " +
      "`{name}` stands for a value from an earlier response."
  )

export class Api extends routes.annotate(OpenApi.Transform, described(routes)) {}
