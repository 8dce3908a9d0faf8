/** The configuration section `tools.transcription`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { distinct, readAs } from "../../kernel/Setting.ts"
import { modelFields, named, providerFields } from "../../upstream/models/Provider.ts"

export const TranscriptionModel = readAs(
  Schema.Struct({
    ...modelFields,
    /** The response format to request. `verbose_json` reports the duration, but not every model supports it. */
    wire_format: Schema.optionalWith(Schema.Literal("verbose_json", "json"), { default: () => "json" as const }),
    /** Whether the model can translate speech to English, at the same price. */
    translates: Schema.optionalWith(Schema.Boolean, { default: () => false }),
    /**
     * The minimum number of seconds to reserve for audio that the service cannot count, such as M4A and WebM. The provider's duration is accepted up
     * to the reservation, so this value should be the maximum duration that the provider accepts. Two hours fit into 25 MiB at 30 kbit/s.
     */
    max_seconds: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 1_000_000)), { default: () => 7_200 }),
    usd_per_minute: UsdPer(1)
  }),
  ({ id, max_seconds, model, translates, usd_per_minute, wire_format }) => ({
    id,
    upstream_model: model ?? id,
    wire_format,
    translates,
    max_seconds,
    /** USD per second. A fraction of a second counts as a full second. */
    price: (usd_per_minute / 60n) as UnitPrice
  })
)
export interface TranscriptionModel extends Schema.Schema.Type<typeof TranscriptionModel> {}

/** A provider with OpenAI's audio routes. */
export const TranscriptionProvider = readAs(
  Schema.Struct({ ...providerFields, models: Schema.NonEmptyArray(TranscriptionModel) }),
  named
)
export interface TranscriptionProvider extends Schema.Schema.Type<typeof TranscriptionProvider> {}

/** The configured transcription providers. The first is the default. */
export class TranscriptionProviders extends Context.Tag("tollgate/transcription/TranscriptionProviders")<
  TranscriptionProviders,
  ReadonlyArray<TranscriptionProvider>
>() {
  static readonly layer = (providers: ReadonlyArray<TranscriptionProvider>) =>
    Layer.succeed(TranscriptionProviders, providers)
  static readonly layerNone = Layer.succeed(TranscriptionProviders, [])
}

export const fields = { transcription: Schema.optionalWith(distinct(TranscriptionProvider), { default: () => [] }) }

export const layer = ({ transcription }: { readonly transcription: ReadonlyArray<TranscriptionProvider> }) =>
  TranscriptionProviders.layer(transcription)
