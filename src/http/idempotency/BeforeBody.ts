/** Checks that the sender of a metered request has credit before a long body is read. */
import { Effect } from "effect"
import type * as Gate from "../../books/gate/Gate.ts"
import type { InsufficientCredits } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { Inbound } from "../transport/Inbound.ts"
import type { Nano } from "../../kernel/Money.ts"
import type * as Idempotency from "./Idempotency.ts"

/**
 * Serves the call unless its body is long and its sender has no credit. `costs` lists the minimum charge of each model. If any of the models can be
 * free, no caller is refused. A retry with a known Idempotency-Key gets the stored response regardless of the remaining credit.
 */
export const affordable = (
  gate: Pick<Gate.GateContract, "look">,
  idempotency: Pick<Idempotency.IdempotencyContract, "isNew">,
  costs: ReadonlyArray<Nano>
) => {
  const anyFree = costs.length === 0 || costs.some((cost) => cost <= 0n)
  return <A, E, R>(
    caller: Caller,
    inbound: Inbound,
    served: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | InsufficientCredits, R> =>
    anyFree || !inbound.isLong()
      ? served
      : Effect.flatMap(idempotency.isNew(caller, inbound.header("idempotency-key")), (isNew) =>
          isNew ? Effect.andThen(gate.look(caller), served) : served
        )
}
