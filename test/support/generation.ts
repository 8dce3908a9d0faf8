/** Controls generation jobs at the sandbox's vendors, and the time of their polls. */
import { Effect } from "effect"
import { Jobs } from "../../src/calls/media/Jobs.ts"
import { Outside } from "./Called.ts"

/** Sets the job's status at the vendor. */
export const move = Effect.fnUntraced(function* (request_id: string, status: "IN_PROGRESS" | "COMPLETED" | "FAILED") {
  const sandbox = yield* Outside
  const { vendorId } = yield* Jobs
  const none = () => Effect.succeed(false)
  sandbox.connect({ credit: none, setBillingStatus: none, setPlan: none, vendorId })
  yield* Effect.promise(() =>
    fetch(`${sandbox.control}/media`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ request_id, status })
    })
  )
})

/** Runs an effect on the sandbox's clock, which `pass` advances. */
export const atSandboxTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Outside, ({ clock }) => Effect.withClock(effect, clock))

export const pass = (milliseconds: number) => Effect.flatMap(Outside, ({ steered }) => steered.advance(milliseconds))
