/** Routes for the receipts of charges and ledger entries, and for the keys that verify them. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { TenantId } from "../../kernel/Ids.ts"
import { KeyOrToken, TenantBillingToken } from "../../people/credentials/Security.ts"
import { UsageNotFound } from "../usage/Problems.ts"
import { EntryNotFound, NotInLog, NothingCharged, PaidByAnother } from "./Problems.ts"
import { LogKeys, Receipt } from "./Receipt.ts"

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
      .annotate(OpenApi.Summary, "List the keys that verify the log's checkpoints")
  ) {}
