/** The configuration section `tools.speech`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import { distinct, readAs } from "../../kernel/Setting.ts"
import { modelFields, named, providerFields } from "../../upstream/models/Provider.ts"

export const SpeechModel = readAs(
  Schema.Struct({
    ...modelFields,
    /** Whether the model can stream audio as events (`stream_format: "sse"`). */
    events: Schema.optionalWith(Schema.Boolean, { default: () => false }),
    /** USD per character. */
    price: Schema.propertySignature(UsdPer(1_000_000)).pipe(Schema.fromKey("usd_per_million_characters"))
  }),
  ({ events, id, model, price }) => ({ id, upstream_model: model ?? id, events, price })
)
export interface SpeechModel extends Schema.Schema.Type<typeof SpeechModel> {}

/** A provider with OpenAI's audio routes. */
export const SpeechProvider = readAs(
  Schema.Struct({ ...providerFields, models: Schema.NonEmptyArray(SpeechModel) }),
  named
)
export interface SpeechProvider extends Schema.Schema.Type<typeof SpeechProvider> {}

/** The configured speech providers. The first is the default. */
export class SpeechProviders extends Context.Tag("tollgate/speech/SpeechProviders")<
  SpeechProviders,
  ReadonlyArray<SpeechProvider>
>() {
  static readonly layer = (providers: ReadonlyArray<SpeechProvider>) => Layer.succeed(SpeechProviders, providers)
  static readonly layerNone = Layer.succeed(SpeechProviders, [])
}

export const fields = { speech: Schema.optionalWith(distinct(SpeechProvider), { default: () => [] }) }

export const layer = ({ speech }: { readonly speech: ReadonlyArray<SpeechProvider> }) => SpeechProviders.layer(speech)
