/** Creates metered, idempotent routes. They reject a caller that cannot pay before they read a long body. */
import { Effect } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import type { Shape } from "../../http/contract/Annotations.ts"
import { affordable } from "../../http/idempotency/BeforeBody.ts"
import { Idempotency } from "../../http/idempotency/Idempotency.ts"
import type { Beside } from "../../http/idempotency/Idempotency.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import type { Reply } from "../../http/transport/Reply.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ofHeaders } from "../../kernel/Labels.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"

export interface MeteredRoute<E extends ProblemInstance<string>> {
  /** The route's name, a part of a request's hash. The same `Idempotency-Key` on another route is therefore rejected. */
  readonly name: string
  readonly body_bytes_max: number
  readonly answer: (caller: Caller, inbound: Inbound, beside: Beside | undefined) => Effect.Effect<Reply, E>
  /** Responds to a retry if the first response was not saved. `call` is the first call's id. Without a result, the retry is rejected. */
  readonly resume?: (caller: Caller, inbound: Inbound, call: string) => Effect.Effect<Reply | undefined, E>
  readonly shape?: Shape | undefined
}

/**
 * Returns a function that creates a service's routes. `costs` are its models' minimum call prices. If `costs` is empty or contains 0, no caller is
 * rejected before the body is read.
 */
export const meteredRoutes = Effect.fnUntraced(function* (costs: ReadonlyArray<Nano> = []) {
  const idempotency = yield* Idempotency
  const ifAffordable = affordable(yield* Gate, idempotency, costs)
  return <E extends ProblemInstance<string>>({ answer, body_bytes_max, name, resume, shape }: MeteredRoute<E>) =>
    labelled((caller, inbound) =>
      ifAffordable(
        caller,
        inbound,
        idempotency.onceOf(
          caller,
          inbound,
          name,
          body_bytes_max,
          (inbound, beside) => answer(caller, inbound, beside),
          resume && ((inbound, call) => resume(caller, inbound, call)),
          shape
        )
      )
    )
})

/** Adds the labels in the request headers to the caller. */
export const labelled =
  <A, E, R>(served: (caller: Caller, inbound: Inbound) => Effect.Effect<A, E, R>) =>
  (caller: Caller, inbound: Inbound): Effect.Effect<A, E | InvalidRequest, R> => {
    const one = ofHeaders(caller, inbound)
    return one instanceof InvalidRequest ? one : served(one, inbound)
  }
