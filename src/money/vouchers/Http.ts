import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { VouchersApi } from "./Api.ts"
import { Vouchers } from "./Vouchers.ts"

export const VouchersHttp = HttpApiBuilder.group(
  contract.add(VouchersApi),
  "vouchers",
  Effect.fnUntraced(function* (handlers) {
    const vouchers = yield* Vouchers
    return handlers.handle("redeem", ({ payload: { code } }) => answer((caller) => vouchers.redeem({ caller, code })))
  })
)
