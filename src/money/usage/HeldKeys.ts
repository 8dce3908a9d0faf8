/**
 * Looks up the caller's API key for `GET /v1/key`.
 *
 * Where the specification is silent:
 * - `GET /v1/key` returns a key's own limits and usage and the terms of its tenant's allowance. It does not show the tenant's balance or other keys.
 *   A run's key shows, under the run's id, the limit in USD and the usage of the run, including the runs below it.
 * - With an API key, `/v1/usage?key=self` sums only the calls of that key and of its runs. With a run's key, it sums only the calls of that run, like
 *   the filter `run`, because the runs below it have separate sums. A user token has no key, so the service refuses the request with 400.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidKey } from "../../people/credentials/Problems.ts"
import { Allowances } from "../allowances/Allowances.ts"
import { BudgetedRuns } from "../../people/runs/BudgetedRuns.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import type { RunId } from "../../kernel/Ids.ts"
import { heldKey, heldRun } from "./HeldKey.ts"
import type { HeldKey } from "./HeldKey.ts"
import { Sums } from "./Sums.ts"

export interface HeldKeysContract {
  /** Fails with `InvalidKey` if the key was just deleted, or if the caller has no key. */
  readonly of: (caller: Caller) => Effect.Effect<HeldKey, InvalidKey>
}

export class HeldKeys extends Context.Tag("tollgate/usage/HeldKeys")<HeldKeys, HeldKeysContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(HeldKeys, make))
}

const make = Effect.gen(function* () {
  const applications = yield* Applications
  const sums = yield* Sums
  const allowances = yield* Allowances
  const budgeted = yield* BudgetedRuns
  const ofRun = (caller: Caller, run_id: RunId) =>
    Effect.mapBoth(budgeted.find({ caller, run_id }), {
      onFailure: () => new InvalidKey(),
      onSuccess: (run) => heldRun(run, caller)
    })
  const of: HeldKeysContract["of"] = Effect.fn("HeldKeys.of")(function* (caller) {
    const { application_id, runs, tenant_id } = caller
    if (application_id === null) return yield* new InvalidKey()
    if (runs !== undefined) return yield* ofRun(caller, runs[0] as RunId)
    const key = yield* Effect.mapError(
      applications.find({ caller: { tenant_id, account_id: null }, application_id }),
      () => new InvalidKey()
    )
    const window = { start: null, end: null }
    const { total_cost, total_requests, total_tokens } = yield* sums.summary({ caller, window, application_id })
    const usage = { total_requests, total_tokens, total_cost }
    const allowance = Option.getOrUndefined(yield* Effect.option(allowances.find(tenant_id)))
    return heldKey(key, tenant_id, { usage, allowance }, yield* Clock.currentTimeMillis)
  })
  return { of } satisfies HeldKeysContract
})
