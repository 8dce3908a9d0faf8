/**
 * `tollgate/contracts`: the types that the services speak in, for whoever writes them down: what each service promises
 * (`LedgerContract`), what it takes and answers, and what it refuses with. Types only; the values stand in the other entry points.
 * Each of those refers to this one, so that the declarations of a host can name what they come upon.
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
} from "../auth/Authorization.ts"
export type { Browser, BrowserContract } from "../auth/Browser.ts"
export type { Access, BrowserSessions, BrowserSessionsContract, Held } from "../auth/BrowserSessions.ts"
export type { Client, ClientKind, Clients, ConfiguredClients, ClientsContract } from "../auth/Clients.ts"
export type { CredentialsContract, Credentials, KeyProblem } from "../auth/Credentials.ts"
export type { DeploymentSecretContract, DeploymentSecret, Protected, Purpose } from "../auth/DeploymentSecret.ts"
export type { Ending } from "../ledger/Ending.ts"
export type { DeviceCodes } from "../auth/Devices.ts"
export type * from "../auth/Problems.ts"
export type * from "../auth/credentials/Problems.ts"
export type { OpenSignIn, SessionsContract, Sessions, SignIn, TokenPair } from "../auth/Sessions.ts"
export type { SigningKeysContract, SigningKey, SigningKeys } from "../auth/SigningKeys.ts"
export type { SignInSettings } from "../auth/Settings.ts"
export type { AccessToken, TokensContract, IdToken, Tokens, VerifiedToken } from "../auth/Tokens.ts"
export type { AutoReloads, AutoReloadsContract } from "../autoreload/AutoReloads.ts"
export type * from "../autoreload/Problems.ts"
export type { AutoReload, AutoReloadChange, State, StoredSettings } from "../autoreload/AutoReload.ts"
export type {
  Amounts,
  BillingAccount,
  BillingChange,
  Credits,
  LedgerEntry,
  LedgerPage,
  LedgerQuery,
  Settings
} from "../billing/Billing.ts"
export type { EntrySources } from "../ledger/EntriesBySource.ts"
export type { BillingAccounts, BillingAccountsContract, MemberSpend } from "../billing/BillingAccounts.ts"
export type * from "../billing/Problems.ts"
export type { Chat, ChatCall, ChatContract, TextCall } from "../chat/Chat.ts"
export type { Call, ChatProblem, Completed, Engine, EngineContract, Streamed } from "../chat/Engine.ts"
export type { ChatChunk, ChatCompletion, ReportedUsage, Said, TextCompletion } from "../chat/Events.ts"
export type { Extra } from "../chat/Extras.ts"
export type {
  Catalogue,
  DetailPrices,
  LimitField,
  LongContext,
  Model,
  ModelRoute,
  Models,
  VendorCost
} from "../chat/Model.ts"
export type * from "../chat/Problems.ts"
export type { Kept, Named, NotHandedOut } from "../chat/Kept.ts"
export type {
  Bound,
  ChatMessage,
  ChatPrompt,
  ChatRequest,
  CompletionRequest,
  TextPrompt,
  ValidPrompt
} from "../chat/Prompt.ts"
export type { ClientToken, ClientTokenRequest, ContactMessage } from "../contact/Contact.ts"
export type { Contacts, ContactsContract } from "../contact/Contacts.ts"
export type { HeldClientToken, HeldClientTokenFacts } from "../contact/HeldClientToken.ts"
export type * from "../contact/Problems.ts"
export type { ContactEmail } from "../contact/Settings.ts"
export type { DecisionAnswer, DecisionRequest } from "../decisions/Decision.ts"
export type {
  Decision,
  DecisionCall,
  DecisionProblem,
  Decisions,
  DecisionsContract,
  UpstreamAnswer
} from "../decisions/Decisions.ts"
export type * from "../decisions/Problems.ts"
export type { ConfiguredDecisionModel, DecisionModel } from "../decisions/Settings.ts"
export type { EmbeddingAnswer, EmbeddingRequest } from "../embeddings/Embedding.ts"
export type {
  Embedded,
  EmbeddingCall,
  EmbeddingProblem,
  Embeddings,
  EmbeddingsContract
} from "../embeddings/Embeddings.ts"
export type { EmbeddingModel, EmbeddingModels } from "../embeddings/Settings.ts"
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
} from "../gate/Gate.ts"
export type { Payers } from "../gate/Payers.ts"
export type * from "../gate/Problems.ts"
export type { Budget, Budgets, Bytes, BytesSettings, Share } from "../http/Bytes.ts"
export type { CurrentCaller } from "../http/Caller.ts"
export type { Actor, Caller } from "../kernel/Caller.ts"
export type { BrokenRule, InvalidRequest } from "../kernel/InvalidRequest.ts"
export type { Lane, Lanes, LanesContract } from "../http/FastLane.ts"
export type { Inbound } from "../http/Inbound.ts"
export type { BodyProblem, Source as BodySource } from "../http/Incoming.ts"
export type * from "../http/Problems.ts"
export type { AnswerSettings, Unread } from "../http/Unread.ts"
export type {
  RateLimitsContract,
  RateLimitName,
  RateLimits,
  RateLimitsConfig,
  RateLimitSettings
} from "../http/RateLimits.ts"
export type { Reply } from "../http/Reply.ts"
export type { Demand, Grant, Scope } from "../auth/Scope.ts"
export type { Beside, Idempotency, IdempotencyContract, IdempotencyProblem } from "../idempotency/Idempotency.ts"
export type * from "../idempotency/Problems.ts"
export type { ImageAnswer, ImageRequest, ImageSize, ImageStatusQuery } from "../images/Image.ts"
export type { CreationPatience, ImageJob, ImagePatience, Images, ImagesContract } from "../images/Images.ts"
export type { Creation, OpenAiEditFields, OpenAiImageRequest, OpenAiImages } from "../images/OpenAi.ts"
export type * from "../images/Problems.ts"
export type { ImageProvider, ImageProviders } from "../images/Settings.ts"
export type { Decimal } from "../kernel/Decimal.ts"
export type { AccountId, ApplicationId, BillingAccountId, CallId, Kind as IdKind, TenantId } from "../kernel/Ids.ts"
export type { Job as LoopJob, LoopObserver, Waker } from "../kernel/Loop.ts"
export type { Nano, Usd } from "../kernel/Money.ts"
export type { Paged, PageOf, PageQuery, Paginated } from "../kernel/Page.ts"
export type { Range } from "../kernel/Pieces.ts"
export type { FeedEnd, FeedEvent, Listener, Place } from "../events/Event.ts"
export type { Feed, FeedContract, Stream, StreamOptions } from "../events/Feed.ts"
export type * from "../events/Problems.ts"
export type { Line, UnitPrice, UsdPer } from "../kernel/Price.ts"
export type {
  Declared,
  Problem,
  ProblemArguments,
  ProblemBody,
  ProblemClass,
  ProblemInstance,
  ProblemWords
} from "../kernel/Problem.ts"
export type { Finding } from "../ledger/Invariants.ts"
export type { AskedOf, EntryPage, Ledger, LedgerContract, Operation, Totals as LedgerTotals } from "../ledger/Ledger.ts"
export type {
  AccountExists,
  AccountInactive,
  AccountMissing,
  BalanceTooLarge,
  BooksUnavailable,
  Conflict,
  InsufficientCredits as LedgerInsufficientCredits,
  InsufficientGiftable,
  LedgerRefusal,
  LimitReached,
  NotHeld,
  RefusalByPosting,
  RefusalsOf
} from "../ledger/Problems.ts"
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
} from "../ledger/Transaction.ts"
export type { Adder, AdderContract } from "../ledger/Adder.ts"
export type { DailySum, Days } from "../ledger/ByProvider.ts"
export type { FollowerContract } from "../ledger/Follower.ts"
export type { Sorter, SorterContract } from "../ledger/Sorter.ts"
export type { Tallier, TallierContract } from "../ledger/Tallier.ts"
export type { VerifyInterval } from "../ledger/Settings.ts"
export type { VerifySince } from "../ledger/Verifications.ts"
export type { Verifier, VerifierContract } from "../ledger/Verifier.ts"
export type { BalanceMoved, CommitLimit, Submitted, Writer, WriterContract } from "../ledger/Writer.ts"
export type { SelfLetter, SelfLetterSent } from "../mail/Letter.ts"
export type { Fate } from "../mail/Delivery.ts"
export type { Letter, Outbox, OutboxContract } from "../mail/Outbox.ts"
export type * from "../mail/Problems.ts"
export type {
  LetterLimitFacts,
  LetterLimits,
  LetterPrice,
  MailSettings as MailConfiguration
} from "../mail/Settings.ts"
export type { SelfMail, SelfMailContract, SentLetter } from "../mail/SelfMail.ts"
export type { MediaModelEntry, MediaResult, MediaStatus, MediaSubmitted } from "../media/Answer.ts"
export type { FailureType, Job, JobCaller, JobCharge, JobKey, JobRoute, JobStatus, Order } from "../media/Job.ts"
export type { Jobs, JobsContract } from "../media/Jobs.ts"
export type { MediaContent } from "../media/Content.ts"
export type { Media, MediaContract, MediaJob, MediaQuote } from "../media/Media.ts"
export type { ImageModel, MediaModel, MediaRequest, Quote, Resolution, VideoModel } from "../media/Model.ts"
export type * from "../media/Problems.ts"
export type { MediaModels } from "../media/Settings.ts"
export type { Pace, Watch } from "../media/Watch.ts"
export type {
  Kind as NotificationKind,
  Notice,
  Notification,
  NotificationId,
  NotificationPage,
  NotificationsMarked,
  NotificationsRead
} from "../notifications/Notification.ts"
export type * from "../messages/Problems.ts"
export type { ModelMessage, MessageEvent, MessageUsage } from "../messages/Events.ts"
export type {
  Counted,
  CountTokensCall,
  MessageCall,
  Messages,
  MessagesContract,
  Preview
} from "../messages/Messages.ts"
export type {
  Block,
  CountTokensPrompt,
  CountTokensRequest,
  MessageParam,
  MessagesPrompt,
  MessagesRequest
} from "../messages/Prompt.ts"
export type { ModelResponse, ResponseEvent, ResponseUsage } from "../responses/Events.ts"
export type { Item, ResponsesPrompt, ResponsesRequest } from "../responses/Prompt.ts"
export type { ResponseCall, Responses, ResponsesContract } from "../responses/Responses.ts"
export type { NotificationsContract, Notifications } from "../notifications/Notifications.ts"
export type * from "../notifications/Problems.ts"
export type { Gauges } from "../ops/Gauges.ts"
export type * from "../ops/Problems.ts"
export type { Readiness, ReadinessContract } from "../ops/Readiness.ts"
export type { Movement } from "../payments/Movement.ts"
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
} from "../payments/Payment.ts"
export type * from "../payments/Problems.ts"
export type { BookedPayment, PurchasesContract, Purchases } from "../payments/Purchases.ts"
export type {
  Credited,
  KeyRevoked,
  NewCredit,
  PersonChanged,
  Reason,
  SignInsEnded,
  TenantChanged
} from "../operator/Act.ts"
export type { Act, AuditEntry } from "../operator/Audit.ts"
export type { AuditAsked, AuditLog, AuditLogContract } from "../operator/AuditLog.ts"
export type { OperatorActs, OperatorActsContract } from "../operator/Acts.ts"
export type { OperatorDirectory, OperatorDirectoryContract } from "../operator/Directory.ts"
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
} from "../operator/Found.ts"
export type { KeysetOf } from "../operator/Keyset.ts"
export type { Operator as ActingOperator, SignedInOperator, Via } from "../operator/Operator.ts"
export type * from "../operator/Problems.ts"
export type { Session as OperatorSession, SessionToken } from "../operator/Session.ts"
export type { Entered, OperatorSessions, OperatorSessionsContract } from "../operator/Sessions.ts"
export type { Standing } from "../pooling/Order.ts"
export type { Asker } from "../pooling/PayerOrders.ts"
export type { PoolingContract, Pooling } from "../pooling/Pooling.ts"
export type * from "../pooling/Problems.ts"
export type {
  BillingSource,
  BillingSources,
  Capacity,
  PayerUsage,
  PayerUsageQuery,
  Selection
} from "../pooling/Source.ts"
export type { PriceList, PriceListFacts } from "../prices/PriceList.ts"
export type { TokenDetail, TokenDetails } from "../kernel/TokenDetails.ts"
export type { Billed, Figures, PriceLine, Quantity } from "../prices/Lines.ts"
export type { PriceVersions, PriceVersionsContract } from "../prices/PriceVersions.ts"
export type { RerankAnswer, RerankRequest } from "../rerank/Ranking.ts"
export type { Rerank, RerankCall, RerankContract, Reranked, RerankProblem } from "../rerank/Rerank.ts"
export type { RerankModel, RerankModels } from "../rerank/Settings.ts"
export type { CurrentSandbox, LeverNote, SandboxInfo, Steered } from "../sandbox/SandboxInfo.ts"
export type { SearchVendorName } from "../search/Provider.ts"
export type { SearchProvider, SearchProviders } from "../search/Settings.ts"
export type { SearchAnswer, SearchQuery } from "../search/Query.ts"
export type { Search, SearchCall, SearchContract, SearchProblem, SearchResults } from "../search/Search.ts"
export type { SpeechModel, SpeechProvider, SpeechProviders } from "../speech/Settings.ts"
export type { OpenAiSpeechRequest, SpeechFormat, SpeechRequest, ToolSpeechRequest } from "../speech/Request.ts"
export type { Speech, SpeechAudio, SpeechCall, SpeechContract, SpeechProblem } from "../speech/Speech.ts"
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
} from "../tenants/Account.ts"
export type {
  Application,
  ApplicationChange,
  ApplicationPage,
  ApplicationWithKey,
  NewApplication
} from "../tenants/Application.ts"
export type {
  Applications,
  ApplicationsContract,
  By as ApplicationActor,
  OfApplication,
  Operator
} from "../tenants/Applications.ts"
export type { Belonging, BelongingContract, Mark } from "../tenants/Belonging.ts"
export type { Listed } from "../tenants/Directory.ts"
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
} from "../tenants/Organisation.ts"
export type {
  By as OrganisationActor,
  InTenant,
  Organisations,
  OrganisationsContract
} from "../tenants/Organisations.ts"
export type * from "../tenants/Problems.ts"
export type { TenantsContract, Tenants, Welcomed } from "../tenants/Tenants.ts"
export type { Audio } from "../transcription/Audio.ts"
export type {
  OpenAiFields,
  OpenAiTranscriptionFields,
  OpenAiTranslationFields,
  TranscriptFormat,
  TranscriptionAnswer,
  TranscriptionFields
} from "../transcription/Fields.ts"
export type { Length } from "../transcription/Length.ts"
export type * from "../transcription/Problems.ts"
export type { TranscriptionModel, TranscriptionProvider, TranscriptionProviders } from "../transcription/Settings.ts"
export type {
  ProviderAnswer,
  Transcript,
  Transcription,
  TranscriptionCall,
  TranscriptionChoice,
  TranscriptionContract,
  TranscriptionProblem,
  TranscriptionQuote
} from "../transcription/Transcription.ts"
export type * from "../transfers/Problems.ts"
export type {
  Draft,
  GiftReason,
  NewTransfer,
  Transfer,
  TransferKind,
  TransferPage,
  TransferPreview,
  TransferQuery
} from "../transfers/Transfer.ts"
export type { Move, TransferId, TransferStatus } from "../transfers/States.ts"
export type { TransferOf, Transfers, TransfersContract } from "../transfers/Transfers.ts"
export type { UpstreamProblem } from "../upstream/Failures.ts"
export type {
  IdentityContract,
  Identity,
  IdentityProblem,
  IdentityProviders,
  ProviderName,
  ProviderSettings,
  VerifiedIdentity
} from "../upstream/Identity.ts"
export type { MailContract, Mail, MailFailed, MailSettings, Message } from "../upstream/Mail.ts"
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
} from "../upstream/Payments.ts"
export type * from "../upstream/Problems.ts"
export type * from "../upstream/identity/Problems.ts"
export type { Provider, ProviderList, ProviderNames, UnknownModel, UnknownProvider } from "../upstream/Provider.ts"
export type { SearchResult } from "../upstream/search/SearchVendor.ts"
export type {
  UnknownUpstream,
  UnspokenProtocol,
  Upstream,
  UpstreamObserver,
  Upstreams,
  UpstreamSettings
} from "../upstream/Upstreams.ts"
export type { Unreachable } from "../upstream/Wire.ts"
export type { Window } from "../usage/Window.ts"
export type { Explanation } from "../usage/Explanation.ts"
export type { ExplanationsContract, Explanations } from "../usage/Explanations.ts"
export type * from "../usage/Problems.ts"
export type { Filter as UsageFilter } from "../usage/Filtered.ts"
export type { RecordsAsked, RecordsContract, Records } from "../usage/Records.ts"
export type {
  Columns,
  OneSeries,
  PayersAsked,
  Series,
  SeriesAsked,
  SeriesContract,
  SeriesSet,
  Total
} from "../usage/Series.ts"
export type { Daily, DailyContract } from "../usage/Daily.ts"
export type {
  SumsContract,
  RollupAsked,
  Paid as PaidUsage,
  PaidAsked as PaidUsageAsked,
  PayerSums,
  Sums
} from "../usage/Sums.ts"
export type { TeamAsked, TeamUsageContract, TeamUsage } from "../usage/TeamUsage.ts"
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
} from "../usage/Usage.ts"
export type { JobRejected, NotTaken, VendorBusy, VendorUnavailable } from "../upstream/GenerationQueue.ts"
export type { Indexes, IndexesContract } from "../sql/Indexes.ts"
export type { UpgradeFailed } from "../sql/Unusable.ts"
export type { EnvironmentFacts } from "../Environment.ts"
export type { ConfigProblem } from "../kernel/Setting.ts"
export type { ServiceFacts, ServiceInfo } from "../kernel/ServiceInfo.ts"
