import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../http/contract/Contract.ts"
import { RouteNotFound } from "../http/contract/Problems.ts"
import { SandboxApi } from "./Api.ts"
import { CurrentSandbox } from "../kernel/SandboxInfo.ts"

export const SandboxHttp = HttpApiBuilder.group(
  contract.add(SandboxApi),
  "sandbox",
  Effect.fnUntraced(function* (handlers) {
    const sandbox = yield* CurrentSandbox
    return handlers.handle("info", () => (sandbox === undefined ? new RouteNotFound() : Effect.succeed(sandbox.info)))
  })
)
