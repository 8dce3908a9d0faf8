/** The interval of the service's own verification: `verify` in the configuration file. */
import { Context, Layer, Schema } from "effect"
import { Seconds } from "../../../kernel/Setting.ts"

const hour = 3_600_000

/** The interval in milliseconds; `undefined` disables verification. */
export class VerifyInterval extends Context.Reference<VerifyInterval>()("tollgate/ledger/VerifyInterval", {
  defaultValue: (): number | undefined => hour
}) {}

const Interval = Schema.Struct({ interval_ms: Schema.propertySignature(Seconds).pipe(Schema.fromKey("every_seconds")) })

export const fields = {
  /** `false` disables verification. */
  verify: Schema.optionalWith(Schema.Union(Interval, Schema.Literal(false)), {
    default: () => ({ interval_ms: hour })
  })
}

export const layer = ({ verify }: { readonly verify: false | { readonly interval_ms: number } }) =>
  Layer.succeed(VerifyInterval, verify === false ? undefined : verify.interval_ms)
