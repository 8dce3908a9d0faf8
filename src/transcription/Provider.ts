/** Who can transcribe, with which models, and what a second costs there. */
import { Context } from "effect"
import type { UnitPrice } from "../kernel/Price.ts"
import type { Provider } from "../upstream/Provider.ts"

export interface TranscriptionModel {
  readonly id: string
  /** What the upstream calls it. */
  readonly upstream_model: string
  /** The response format in which the upstream says how long the audio is: `verbose_json`, where the model knows it. */
  readonly wire_format: "verbose_json" | "json"
  /** USD a second; every second that has begun counts. */
  readonly price: UnitPrice
}

/** A provider that speaks the OpenAI audio routes. */
export interface TranscriptionProvider extends Provider {
  readonly models: ReadonlyArray<TranscriptionModel>
}

export class TranscriptionProviders extends Context.Reference<TranscriptionProviders>()(
  "tollgate/transcription/TranscriptionProviders",
  { defaultValue: (): ReadonlyArray<TranscriptionProvider> => [] }
) {}
