/** The names of models, capabilities and providers that usage records can contain. */
import { Effect, Layer } from "effect"
import { ImageProviders } from "../calls/images/Settings.ts"
import { SearchProviders } from "../calls/search/Settings.ts"
import { SpeechProviders } from "../calls/speech/Settings.ts"
import { TranscriptionProviders } from "../calls/transcription/Settings.ts"
import { KnownCalls } from "../money/budgets/KnownCalls.ts"
import { KnownModels } from "../people/tenants/KnownModels.ts"
import { Upstreams } from "../upstream/models/Upstreams.ts"
import { partsOf } from "./Capabilities.ts"

const models = Effect.map(Effect.all(partsOf("names")), (names) => new Set(names.flat()))

/** Provides all model names. Requires every capability's settings. */
export const knownModels = Layer.effect(KnownModels, models)

/** The names of capabilities in claims (`Claim.capability`). */
const capabilities = [
  "chat",
  "decisions",
  "email",
  "embeddings",
  "images",
  "media",
  "rerank",
  "search",
  "speech",
  "transcription"
]

const providers = Effect.gen(function* () {
  const upstreams = [...(yield* Upstreams).keys()]
  const tools = [yield* ImageProviders, yield* SearchProviders, yield* SpeechProviders, yield* TranscriptionProviders]
  return new Set([...upstreams, ...tools.flatMap((list) => list.map(({ id }) => id)), "mail"])
})

/** Provides all names that calls can contain. Requires every capability's settings and the upstreams. */
export const knownCalls = Layer.effect(
  KnownCalls,
  Effect.zipWith(models, providers, (models, providers) => ({ models, providers, capabilities: new Set(capabilities) }))
)
