/** The names of everything that can be called, as in usage records. */
import { Effect, Layer } from "effect"
import { KnownModels } from "../people/tenants/KnownModels.ts"
import { partsOf } from "./Capabilities.ts"

/** Needs the settings of every capability. */
export const knownModels = Layer.effect(
  KnownModels,
  Effect.map(Effect.all(partsOf("names")), (names) => new Set(names.flat()))
)
