/** The operator's routes for allowances and vouchers. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { Allowance, AllowanceEnded, NewAllowance, PlanLine } from "../../money/allowances/Allowance.ts"
import { AllowanceNotFound, AllowancePlanUnknown } from "../../money/allowances/Problems.ts"
import { VoucherNotFound } from "../../money/vouchers/Problems.ts"
import { CreatedVoucher, NewVouchers, Voucher, VoucherId } from "../../money/vouchers/Voucher.ts"
import { after, before, Keyset, limit } from "../operator/Keyset.ts"
import { TenantNotFound } from "../operator/Problems.ts"
import { OperatorToken } from "../operator/Security.ts"

const ofTenant = Schema.Struct({ tenant_id: TenantId })

export class OperatorCreditApi extends HttpApiGroup.make("operatorCredit")
  .add(
    HttpApiEndpoint.get("allowances", "/v1/operator/allowances")
      .setUrlParams(
        Schema.Struct({
          limit,
          after,
          tenant_id: Schema.optional(TenantId.annotations({ description: "Return only the allowance of this tenant" }))
        })
      )
      .addSuccess(Envelope(Keyset(Allowance)))
      .annotate(OpenApi.Summary, "List all allowances by tenant, or only the allowance of the tenant `tenant_id`")
  )
  .add(
    HttpApiEndpoint.get("allowance", "/v1/operator/tenants/:tenant_id/allowance")
      .setPath(ofTenant)
      .addSuccess(Envelope(Allowance))
      .addError(AllowanceNotFound)
      .annotate(OpenApi.Summary, "A tenant's allowance")
  )
  .add(
    HttpApiEndpoint.put("setAllowance", "/v1/operator/tenants/:tenant_id/allowance")
      .setPath(ofTenant)
      .setPayload(NewAllowance)
      .addSuccess(Envelope(Allowance))
      .addError(TenantNotFound)
      .addError(AllowancePlanUnknown)
      .annotate(Example, { body: { amount_usd: 20, period: "month", rollover: { up_to_usd: 10 } } })
      .annotate(
        OpenApi.Summary,
        "Give a tenant credit each week or month from now on, on its own terms or those of a configured plan"
      )
  )
  .add(
    HttpApiEndpoint.del("endAllowance", "/v1/operator/tenants/:tenant_id/allowance")
      .setPath(ofTenant)
      .setUrlParams(
        Schema.Struct({
          take_back: Schema.optional(
            Schema.BooleanFromString.annotations({
              description: "Whether to also take back the unused credit; `false` by default"
            })
          )
        })
      )
      .addSuccess(Envelope(AllowanceEnded))
      .addError(AllowanceNotFound)
      .annotate(OpenApi.Summary, "End a tenant's allowance")
  )
  .add(
    HttpApiEndpoint.get("plans", "/v1/operator/plans")
      .addSuccess(Envelope(Schema.Struct({ plans: Schema.Array(PlanLine) })))
      .annotate(OpenApi.Summary, "List the configured plans, by name")
  )
  .add(
    HttpApiEndpoint.get("vouchers", "/v1/operator/vouchers")
      .setUrlParams(Schema.Struct({ limit, before }))
      .addSuccess(Envelope(Keyset(Voucher)))
      .annotate(OpenApi.Summary, "List all vouchers, newest first, without their codes")
  )
  .add(
    HttpApiEndpoint.post("createVouchers", "/v1/operator/vouchers")
      .setPayload(NewVouchers)
      .addSuccess(Envelope(Schema.Struct({ vouchers: Schema.Array(CreatedVoucher) })), { status: 201 })
      .annotate(Example, { body: { amount_usd: 5, uses: 40, count: 1, expires_at: "2027-02-01T00:00:00Z" } })
      .annotate(OpenApi.Summary, "Create vouchers. Only this response contains their codes")
  )
  .add(
    HttpApiEndpoint.del("endVoucher", "/v1/operator/vouchers/:voucher_id")
      .setPath(Schema.Struct({ voucher_id: VoucherId }))
      .addSuccess(Envelope(Voucher))
      .addError(VoucherNotFound)
      .annotate(OpenApi.Summary, "End a voucher; tenants keep the credit that they redeemed")
  )
  .addError(InvalidRequest)
  .middleware(OperatorToken) {}
