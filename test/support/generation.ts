/** Generation jobs in a program over the sandbox's vendors: moved as a test requires, with control over the time of polls. */
import { Effect } from "effect"
import { Jobs } from "../../src/calls/media/Jobs.ts"
import { Outside } from "./Called.ts"

/** Sets the vendor's status of the job. */
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

/** On the sandbox's clock, which `pass` advances. */
export const atSandboxTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Outside, ({ clock }) => Effect.withClock(effect, clock))

export const pass = (milliseconds: number) => Effect.flatMap(Outside, ({ steered }) => steered.advance(milliseconds))
