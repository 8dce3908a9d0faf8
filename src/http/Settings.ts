/** The limits of requests of the configuration file: `rate_limits` and `bodies`. */
import { Layer, Schema } from "effect"
import { Bytes, BytesSettings } from "./Bytes.ts"
import { RateLimitsConfig, RateLimitSettings } from "./RateLimits.ts"

export const fields = {
  rate_limits: Schema.optionalWith(RateLimitSettings, { default: () => Schema.decodeSync(RateLimitSettings)({}) }),
  bodies: Schema.optionalWith(BytesSettings, { default: () => Schema.decodeSync(BytesSettings)({}) })
}

export const layer = ({
  bodies,
  rate_limits
}: {
  readonly rate_limits: RateLimitSettings
  readonly bodies: BytesSettings
}) => Layer.merge(Layer.succeed(RateLimitsConfig, rate_limits), Bytes.layer(bodies))
