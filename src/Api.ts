/** The contract: every route of the service. The OpenAPI document and the typed client derive from it. */
import { HttpApi } from "@effect/platform"
import { InternalError } from "./http/Problems.ts"
import { ChatApi } from "./chat/Api.ts"
import { OpsApi } from "./ops/Api.ts"
import { PricesApi } from "./prices/Api.ts"

export class Api extends HttpApi.make("tollgate").add(PricesApi).add(ChatApi).add(OpsApi).addError(InternalError) {}
