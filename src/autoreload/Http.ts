import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { answer } from "../http/Answer.ts"
import { AutoReloads } from "./AutoReloads.ts"

export const AutoReloadHttp = HttpApiBuilder.group(
  Api,
  "autoReload",
  Effect.fnUntraced(function* (handlers) {
    const reloads = yield* AutoReloads
    return handlers
      .handle("find", () => answer(({ tenant_id }) => reloads.find(tenant_id)))
      .handle("change", ({ payload }) => answer((caller) => reloads.change({ caller, change: payload })))
      .handle("charge", () => answer((caller) => reloads.charge({ caller })))
  })
)
