import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { AllowancesApi } from "./Api.ts"
import { Allowances } from "./Allowances.ts"

export const AllowancesHttp = HttpApiBuilder.group(
  contract.add(AllowancesApi),
  "allowances",
  Effect.fnUntraced(function* (handlers) {
    const allowances = yield* Allowances
    return handlers.handle("allowance", () =>
      answer(({ tenant_id }) =>
        allowances.find(tenant_id).pipe(
          Effect.map((allowance) => ({ allowance })),
          Effect.catchTag("AllowanceNotFound", () => Effect.succeed({ allowance: null }))
        )
      )
    )
  })
)
