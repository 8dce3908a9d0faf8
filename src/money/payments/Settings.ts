/** Reads the configured payment processor: `payments`. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { Address, ConfigProblem, NonEmpty, secretOf } from "../../kernel/Setting.ts"
import { Payments } from "../../upstream/payments/Payments.ts"

const PaymentProcessor = Schema.Struct({
  processor: Schema.Literal("stripe"),
  /** Names of the environment variables with the secret key and the webhook signing secret. */
  secret_key_env: Schema.optional(NonEmpty),
  webhook_secret_env: Schema.optional(NonEmpty),
  /** The secrets themselves, for a local processor that needs no real secrets. */
  secret_key: Schema.optional(NonEmpty),
  webhook_secret: Schema.optional(NonEmpty),
  /** The address to use instead of the processor's default. */
  base_url: Schema.optional(Address),
  /** The URL that the processor's pages return to. Defaults to the console's credit view, or to `public_url` without a console. */
  return_url: Schema.optional(Address)
})
type PaymentProcessor = typeof PaymentProcessor.Type

export const fields = {
  /** The payment processor. Without one, only the operator can grant or book credit. */
  payments: Schema.optional(PaymentProcessor)
}

/** Provides the payment processor, if one is configured. Fails if a secret is missing. */
export const layer = ({
  console,
  payments
}: {
  /** Present if the deployment serves a console. */
  readonly console?: { readonly enabled: boolean }
  readonly payments?: PaymentProcessor | undefined
}): Layer.Layer<Payments, ConfigProblem, ServiceInfo> =>
  payments === undefined ? Payments.layerNone : processor(payments, console?.enabled === true ? "/console/credit" : "")

/** Builds the layer of a processor. `page` is the path of the view that the processor returns to. */
const processor = (payments: PaymentProcessor, page: string) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const { public_url } = yield* ServiceInfo
      return Payments.layerStripe({
        secret_key: yield* secret(payments, "secret_key"),
        webhook_secret: yield* secret(payments, "webhook_secret"),
        base_url: payments.base_url,
        return_url: payments.return_url ?? `${public_url}${page}`
      })
    })
  )

/** Reads one of the two secrets from its environment variable or from its literal value. */
const secret = (
  payments: PaymentProcessor,
  entry: "secret_key" | "webhook_secret"
): Effect.Effect<Redacted.Redacted, ConfigProblem> =>
  Effect.flatMap(secretOf(`payments.${entry}_env`, payments[`${entry}_env`]), (value) => {
    const found = value ?? (payments[entry] === undefined ? undefined : Redacted.make(payments[entry]))
    return found === undefined
      ? new ConfigProblem({
          message: `payments.${entry}_env: must be the name of the environment variable that contains the secret`
        })
      : Effect.succeed(found)
  })
