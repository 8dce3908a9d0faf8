import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { TenantId } from "../kernel/Ids.ts"
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
      .handle("summary", ({ urlParams }) => Effect.flatMap(Caller, (caller) => sums.summary(caller, urlParams)))
      .handle("explain", ({ path }) => Effect.flatMap(Caller, (caller) => explanations.of(caller, path.usage_id)))
      .handle("records", ({ urlParams }) => answer((tenant) => records.page(tenant, urlParams)))
      .handle("rollup", ({ urlParams }) => answer((tenant) => sums.rollup(tenant, urlParams)))
      .handle("team", ({ path, urlParams }) =>
        Effect.flatMap(Caller, (viewer) => Effect.map(team.of(viewer, path.tenant_id, urlParams), envelope))
      )
  })
)

/** What is found for the token's tenant. */
const answer = <A, E>(find: (tenant: TenantId) => Effect.Effect<A, E>) =>
  Effect.flatMap(Caller, ({ tenant_id }) => Effect.map(find(tenant_id), (found) => envelope(found)))
