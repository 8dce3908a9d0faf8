/** Refusals of an Idempotency-Key. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

const rule = "16 to 128 characters of A-Z a-z 0-9 _ -"
/** Identifies the invalid header, as every 400 does. */
const details = { field: "Idempotency-Key", rule } as const

export class IdempotencyKeyRequired extends Problem<IdempotencyKeyRequired>()("IdempotencyKeyRequired", {
  status: 400,
  error: "the header Idempotency-Key is required",
  code: "idempotency_key_required",
  details
}) {}

export class IdempotencyKeyInvalid extends Problem<IdempotencyKeyInvalid>()("IdempotencyKeyInvalid", {
  status: 400,
  error: `the header Idempotency-Key must be ${rule}`,
  code: "idempotency_key_invalid",
  details
}) {}

export class IdempotencyKeyReused extends Problem<IdempotencyKeyReused>()("IdempotencyKeyReused", {
  status: 409,
  error: "this Idempotency-Key was used for another request",
  code: "idempotency_key_reused"
}) {}

export class IdempotencyInFlight extends Problem<IdempotencyInFlight>()("IdempotencyInFlight", {
  status: 409,
  error: "the first request with this Idempotency-Key is still in flight",
  code: "idempotency_in_flight"
}) {}

/**
 * The call was made, and charged if it had a cost. Its response was never stored or was deleted to make room. `usage_id` identifies the call's usage
 * record if there is one.
 */
export class IdempotencyAnswerLost extends Problem<IdempotencyAnswerLost>()("IdempotencyAnswerLost", {
  status: 409,
  error: "the call with this Idempotency-Key was made once, but its response was not stored: see its usage record",
  code: "idempotency_answer_lost",
  fields: { usage_id: Schema.optional(Schema.String) }
}) {}

/** The refusals that a key can cause on a metered route. */
export const IdempotencyRefusal = Schema.Union(
  IdempotencyKeyInvalid,
  IdempotencyKeyReused,
  IdempotencyInFlight,
  IdempotencyAnswerLost
)
