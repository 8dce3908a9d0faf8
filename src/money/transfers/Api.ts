/** Routes for sending and receiving credit, and for opening an invitation by its link. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { RateLimited } from "../../http/contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { TenantTransfersToken, TransfersToken } from "../../people/credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { IdempotencyKeyInvalid, IdempotencyKeyRequired, IdempotencyKeyReused } from "../../http/idempotency/Problems.ts"
import { TooManyLetters } from "../../people/mail/Problems.ts"
import { EmailMismatch, InsufficientRole } from "../../people/tenants/Problems.ts"
import {
  BillingAccountInactive,
  TooManyTransfers,
  TransferInsufficientCredits,
  TransferInsufficientGiftable,
  TransferInvalid,
  TransferInviteNotFound,
  TransferNotFound,
  TransferNotPending,
  TransferResendTooSoon,
  TransferSelf
} from "./Problems.ts"
import { NewTransfer, Transfer, TransferPage, TransferPreview, TransferQuery } from "./Transfer.ts"
import { TransferId } from "./States.ts"

const ofTenant = Schema.Struct({ tenant_id: TenantId })
const ofSent = Schema.Struct({ tenant_id: TenantId, transfer_id: TransferId })
const ofReceived = Schema.Struct({ transfer_id: TransferId })
const ofToken = Schema.Struct({ token: Schema.String })

/** The response of `create`: 201 for a new transfer, 200 for a repeated request. */
export const Created = Envelope(Transfer)

export class TransfersApi extends HttpApiGroup.make("transfers")
  .add(
    HttpApiEndpoint.post("create", "/v1/tenants/:tenant_id/billing/transfers")
      .setPath(ofTenant)
      // The handler checks this header, because a missing key has specific error text.
      .setHeaders(Schema.Struct({ "idempotency-key": Schema.optional(Schema.String) }))
      .setPayload(NewTransfer)
      .addSuccess(Created.annotations(HttpApiSchema.annotations({ status: 201, identifier: "TransferCreated" })))
      .addSuccess(Created.annotations(HttpApiSchema.annotations({ status: 200, identifier: "TransferReplayed" })))
      .middleware(TenantTransfersToken)
      .addError(InsufficientRole)
      .addError(InvalidRequest)
      .addError(IdempotencyKeyRequired)
      .addError(IdempotencyKeyInvalid)
      .addError(IdempotencyKeyReused)
      .addError(BillingAccountInactive)
      .addError(TransferInvalid)
      .addError(TransferSelf)
      .addError(TransferInsufficientCredits)
      .addError(TransferInsufficientGiftable)
      .addError(TooManyTransfers)
      .addError(TooManyLetters)
      .annotate(Example, {
        headers: { "Idempotency-Key": "gift-to-grace-2026-01" },
        body: {
          amount: 2.5,
          recipient_email: "grace@example.com",
          kind: "gift",
          reason: "thanks",
          message: "For the review"
        }
      })
      .annotate(OpenApi.Summary, "Send credits; they are held in escrow until the recipient accepts or declines")
  )
  .add(
    HttpApiEndpoint.get("sent", "/v1/tenants/:tenant_id/billing/transfers")
      .setPath(ofTenant)
      .setUrlParams(TransferQuery)
      .addSuccess(Envelope(TransferPage))
      .middleware(TenantTransfersToken)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "List the transfers that the tenant sent, newest first")
  )
  .add(
    HttpApiEndpoint.del("revoke", "/v1/tenants/:tenant_id/billing/transfers/:transfer_id")
      .setPath(ofSent)
      .addSuccess(Envelope(Transfer))
      .middleware(TenantTransfersToken)
      .addError(InsufficientRole)
      .addError(TransferNotFound)
      .addError(TransferNotPending)
      .annotate(OpenApi.Summary, "Revoke a pending transfer")
  )
  .add(
    HttpApiEndpoint.post("resend", "/v1/tenants/:tenant_id/billing/transfers/:transfer_id/resend")
      .setPath(ofSent)
      .addSuccess(Envelope(Transfer))
      .middleware(TenantTransfersToken)
      .addError(InsufficientRole)
      .addError(TransferNotFound)
      .addError(TransferNotPending)
      .addError(TransferResendTooSoon)
      .addError(TooManyLetters)
      .annotate(OpenApi.Summary, "Send a new link by email in place of the last one, at most once every 12 hours")
  )
  .add(
    HttpApiEndpoint.get("received", "/v1/transfers")
      .setUrlParams(TransferQuery)
      .addSuccess(Envelope(TransferPage))
      .addError(InvalidRequest)
      .middleware(TransfersToken)
      .annotate(OpenApi.Summary, "List the transfers sent to my verified address, newest first")
  )
  .add(
    HttpApiEndpoint.get("transfer", "/v1/transfers/:transfer_id")
      .setPath(ofReceived)
      .addSuccess(Envelope(Transfer))
      .addError(TransferNotFound)
      .middleware(TransfersToken)
      .annotate(OpenApi.Summary, "Get a transfer that I received or sent")
  )
  .add(
    HttpApiEndpoint.post("accept", "/v1/transfers/:transfer_id/accept")
      .setPath(ofReceived)
      .addSuccess(Envelope(Transfer))
      .addError(TransferNotFound)
      .addError(EmailMismatch)
      .addError(TransferNotPending)
      .addError(TransferInvalid)
      .middleware(TransfersToken)
      .annotate(OpenApi.Summary, "Accept a transfer; its credits are added to my home tenant's balance")
  )
  .add(
    HttpApiEndpoint.post("decline", "/v1/transfers/:transfer_id/decline")
      .setPath(ofReceived)
      .addSuccess(Envelope(Transfer))
      .addError(TransferNotFound)
      .addError(EmailMismatch)
      .addError(TransferNotPending)
      .middleware(TransfersToken)
      .annotate(OpenApi.Summary, "Decline a transfer; its credits are returned to the sender")
  )
  .add(
    HttpApiEndpoint.post("attach", "/v1/transfer-invites/:token/attach")
      .setPath(ofToken)
      .addSuccess(Envelope(Transfer))
      .addError(TransferInviteNotFound)
      .addError(EmailMismatch)
      .addError(TransferNotPending)
      .middleware(TransfersToken)
      .annotate(OpenApi.Summary, "Bind an invitation to my account; no money moves")
  ) {}

export class TransferInvitesApi extends HttpApiGroup.make("transferInvites").add(
  HttpApiEndpoint.get("preview", "/v1/transfer-invites/:token")
    .setPath(ofToken)
    .addSuccess(Envelope(TransferPreview))
    .addError(TransferInviteNotFound)
    .addError(RateLimited)
    .annotate(OpenApi.Summary, "Get a summary of the transfer for a client with the link")
) {}
