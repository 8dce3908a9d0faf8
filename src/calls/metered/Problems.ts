/** Errors shared by all metered routes with a JSON body and an upstream. */
import { Schema } from "effect"
import { GateRefusal } from "../../books/gate/Problems.ts"
import { BodyRefusal } from "../../http/contract/Problems.ts"
import { IdempotencyRefusal } from "../../http/idempotency/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { UpstreamRefusal } from "../../upstream/wire/Problems.ts"

export const MeteredRefusal = Schema.Union(
  InvalidRequest,
  BodyRefusal,
  GateRefusal,
  IdempotencyRefusal,
  UpstreamRefusal
)
