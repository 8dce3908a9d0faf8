/** The configured limits on requests and responses: `rate_limits`, `bodies` and `answers`. */
import { Layer, Schema } from "effect"
import { Bytes, BytesSettings } from "../transport/Bytes.ts"
import { RateLimitsConfig, RateLimitSettings } from "../transport/RateLimits.ts"
import { AnswerSettings, Unread } from "./Unread.ts"

export const fields = {
  rate_limits: Schema.optionalWith(RateLimitSettings, { default: () => Schema.decodeSync(RateLimitSettings)({}) }),
  bodies: Schema.optionalWith(BytesSettings, { default: () => Schema.decodeSync(BytesSettings)({}) }),
  answers: Schema.optionalWith(AnswerSettings, { default: () => Schema.decodeSync(AnswerSettings)({}) })
}

export const layer = ({
  answers,
  bodies,
  rate_limits
}: {
  readonly rate_limits: RateLimitSettings
  readonly bodies: BytesSettings
  readonly answers: AnswerSettings
}) => Layer.mergeAll(Layer.succeed(RateLimitsConfig, rate_limits), Bytes.layer(bodies), Unread.layer(answers))
