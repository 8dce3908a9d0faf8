import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import { ChargeLog } from "../../books/log/ChargeLog.ts"
import { ReceiptsApi } from "./Api.ts"
import { Receipts } from "./Receipts.ts"

export const ReceiptsHttp = HttpApiBuilder.group(
  contract.add(ReceiptsApi),
  "receipts",
  Effect.fnUntraced(function* (handlers) {
    const receipts = yield* Receipts
    const log = yield* ChargeLog
    const limits = yield* RateLimits
    return handlers
      .handle("ofCharge", ({ path }) =>
        Effect.flatMap(CurrentCaller, (caller) => receipts.ofCharge({ caller, usage_id: path.usage_id }))
      )
      .handle("ofEntry", ({ path }) =>
        Effect.flatMap(CurrentCaller, ({ tenant_id }) =>
          receipts.ofEntry({ tenant_id, number: /^\d+$/.test(path.number) ? Number(path.number) : 0 })
        )
      )
      .handle("keys", () => Effect.map(log.keys, (keys) => ({ keys })))
      .handle("liabilities", ({ request, urlParams }) =>
        Effect.zipRight(limits.take("log", request), receipts.liabilities(urlParams.day))
      )
      .handle("liability", ({ request, urlParams }) =>
        limits.take("log", request).pipe(
          Effect.zipRight(CurrentCaller),
          Effect.flatMap(({ tenant_id }) => receipts.liability({ tenant_id, day: urlParams.day }))
        )
      )
  })
)
