/** The route that redeems a voucher. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Example } from "../../http/contract/Documented.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { BillingToken } from "../../people/credentials/Security.ts"
import {
  TooManyVouchers,
  VoucherEnded,
  VoucherNotFound,
  VoucherRedeemed,
  VoucherTooLarge,
  VoucherUsedUp
} from "./Problems.ts"
import { Redeemed, Redemption } from "./Voucher.ts"

export class VouchersApi extends HttpApiGroup.make("vouchers")
  .add(
    HttpApiEndpoint.post("redeem", "/v1/vouchers/redeem")
      .setPayload(Redemption)
      .addSuccess(Envelope(Redeemed))
      .addError(VoucherNotFound)
      .addError(VoucherUsedUp)
      .addError(VoucherEnded)
      .addError(VoucherRedeemed)
      .addError(VoucherTooLarge)
      .addError(TooManyVouchers)
      .addError(InvalidRequest)
      .annotate(Example, { body: { code: "{voucher_code}" } })
      .annotate(
        OpenApi.Summary,
        "Redeem a voucher; its credit is added to the token's tenant and cannot be transferred"
      )
  )
  .middleware(BillingToken) {}
