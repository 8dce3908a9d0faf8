/** All capabilities of the service, each defined by its room. The layers and the configuration are built from this list. */
import { Layer } from "effect"
import type { Effect, Schema } from "effect"
import { capability as chat } from "../calls/chat/Capability.ts"
import { capability as decisions } from "../calls/decisions/Capability.ts"
import { capability as email } from "../calls/email/Capability.ts"
import { capability as embeddings } from "../calls/embeddings/Capability.ts"
import { capability as images } from "../calls/images/Capability.ts"
import { capability as media } from "../calls/media/Capability.ts"
import { capability as rerank } from "../calls/rerank/Capability.ts"
import { capability as search } from "../calls/search/Capability.ts"
import { capability as speech } from "../calls/speech/Capability.ts"
import { capability as transcription } from "../calls/transcription/Capability.ts"

type AnyLayer = Layer.Layer<never, unknown, unknown>

/** A room's part of the configuration file: the schema of its entries and the layer that they configure. */
interface Settings {
  readonly fields: Schema.Struct.Fields
  readonly layer: (file: never) => AnyLayer
}

export interface Capability {
  /** The handlers of its route groups. `Api.ts` lists the groups, so that clients load no service. */
  readonly handlers: AnyLayer
  readonly layer: AnyLayer
  /** The names of its models or providers in usage records, for a key's `allowed_models`. */
  readonly names?: Effect.Effect<ReadonlyArray<string>, never, unknown>
  readonly jobs?: AnyLayer
  /** Its entries at the top level of the configuration file. */
  readonly settings?: Settings
  /** Its entries under `tools`. */
  readonly tool?: Settings
}

export const capabilities = [
  chat,
  media,
  decisions,
  embeddings,
  rerank,
  images,
  search,
  speech,
  transcription,
  email
] as const satisfies ReadonlyArray<Capability>

/** Collects one member from every capability that defines it. */
export const partsOf = <const Part extends keyof Capability>(part: Part) =>
  (capabilities as ReadonlyArray<Capability>).flatMap((one) => one[part] ?? []) as unknown as ReadonlyArray<
    PartOf<(typeof capabilities)[number], Part>
  >
type PartOf<One, Part extends string> = One extends { readonly [Name in Part]: infer Found } ? Found : never

/** Merges an array of layers, like `Layer.mergeAll`. */
export const merged = <L extends AnyLayer>(layers: ReadonlyArray<L>) =>
  Layer.mergeAll(...(layers as unknown as readonly [L])) as Layer.Layer<
    SuccessOf<L>,
    Layer.Layer.Error<L>,
    Layer.Layer.Context<L>
  >
/** Like `Layer.Success`, but distributes over a union. */
type SuccessOf<L> = L extends Layer.Layer<infer Services, infer _E, infer _R> ? Services : never

/** Combines the configuration entries of several settings. */
export const fieldsOf = <S extends Settings>(settings: ReadonlyArray<S>) =>
  Object.assign({}, ...settings.map(({ fields }) => fields)) as Together<S["fields"]>
type Together<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All extends Schema.Struct.Fields
    ? { readonly [Name in keyof All]: All[Name] }
    : never
  : never

/** Builds the layers of several settings, configured by `file`. */
export const layersOf = <S extends Settings>(settings: ReadonlyArray<S>, file: object) =>
  merged(settings.map(({ layer }) => layer(file as never) as ReturnType<S["layer"]>))
