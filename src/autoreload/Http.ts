import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { TenantMismatch } from "../http/Problems.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { AutoReloads } from "./AutoReloads.ts"
import type { AutoReload } from "./Settings.ts"

export const AutoReloadHttp = HttpApiBuilder.group(
  Api,
  "autoReload",
  Effect.fnUntraced(function* (handlers) {
    const reloads = yield* AutoReloads
    return handlers
      .handle("find", ({ path }) => of(path, ({ tenant_id }) => reloads.find(tenant_id)))
      .handle("change", ({ path, payload }) => of(path, (caller) => reloads.change(caller, payload)))
      .handle("charge", ({ path }) => of(path, reloads.charge))
  })
)

/** The answer for the path's tenant, which must be the token's. */
const of = <E>(path: { readonly tenant_id: TenantId }, answer: (caller: CallerFacts) => Effect.Effect<AutoReload, E>) =>
  Effect.flatMap(
    Caller,
    (caller): Effect.Effect<{ readonly msg: string; readonly result: AutoReload }, E | TenantMismatch> =>
      caller.tenant_id === path.tenant_id
        ? Effect.map(answer(caller), (result) => envelope(result))
        : new TenantMismatch()
  )
