import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { AutoReloadApi } from "./Api.ts"
import { AutoReloads } from "./AutoReloads.ts"

export const AutoReloadHttp = HttpApiBuilder.group(
  contract.add(AutoReloadApi),
  "autoReload",
  Effect.fnUntraced(function* (handlers) {
    const reloads = yield* AutoReloads
    return handlers
      .handle("find", () => answer(({ tenant_id }) => reloads.find(tenant_id)))
      .handle("change", ({ payload }) => answer((caller) => reloads.change({ caller, change: payload })))
      .handle("charge", () => answer((caller) => reloads.charge({ caller })))
  })
)
