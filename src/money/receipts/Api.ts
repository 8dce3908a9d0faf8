/** Routes for the receipts of charges and ledger entries, and for the keys that verify them. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { RateLimited } from "../../http/contract/Problems.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { KeyOrToken, TenantBillingToken } from "../../people/credentials/Security.ts"
import { UsageNotFound } from "../usage/Problems.ts"
import {
  EntryNotFound,
  LiabilitiesNotFound,
  NoBalanceThen,
  NotInLog,
  NothingCharged,
  PaidByAnother
} from "./Problems.ts"
import { LiabilityDay, LiabilityProof, LiabilityStatement, LogKeys, Receipt } from "./Receipt.ts"

const dayQuery = Schema.Struct({ day: Schema.optional(LiabilityDay) })

export class ReceiptsApi extends HttpApiGroup.make("receipts")
  .add(
    HttpApiEndpoint.get("ofCharge", "/v1/usage/:usage_id/receipt")
      .setPath(Schema.Struct({ usage_id: Schema.String }))
      .addSuccess(Receipt)
      .addError(UsageNotFound)
      .addError(NothingCharged)
      .addError(NotInLog)
      .addError(PaidByAnother)
      .middleware(KeyOrToken)
      .annotate(OpenApi.Summary, "Get the receipt of a charge: the proof that its ledger entry is in the log")
  )
  .add(
    HttpApiEndpoint.get("ofEntry", "/v1/tenants/:tenant_id/billing/ledger/:number/receipt")
      .setPath(
        Schema.Struct({
          tenant_id: TenantId,
          number: Schema.String.annotations({ description: "The number of the entry, from 1" })
        })
      )
      .addSuccess(Receipt)
      .addError(EntryNotFound)
      .addError(NotInLog)
      .middleware(TenantBillingToken)
      .annotate(OpenApi.Summary, "Get the receipt of a ledger entry: the proof that it is in the log")
  )
  .add(
    HttpApiEndpoint.get("keys", "/v1/log/keys")
      .addSuccess(LogKeys)
      .annotate(OpenApi.Summary, "List the keys that verify the log's checkpoints, and the keys of its witnesses")
  )
  .add(
    HttpApiEndpoint.get("liabilities", "/v1/log/liabilities")
      .setUrlParams(dayQuery)
      .addSuccess(LiabilityStatement)
      .addError(LiabilitiesNotFound)
      .addError(RateLimited)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "Get the signed total of all balances at the end of a day")
  )
  .add(
    HttpApiEndpoint.get("liability", "/v1/tenants/:tenant_id/billing/liabilities")
      .setPath(Schema.Struct({ tenant_id: TenantId }))
      .setUrlParams(dayQuery)
      .addSuccess(LiabilityProof)
      .addError(LiabilitiesNotFound)
      .addError(NoBalanceThen)
      .addError(RateLimited)
      .addError(InvalidRequest)
      .middleware(TenantBillingToken)
      .annotate(OpenApi.Summary, "Get the proof that the tenant's balance is in the total of a day")
  ) {}
