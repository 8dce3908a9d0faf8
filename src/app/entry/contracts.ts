/**
 * `tollgate/contracts`: only types, such as the services' interfaces (`LedgerContract`), requests, results and refusals. The other entry points
 * export the values. Each of them imports this entry point, so that a host's declarations can name every type.
 */
export type {
  Authorization,
  AuthorizationRequest,
  AuthorizationContract,
  ConsentRequest,
  DeviceConsent,
  DeviceRequest,
  Exchanged,
  TokenRequest,
  UserInfo
} from "../../people/auth/Authorization.ts"
export type { Browser, BrowserContract } from "../../people/auth/Browser.ts"
export type { Access, BrowserSessions, BrowserSessionsContract, Held } from "../../people/auth/BrowserSessions.ts"
export type {
  Client,
  ClientKind,
  Clients,
  ConfiguredClients,
  ClientsContract
} from "../../people/credentials/Clients.ts"
export type { CredentialsContract, Credentials, KeyProblem } from "../../people/auth/Credentials.ts"
export type {
  DeploymentSecretContract,
  DeploymentSecret,
  Protected,
  Purpose
} from "../../storage/secret/DeploymentSecret.ts"
export type { Ending } from "../../books/ledger/write/Ending.ts"
export type { DeviceCodes } from "../../people/auth/Devices.ts"
export type * from "../../people/auth/Problems.ts"
export type * from "../../people/credentials/Problems.ts"
export type { OpenSignIn, SessionsContract, Sessions, SignIn, TokenPair } from "../../people/auth/Sessions.ts"
export type {
  Asserted,
  CreationOptions,
  NewPasskey,
  Passkey,
  PasskeyId,
  RequestOptions
} from "../../people/passkeys/Passkey.ts"
export type { Passkeys, PasskeysContract } from "../../people/passkeys/Passkeys.ts"
export type * from "../../people/passkeys/Problems.ts"
export type { Reconciliations, ReconciliationsContract } from "../../operations/reconciliation/Reconciliations.ts"
export type {
  ReconciledDifference,
  ReconciledVendor,
  ReconciliationDetail,
  ReconciliationLine,
  ReconciliationPeriod
} from "../../operations/reconciliation/Reconciliation.ts"
export type { DaysAsked, DifferencesAsked, PeriodAsked } from "../../operations/reconciliation/Stored.ts"
export type * from "../../operations/reconciliation/Problems.ts"
export type { BillingVendor, BillingVendors } from "../../operations/reconciliation/Settings.ts"
export type { BillWindow } from "../../upstream/billing/Bill.ts"
export type { VendorFacts } from "../../money/usage/Records.ts"
export type { Scim, ScimContract } from "../../operations/scim/Scim.ts"
export type { StoredGroup } from "../../operations/scim/Group.ts"
export type { Body, ListQuery } from "../../operations/scim/Resource.ts"
export type { ScimBearer } from "../../operations/scim/Settings.ts"
export type { StoredUser, User } from "../../operations/scim/User.ts"
export type * from "../../operations/scim/Problems.ts"
export type { SigningKeysContract, SigningKey, SigningKeys } from "../../people/auth/SigningKeys.ts"
export type { SignInSettings } from "../../people/auth/Settings.ts"
export type { AccessToken, TokensContract, IdToken, Tokens, VerifiedToken } from "../../people/auth/Tokens.ts"
export type { AutoReloads, AutoReloadsContract } from "../../money/autoreload/AutoReloads.ts"
export type * from "../../money/autoreload/Problems.ts"
export type { AutoReload, AutoReloadChange, State, StoredSettings } from "../../money/autoreload/AutoReload.ts"
export type {
  Amounts,
  BillingAccount,
  BillingChange,
  Credits,
  LedgerEntry,
  LedgerPage,
  LedgerQuery,
  Settings
} from "../../money/billing/Billing.ts"
export type { EntrySources } from "../../books/ledger/rows/EntriesBySource.ts"
export type { BillingAccounts, BillingAccountsContract, MemberSpend } from "../../money/billing/BillingAccounts.ts"
export type * from "../../money/billing/Problems.ts"
export type { Chat, ChatCall, ChatContract, TextCall } from "../../calls/chat/Chat.ts"
export type { Call, ChatProblem, Completed, Engine, EngineContract, Streamed } from "../../calls/engine/Engine.ts"
export type {
  ChatChunk,
  ChatCompletion,
  ReportedUsage,
  Said,
  TextCompletion,
  TypedEvent
} from "../../calls/engine/Events.ts"
export type { Extra } from "../../calls/prompts/Extras.ts"
export type * from "../../calls/prompts/Model.ts"
export type * from "../../calls/prompts/Problems.ts"
export type { Kept, Named, NotHandedOut } from "../../calls/prompts/Kept.ts"
export type {
  Bound,
  ChatMessage,
  ChatPrompt,
  ChatRequest,
  CompletionRequest,
  TextPrompt,
  ValidPrompt
} from "../../calls/prompts/Prompt.ts"
export type { ClientToken, ClientTokenRequest, ContactMessage } from "../../people/contact/Contact.ts"
export type { Contacts, ContactsContract } from "../../people/contact/Contacts.ts"
export type { HeldClientToken, HeldClientTokenFacts } from "../../people/contact/HeldClientToken.ts"
export type * from "../../people/contact/Problems.ts"
export type { ContactEmail, ContactKeptDays } from "../../people/contact/Settings.ts"
export type { DecisionAnswer, DecisionRequest } from "../../calls/decisions/Decision.ts"
export type { OwnMembers } from "../../calls/decisions/BodyTask.ts"
export type * from "../../calls/decisions/Decisions.ts"
export type * from "../../calls/decisions/Problems.ts"
export type { ConfiguredDecisionModel, DecisionModel } from "../../calls/decisions/Settings.ts"
export type { EmbeddingAnswer, EmbeddingRequest } from "../../calls/embeddings/Embedding.ts"
export type * from "../../calls/embeddings/Embeddings.ts"
export type { EmbeddingModel, EmbeddingModels } from "../../calls/embeddings/Settings.ts"
export type {
  Admission,
  Claim,
  GateContract,
  Gate,
  Measured,
  Metered,
  OnLateSettlement,
  Receipt,
  SettlementPatience
} from "../../books/gate/Gate.ts"
export type { Payers } from "../../books/gate/Payers.ts"
export type * from "../../books/gate/Problems.ts"
export type { RatesAt } from "../../books/gate/RateHeaders.ts"
export type { Budget, Budgets, Bytes, BytesSettings, Share } from "../../http/transport/Bytes.ts"
export type { CurrentCaller } from "../../http/lanes/Caller.ts"
export type { Actor, Caller } from "../../kernel/Caller.ts"
export type { Capability } from "../../kernel/Capabilities.ts"
export type { BrokenRule, InvalidRequest } from "../../kernel/InvalidRequest.ts"
export type { Lane, Lanes, LanesContract } from "../../http/lanes/FastLane.ts"
export type { Inbound } from "../../http/transport/Inbound.ts"
export type { BodyProblem, Source as BodySource } from "../../http/transport/Incoming.ts"
export type * from "../../http/contract/Problems.ts"
export type { AnswerSettings, Unread } from "../../http/server/Unread.ts"
export type {
  RateLimitsContract,
  RateLimitName,
  RateLimits,
  RateLimitsConfig,
  RateLimitSettings
} from "../../http/transport/RateLimits.ts"
export type { Reply } from "../../http/transport/Reply.ts"
export type { Demand, Grant, Scope } from "../../people/credentials/Scope.ts"
export type {
  Beside,
  Idempotency,
  IdempotencyContract,
  IdempotencyProblem
} from "../../http/idempotency/Idempotency.ts"
export type * from "../../http/idempotency/Problems.ts"
export type { ImageAnswer, ImageRequest, ImageSize, ImageStatusQuery } from "../../calls/images/Image.ts"
export type { CreationPatience, ImageJob, ImagePatience, Images, ImagesContract } from "../../calls/images/Images.ts"
export type { Creation, OpenAiEditFields, OpenAiImageRequest, OpenAiImages } from "../../calls/images/OpenAi.ts"
export type * from "../../calls/images/Problems.ts"
export type { ImageProvider, ImageProviders } from "../../calls/images/Settings.ts"
export type { Decimal } from "../../kernel/Decimal.ts"
export type { AccountId, ApplicationId, BillingAccountId, CallId, Kind as IdKind, TenantId } from "../../kernel/Ids.ts"
export type { Job as LoopJob, LoopObserver, Waker } from "../../kernel/Loop.ts"
export type { Nano, Usd } from "../../kernel/Money.ts"
export type { Paged, PageOf, PageQuery, Paginated } from "../../kernel/Page.ts"
export type { Range } from "../../kernel/Pieces.ts"
export type { FeedEnd, FeedEvent, Listener, Place } from "../../money/events/Event.ts"
export type { Feed, FeedContract, Stream, StreamOptions } from "../../money/events/Feed.ts"
export type * from "../../money/events/Problems.ts"
export type { Line, UnitPrice, UsdPer } from "../../kernel/Price.ts"
export type {
  Declared,
  Problem,
  ProblemArguments,
  ProblemBody,
  ProblemClass,
  ProblemInstance,
  ProblemWords
} from "../../kernel/Problem.ts"
export type { Finding } from "../../books/ledger/rules/Check.ts"
export type {
  AskedOf,
  EntryPage,
  Ledger,
  LedgerContract,
  Operation,
  Totals as LedgerTotals
} from "../../books/ledger/Ledger.ts"
export type {
  AccountExists,
  AccountInactive,
  AccountMissing,
  BalanceTooLarge,
  BooksUnavailable,
  BudgetReached,
  Conflict,
  InsufficientCredits as LedgerInsufficientCredits,
  InsufficientGiftable,
  LedgerRefusal,
  LimitReached,
  NotHeld,
  RefusalByPosting,
  RefusalsOf
} from "../../books/ledger/rules/Problems.ts"
export type {
  Account as LedgerAccount,
  AccountStatus,
  CallFacts,
  CallOutcome,
  CreditSource,
  Dimensions,
  Entry,
  Limit,
  LimitPeriod,
  Outcome,
  Posting,
  Refusal,
  Reservation,
  Result,
  ResultByPosting,
  ResultsOf,
  Source,
  Statement,
  Transaction,
  UsageRecord as LedgerUsageRecord,
  UsageSource,
  Why
} from "../../books/ledger/rules/Transaction.ts"
export type {
  ProviderTotalsIndexer,
  ProviderTotalsIndexerContract
} from "../../books/ledger/totals/ProviderTotalsIndexer.ts"
export type { KeyTotalsIndexer } from "../../books/ledger/totals/KeyTotalsIndexer.ts"
export type { RowsIndexerContract } from "../../books/ledger/totals/RowsIndexer.ts"
export type { DailySum, Days } from "../../books/ledger/totals/ProviderTotals.ts"
export type { BackgroundIndexerContract } from "../../books/ledger/totals/BackgroundIndexer.ts"
export type { SortedIndexer, SortedIndexerContract } from "../../books/ledger/totals/SortedIndexer.ts"
export type { TotalsIndexer, TotalsIndexerContract } from "../../books/ledger/totals/TotalsIndexer.ts"
export type { VerifyInterval } from "../../books/ledger/audit/Settings.ts"
export type { VerifySince } from "../../books/ledger/audit/Verifications.ts"
export type { Verifier, VerifierContract } from "../../books/ledger/audit/Verifier.ts"
export type { CommitLimit, Submitted } from "../../books/ledger/write/Submitting.ts"
export type { Door } from "../../books/ledger/write/Thread.ts"
export type { BalanceMoved, Writer, WriterContract } from "../../books/ledger/write/Writer.ts"
export type { SelfLetter, SelfLetterSent } from "../../people/mail/Letter.ts"
export type { Fate } from "../../people/mail/Delivery.ts"
export type { Letter, Outbox, OutboxContract } from "../../people/mail/Outbox.ts"
export type * from "../../people/mail/Problems.ts"
export type {
  LetterLimitFacts,
  LetterLimits,
  LetterPrice,
  MailSettings as MailConfiguration
} from "../../people/mail/Settings.ts"
export type { SelfMail, SelfMailContract, SentLetter } from "../../calls/email/SelfMail.ts"
export type { MediaModelEntry, MediaResult, MediaStatus, MediaSubmitted } from "../../calls/media/Answer.ts"
export type * from "../../calls/media/Job.ts"
export type { Jobs, JobsContract } from "../../calls/media/Jobs.ts"
export type { MediaContent } from "../../calls/media/Content.ts"
export type { Media, MediaContract, MediaJob, MediaQuote } from "../../calls/media/Media.ts"
export type { ImageModel, MediaModel, MediaRequest, Quote, Resolution, VideoModel } from "../../calls/media/Model.ts"
export type * from "../../calls/media/Problems.ts"
export type { MediaModels } from "../../calls/media/Settings.ts"
export type { Pace, Watch } from "../../calls/media/Watch.ts"
export type {
  Kind as NotificationKind,
  Notice,
  Notification,
  NotificationId,
  NotificationPage,
  NotificationsMarked,
  NotificationsRead
} from "../../people/notifications/Notification.ts"
export type * from "../../calls/messages/Problems.ts"
export type { ModelMessage, MessageEvent, MessageUsage } from "../../calls/messages/Events.ts"
export type {
  Counted,
  CountTokensCall,
  MessageCall,
  Messages,
  MessagesContract,
  Preview
} from "../../calls/messages/Messages.ts"
export type {
  Block,
  CountTokensPrompt,
  CountTokensRequest,
  MessageParam,
  MessagesPrompt,
  MessagesRequest
} from "../../calls/dialects/messages/Prompt.ts"
export type { ModelResponse, ResponseEvent, ResponseUsage } from "../../calls/responses/Events.ts"
export type { Item, ResponsesPrompt, ResponsesRequest } from "../../calls/dialects/responses/Prompt.ts"
export type { ResponseCall, Responses, ResponsesContract } from "../../calls/responses/Responses.ts"
export type { NotificationsContract, Notifications } from "../../people/notifications/Notifications.ts"
export type * from "../../people/notifications/Problems.ts"
export type { BillDrift, BillDrifts, Gauges } from "../../operations/ops/Gauges.ts"
export type * from "../../operations/ops/Problems.ts"
export type { Readiness, ReadinessContract } from "../../operations/ops/Readiness.ts"
export type { Movement } from "../../money/payments/Movement.ts"
export type {
  Checkout,
  CreditAmount,
  NewCheckout,
  Owed,
  PaymentMethod,
  PaymentMethods,
  Setup,
  Waiting,
  Purchase
} from "../../money/payments/Payment.ts"
export type * from "../../money/payments/Problems.ts"
export type { BookedPayment, PurchasesContract, Purchases } from "../../money/payments/Purchases.ts"
export type {
  Credited,
  EndingOfSignIns,
  KeyRevoked,
  NewCredit,
  PasskeyDeleted,
  PersonChanged,
  Reason,
  SignInsEnded,
  TenantChanged
} from "../../operations/operator/Act.ts"
export type { Act, AuditEntry } from "../../operations/operator/Audit.ts"
export type { AuditAsked, AuditLog, AuditLogContract } from "../../operations/operator/AuditLog.ts"
export type { OperatorActs, OperatorActsContract } from "../../operations/operator/Acts.ts"
export type { OperatorDirectory, OperatorDirectoryContract } from "../../operations/operator/Directory.ts"
export type {
  CallLine,
  Found,
  KeyLine,
  PaymentLine,
  PersonDetail,
  PersonLine,
  TenantDetail,
  TenantLine,
  TransferLine
} from "../../operations/operator/Found.ts"
export type { KeysetOf } from "../../operations/operator/Keyset.ts"
export type { Operator as ActingOperator, SignedInOperator, Via } from "../../operations/operator/Operator.ts"
export type * from "../../operations/operator/Problems.ts"
export type { Session as OperatorSession, SessionToken } from "../../operations/operator/Session.ts"
export type { Entered, OperatorSessions, OperatorSessionsContract } from "../../operations/operator/Sessions.ts"
export type { Standing } from "../../money/pooling/Order.ts"
export type { Asker } from "../../money/pooling/PayerOrders.ts"
export type { PoolingContract, Pooling } from "../../money/pooling/Pooling.ts"
export type * from "../../money/pooling/Problems.ts"
export type {
  BillingSource,
  BillingSources,
  Capacity,
  PayerUsage,
  PayerUsageQuery,
  Selection
} from "../../money/pooling/Source.ts"
export type { PriceList, PriceListFacts } from "../../books/prices/PriceList.ts"
export type { TokenDetail, TokenDetails } from "../../kernel/TokenDetails.ts"
export type { Billed, Figures, PriceLine, Quantity } from "../../books/prices/Lines.ts"
export type { PriceVersions, PriceVersionsContract } from "../../books/prices/PriceVersions.ts"
export type { RerankAnswer, RerankRequest } from "../../calls/rerank/Ranking.ts"
export type { Rerank, RerankCall, RerankContract, Reranked, RerankProblem } from "../../calls/rerank/Rerank.ts"
export type { RerankModel, RerankModels } from "../../calls/rerank/Settings.ts"
export type { CurrentSandbox, LeverNote, SandboxInfo, Steered } from "../../kernel/SandboxInfo.ts"
export type { SearchVendorName } from "../../calls/search/Provider.ts"
export type { SearchProvider, SearchProviders } from "../../calls/search/Settings.ts"
export type { SearchAnswer, SearchQuery } from "../../calls/search/Query.ts"
export type { Search, SearchCall, SearchContract, SearchProblem, SearchResults } from "../../calls/search/Search.ts"
export type { SpeechModel, SpeechProvider, SpeechProviders } from "../../calls/speech/Settings.ts"
export type { OpenAiSpeechRequest, SpeechFormat, SpeechRequest, ToolSpeechRequest } from "../../calls/speech/Request.ts"
export type { Speech, SpeechAudio, SpeechCall, SpeechContract, SpeechProblem } from "../../calls/speech/Speech.ts"
export type {
  Account,
  Me,
  Member,
  Membership,
  MembershipStatus,
  Plan,
  PlanName,
  PlanStatus,
  Role
} from "../../people/tenants/Account.ts"
export type { NewRun, Run, RunDetails, RunWithKey } from "../../people/runs/Run.ts"
export type { BudgetedRuns, BudgetedRunsContract, OfRun } from "../../people/runs/BudgetedRuns.ts"
export type {
  Application,
  ApplicationChange,
  ApplicationPage,
  ApplicationWithKey,
  NewApplication
} from "../../people/tenants/Application.ts"
export type {
  Applications,
  ApplicationsContract,
  By as ApplicationActor,
  OfApplication,
  Operator
} from "../../people/tenants/Applications.ts"
export type { Holder as KeyHolder } from "../../people/tenants/KeyCallers.ts"
export type { Belonging, BelongingContract, Mark } from "../../people/tenants/Belonging.ts"
export type { Listed } from "../../people/tenants/Directory.ts"
export type {
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
  TenantPlan
} from "../../people/tenants/Organisation.ts"
export type {
  By as OrganisationActor,
  InTenant,
  Organisations,
  OrganisationsContract
} from "../../people/tenants/Organisations.ts"
export type * from "../../people/tenants/Problems.ts"
export type { TenantsContract, Tenants, Welcomed } from "../../people/tenants/Tenants.ts"
export type { Audio } from "../../calls/transcription/Audio.ts"
export type * from "../../calls/transcription/Fields.ts"
export type { Subtitles } from "../../calls/transcription/Formats.ts"
export type { Extent, Length } from "../../calls/transcription/Length.ts"
export type * from "../../calls/transcription/Problems.ts"
export type * from "../../calls/transcription/Settings.ts"
export type * from "../../calls/transcription/Transcription.ts"
export type * from "../../money/transfers/Problems.ts"
export type {
  Draft,
  GiftReason,
  NewTransfer,
  Transfer,
  TransferKind,
  TransferPage,
  TransferPreview,
  TransferQuery
} from "../../money/transfers/Transfer.ts"
export type { TransferLimitFacts, TransferLimits } from "../../money/transfers/Settings.ts"
export type { Move, TransferId, TransferStatus } from "../../money/transfers/States.ts"
export type { TransferOf, Transfers, TransfersContract } from "../../money/transfers/Transfers.ts"
export type { UpstreamProblem } from "../../upstream/wire/Failures.ts"
export type {
  IdentityContract,
  Identity,
  IdentityProblem,
  IdentityProviders,
  ProviderName,
  ProviderSettings,
  VerifiedIdentity
} from "../../upstream/identity/Identity.ts"
export type { MailContract, Mail, MailFailed, MailSettings, Message } from "../../upstream/mail/Mail.ts"
export type {
  ChargeDeclined,
  PaymentsContract,
  Moved,
  Paid as ProcessorPayment,
  PaymentMethod as ProcessorPaymentMethod,
  Payments,
  PaymentSettings,
  ProcessorEvent,
  ProcessorSilent
} from "../../upstream/payments/Payments.ts"
export type { LongTexts } from "../../upstream/wire/LongText.ts"
export type * from "../../upstream/wire/Problems.ts"
export type * from "../../upstream/identity/Problems.ts"
export type {
  Provider,
  ProviderList,
  ProviderNames,
  UnknownModel,
  UnknownProvider
} from "../../upstream/models/Provider.ts"
export type { SearchResult } from "../../upstream/search/SearchVendor.ts"
export type {
  UnknownUpstream,
  UnspokenProtocol,
  Upstream,
  UpstreamObserver,
  Upstreams,
  UpstreamSettings
} from "../../upstream/models/Upstreams.ts"
export type { Unreachable } from "../../upstream/wire/Wire.ts"
export type { Window } from "../../money/usage/Window.ts"
export type { Explanation } from "../../money/usage/Explanation.ts"
export type { ExplanationsContract, Explanations } from "../../money/usage/Explanations.ts"
export type * from "../../money/usage/Problems.ts"
export type { Filter as UsageFilter } from "../../money/usage/Filtered.ts"
export type { RecordsAsked, RecordsContract, Records } from "../../money/usage/Records.ts"
export type {
  Columns,
  OneSeries,
  PayersAsked,
  Series,
  SeriesAsked,
  SeriesContract,
  SeriesSet,
  Total
} from "../../money/usage/Series.ts"
export type { Daily, DailyContract } from "../../money/usage/Daily.ts"
export type {
  SumsContract,
  RollupAsked,
  Paid as PaidUsage,
  PaidAsked as PaidUsageAsked,
  PayerSums,
  SummaryAsked,
  Sums
} from "../../money/usage/Sums.ts"
export type { ChargeLog, ChargeLogContract, LogReceipt } from "../../books/log/ChargeLog.ts"
export type { TileKey } from "../../books/log/Tree.ts"
export type { LoggedEntry } from "../../books/ledger/rows/EntriesInOrder.ts"
export type { LogKeys, LogWitness, Receipt as EntryReceipt } from "../../money/receipts/Receipt.ts"
export type { Liabilities, LiabilitiesContract } from "../../books/log/Liabilities.ts"
export type { Exports, ExportsContract } from "../../money/exports/Exports.ts"
export type { Receipts, ReceiptsContract } from "../../money/receipts/Receipts.ts"
export type { Witnesses, WitnessesContract } from "../../money/receipts/Witnesses.ts"
export type * from "../../money/receipts/Problems.ts"
export type { HeldKeys, HeldKeysContract } from "../../money/usage/HeldKeys.ts"
export type { TeamAsked, TeamUsageContract, TeamUsage } from "../../money/usage/TeamUsage.ts"
export type {
  DataPoint,
  Direction,
  Grain,
  RecordPage,
  RecordsQuery,
  Rollup,
  RollupName,
  RollupQuery,
  SeriesBy,
  SeriesQuery,
  Sort,
  Summary,
  SummaryQuery,
  TeamQuery,
  TeamUsage as TeamUsageAnswer,
  Totals,
  UsageRecord,
  PayerSeries,
  PayersQuery,
  UsageSeries
} from "../../money/usage/Usage.ts"
export type { JobRejected, NotTaken, VendorBusy, VendorUnavailable } from "../../upstream/generation/GenerationQueue.ts"
export type { Indexes, IndexesContract } from "../../storage/engine/Indexes.ts"
export type { UpgradeFailed } from "../../storage/database/Unusable.ts"
export type { EnvironmentFacts } from "../Environment.ts"
export type { ConfigProblem } from "../../kernel/Setting.ts"
export type { ServiceFacts, ServiceInfo } from "../../kernel/ServiceInfo.ts"
export type * from "../../books/prices/PriceFactors.ts"
export type * from "../../money/allowances/Allowances.ts"
export type {
  FactorsByTenant,
  Plan as AllowancePlan,
  Plans,
  PlansByName,
  TenantFactors
} from "../../money/allowances/Settings.ts"
export type * from "../../money/allowances/TenantPlans.ts"
export type {
  Budgets as SpendingBudgets,
  BudgetsContract,
  By as BudgetActor,
  OfBudget
} from "../../money/budgets/Budgets.ts"
export type { CallNames, KnownCalls } from "../../money/budgets/KnownCalls.ts"
export type { Beside as BesideBudget, OfOperator } from "../../money/budgets/OfOperator.ts"
export type { FirstBudgets, NewTenantBudgets } from "../../people/tenants/NewTenantBudgets.ts"
export type { Suspender } from "../../people/tenants/Suspensions.ts"
export type * from "../../money/vouchers/Vouchers.ts"
export type * from "../../operations/operator/ManagementKeys.ts"
export type * from "../../operations/provisioning/Provisioning.ts"
export type * from "../../people/auth/EmailSignIn.ts"
export type * from "../../people/auth/IdentityEntries.ts"
export type * from "../../people/tenants/Registration.ts"
export type * from "../../people/tenants/RegistrationPolicy.ts"
export type { Redemption } from "../../upstream/identity/Provider.ts"
