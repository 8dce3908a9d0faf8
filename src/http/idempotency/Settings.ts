/** The configured limits on stored responses: `idempotency`. */
import { Layer, Schema } from "effect"
import { StoredAnswersConfig, StoredAnswersSettings } from "./StoredAnswers.ts"

export const fields = {
  idempotency: Schema.optionalWith(StoredAnswersSettings, {
    default: () => Schema.decodeSync(StoredAnswersSettings)({})
  })
}

export const layer = ({ idempotency }: { readonly idempotency: StoredAnswersSettings }) =>
  Layer.succeed(StoredAnswersConfig, idempotency)
