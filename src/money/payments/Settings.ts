/** The payment processor of the configuration file: `payments`. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { Address, ConfigProblem, NonEmpty, secretOf } from "../../kernel/Setting.ts"
import { Payments } from "../../upstream/payments/Payments.ts"

const PaymentProcessor = Schema.Struct({
  processor: Schema.Literal("stripe"),
  /** The environment variables that hold the secret key and the secret that webhooks are signed with. */
  secret_key_env: Schema.optional(NonEmpty),
  webhook_secret_env: Schema.optional(NonEmpty),
  /** The same themselves; for a processor that needs no secret, like a local one. */
  secret_key: Schema.optional(NonEmpty),
  webhook_secret: Schema.optional(NonEmpty),
  /** Another address than the processor's own. */
  base_url: Schema.optional(Address),
  /** Where people come back to from its pages; else the console's view of credit, or `public_url` where no console is served. */
  return_url: Schema.optional(Address)
})
type PaymentProcessor = typeof PaymentProcessor.Type

export const fields = {
  /** Who takes the money; without it, credit is only granted or booked by the operator. */
  payments: Schema.optional(PaymentProcessor)
}

/** Fails where a secret is not given. */
export const layer = ({
  console,
  payments
}: {
  /** Of a deployment that serves one. */
  readonly console?: { readonly enabled: boolean }
  readonly payments?: PaymentProcessor | undefined
}): Layer.Layer<Payments, ConfigProblem, ServiceInfo> =>
  payments === undefined ? Payments.layerNone : processor(payments, console?.enabled === true ? "/console/credit" : "")

/** `page`: the path of the view that people come back to. */
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

/** One of the two secrets: from the variable that its entry names, or from the entry. */
const secret = (
  payments: PaymentProcessor,
  entry: "secret_key" | "webhook_secret"
): Effect.Effect<Redacted.Redacted, ConfigProblem> =>
  Effect.flatMap(secretOf(`payments.${entry}_env`, payments[`${entry}_env`]), (value) => {
    const found = value ?? (payments[entry] === undefined ? undefined : Redacted.make(payments[entry]))
    return found === undefined
      ? new ConfigProblem({ message: `payments.${entry}_env: required, the environment variable that holds it` })
      : Effect.succeed(found)
  })
