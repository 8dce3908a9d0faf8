import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import { UsageApi } from "./Api.ts"
import { Explanations } from "./Explanations.ts"
import { HeldKeys } from "./HeldKeys.ts"
import { payersOf, recordsOf, rollupOf, seriesOf, summaryOf, teamOf } from "./Query.ts"
import { Records } from "./Records.ts"
import { Series } from "./Series.ts"
import { seriesText } from "./SeriesText.ts"
import { Sums } from "./Sums.ts"
import { TeamUsage } from "./TeamUsage.ts"

export const UsageHttp = HttpApiBuilder.group(
  contract.add(UsageApi),
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const records = yield* Records
    const sums = yield* Sums
    const series = yield* Series
    const team = yield* TeamUsage
    const keys = yield* HeldKeys
    const explanations = yield* Explanations
    return handlers
      .handle("summary", ({ urlParams }) =>
        Effect.flatMap(CurrentCaller, (caller) =>
          Effect.flatMap(summaryOf(urlParams, caller), (asked) => sums.summary({ caller, ...asked }))
        )
      )
      .handle("heldKey", () => answer(keys.of))
      .handleRaw("payers", ({ urlParams }) =>
        Effect.flatMap(CurrentCaller, ({ account_id }) =>
          Effect.flatMap(payersOf(urlParams), (asked) => series.byPayer({ account_id, ...asked }))
        ).pipe(Effect.flatMap(seriesText), Effect.map(asJson))
      )
      .handle("explain", ({ path }) =>
        Effect.flatMap(CurrentCaller, (caller) => explanations.of({ caller, usage_id: path.usage_id }))
      )
      .handle("records", ({ urlParams }) =>
        answer(({ tenant_id }) =>
          Effect.flatMap(recordsOf(urlParams), (asked) => records.page({ tenant_id, ...asked }))
        )
      )
      .handle("rollup", ({ urlParams }) =>
        answer(({ tenant_id }) => Effect.flatMap(rollupOf(urlParams), (asked) => sums.rollup({ tenant_id, ...asked })))
      )
      .handleRaw("series", ({ urlParams }) =>
        Effect.flatMap(CurrentCaller, ({ tenant_id }) =>
          Effect.flatMap(seriesOf(urlParams), (asked) => series.of({ tenant_id, ...asked }))
        ).pipe(Effect.flatMap(seriesText), Effect.map(toEnvelope))
      )
      .handleRaw("teamSeries", ({ path: { tenant_id }, urlParams }) =>
        Effect.flatMap(CurrentCaller, (caller) =>
          Effect.zipRight(
            team.roster({ caller, tenant_id }),
            Effect.flatMap(seriesOf(urlParams), (asked) => series.ofTeam({ tenant_id, ...asked }))
          )
        ).pipe(Effect.flatMap(seriesText), Effect.map(toEnvelope))
      )
      .handle("team", ({ path: { tenant_id }, urlParams }) =>
        answer((caller) =>
          // The caller is checked before the query, because an unauthorized caller must not see errors in the query.
          Effect.zipRight(
            team.roster({ caller, tenant_id }),
            Effect.flatMap(teamOf(urlParams), (asked) => team.of({ caller, tenant_id, ...asked }))
          )
        )
      )
  })
)

const toEnvelope = (text: string) => asJson(`{"msg":"ok","result":${text}}`)
const asJson = (text: string) => HttpServerResponse.text(text, { contentType: "application/json" })
