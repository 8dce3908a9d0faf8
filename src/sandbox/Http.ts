import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { RouteNotFound } from "../http/Problems.ts"
import { CurrentSandbox } from "./SandboxInfo.ts"

export const SandboxHttp = HttpApiBuilder.group(
  Api,
  "sandbox",
  Effect.fnUntraced(function* (handlers) {
    const sandbox = yield* CurrentSandbox
    return handlers.handle("info", () => (sandbox === undefined ? new RouteNotFound() : Effect.succeed(sandbox.info)))
  })
)
