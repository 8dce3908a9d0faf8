/** Who can speak, with which models, and what a character costs there. */
import { Context } from "effect"
import type { UnitPrice } from "../kernel/Price.ts"
import type { Provider } from "../upstream/Provider.ts"

export interface SpeechModel {
  readonly id: string
  /** What the upstream calls it. */
  readonly upstream_model: string
  /** USD a character. */
  readonly price: UnitPrice
}

/** A provider that speaks the OpenAI audio routes. */
export interface SpeechProvider extends Provider {
  readonly models: ReadonlyArray<SpeechModel>
}

export class SpeechProviders extends Context.Reference<SpeechProviders>()("tollgate/speech/SpeechProviders", {
  defaultValue: (): ReadonlyArray<SpeechProvider> => []
}) {}
