/** Sends the log's checkpoints to the configured witnesses, in a loop. `books/log/Cosigning` decides what to send and what a reply means. */
import { Clock, Context, Effect, Layer } from "effect"
import { Cosigning } from "../../books/log/Cosigning.ts"
import type { SendToWitness, WitnessFigures } from "../../books/log/Cosigning.ts"
import { LogSettings } from "../../books/log/Settings.ts"
import * as Loop from "../../kernel/Loop.ts"
import { connect } from "../../upstream/witnesses/AddCheckpoint.ts"

export interface WitnessesContract {
  /** The state of each witness, for the metrics. */
  readonly figures: Effect.Effect<ReadonlyArray<WitnessFigures>>
  /** `layerJobs` runs it. */
  readonly job: Loop.Job
}

export class Witnesses extends Context.Tag("tollgate/receipts/Witnesses")<Witnesses, WitnessesContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Witnesses, make))
  static readonly layerJobs = Loop.layer(Witnesses, ({ job }) => [job])
}

/** How often the loop looks for a new checkpoint, in milliseconds. */
const pauseIdle = 250

const make = Effect.gen(function* () {
  const { cosign_ms, witnesses } = yield* LogSettings
  const cosigning = yield* Cosigning
  const ways = new Map(
    yield* Effect.forEach(witnesses, ({ url, verifier }) =>
      Effect.map(connect(url), (send) => [verifier, send] as const)
    )
  )
  const ask: SendToWitness = ({ verifier }, body) => ways.get(verifier)!(body)
  let isDismissed = false
  /** When the last checkpoint was sent. */
  let sent = 0

  const turn = Effect.gen(function* () {
    if (!isDismissed) yield* cosigning.dismiss
    isDismissed = true
    if (witnesses.length === 0) return undefined
    const now = yield* Clock.currentTimeMillis
    if (now - sent < cosign_ms) return cosign_ms - (now - sent)
    if ((yield* cosigning.round(ask)) !== undefined) sent = now
    return pauseIdle
  })

  return { figures: cosigning.figures, job: { name: "witnesses", turn } } satisfies WitnessesContract
})
