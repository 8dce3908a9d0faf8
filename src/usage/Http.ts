import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { answer } from "../http/Answer.ts"
import { CurrentCaller } from "../http/Caller.ts"
import { Explanations } from "./Explanations.ts"
import { Records } from "./Records.ts"
import { Sums } from "./Sums.ts"
import { TeamUsage } from "./TeamUsage.ts"

export const UsageHttp = HttpApiBuilder.group(
  Api,
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const records = yield* Records
    const sums = yield* Sums
    const team = yield* TeamUsage
    const explanations = yield* Explanations
    return handlers
      .handle("summary", ({ urlParams }) => Effect.flatMap(CurrentCaller, (caller) => sums.summary(caller, urlParams)))
      .handle("explain", ({ path }) =>
        Effect.flatMap(CurrentCaller, (caller) => explanations.of(caller, path.usage_id))
      )
      .handle("records", ({ urlParams }) => answer(({ tenant_id }) => records.page(tenant_id, urlParams)))
      .handle("rollup", ({ urlParams }) => answer(({ tenant_id }) => sums.rollup(tenant_id, urlParams)))
      .handle("team", ({ path, urlParams }) => answer((viewer) => team.of(viewer, path.tenant_id, urlParams)))
  })
)
