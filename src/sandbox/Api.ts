/** The sandbox's own route. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { RouteNotFound } from "../http/contract/Problems.ts"
import { SandboxInfo } from "../kernel/SandboxInfo.ts"

export class SandboxApi extends HttpApiGroup.make("sandbox").add(
  HttpApiEndpoint.get("info", "/v1/sandbox")
    .addSuccess(SandboxInfo)
    .addError(RouteNotFound)
    .annotate(OpenApi.Summary, "Get the addresses of the sandbox's issuer and levers; 404 outside a sandbox")
) {}
