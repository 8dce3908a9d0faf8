import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { envelope } from "../kernel/Envelope.ts"
import { AutoReloads } from "./AutoReloads.ts"
import type { AutoReload } from "./Settings.ts"

export const AutoReloadHttp = HttpApiBuilder.group(
  Api,
  "autoReload",
  Effect.fnUntraced(function* (handlers) {
    const reloads = yield* AutoReloads
    return handlers
      .handle("find", () => mine(({ tenant_id }) => reloads.find(tenant_id)))
      .handle("change", ({ payload }) => mine((caller) => reloads.change(caller, payload)))
      .handle("charge", () => mine(reloads.charge))
  })
)

const mine = <E>(answer: (caller: CallerFacts) => Effect.Effect<AutoReload, E>) =>
  Effect.map(Effect.flatMap(Caller, answer), (result) => envelope(result))
