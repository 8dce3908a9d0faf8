/** The contract: every route of the service. The OpenAPI document and the typed client derive from it. */
import { HttpApi } from "@effect/platform"
import { BillingApi } from "./billing/Api.ts"
import { InternalError } from "./http/Problems.ts"
import { ChatApi } from "./chat/Api.ts"
import { OpsApi } from "./ops/Api.ts"
import { PricesApi } from "./prices/Api.ts"
import { SandboxApi } from "./sandbox/Api.ts"
import { UsageApi } from "./usage/Api.ts"

export class Api extends HttpApi.make("tollgate")
  .add(PricesApi)
  .add(BillingApi)
  .add(UsageApi)
  .add(ChatApi)
  .add(OpsApi)
  .add(SandboxApi)
  .addError(InternalError) {}
