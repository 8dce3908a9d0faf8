/** How much of the answers of Idempotency-Keys is kept, of the configuration file: `idempotency`. */
import { Layer, Schema } from "effect"
import { KeptConfig, KeptSettings } from "./Kept.ts"

export const fields = {
  idempotency: Schema.optionalWith(KeptSettings, { default: () => Schema.decodeSync(KeptSettings)({}) })
}

export const layer = ({ idempotency }: { readonly idempotency: KeptSettings }) => Layer.succeed(KeptConfig, idempotency)
