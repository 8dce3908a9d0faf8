/** How much of the answers of Idempotency-Keys is kept, of the configuration file: `idempotency`. */
import { Layer, Schema } from "effect"
import { StoredAnswersConfig, StoredAnswersSettings } from "./StoredAnswers.ts"

export const fields = {
  idempotency: Schema.optionalWith(StoredAnswersSettings, {
    default: () => Schema.decodeSync(StoredAnswersSettings)({})
  })
}

export const layer = ({ idempotency }: { readonly idempotency: StoredAnswersSettings }) =>
  Layer.succeed(StoredAnswersConfig, idempotency)
