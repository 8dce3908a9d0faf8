/**
 * How often one address may knock where an anonymous or a guessing caller could hurt: so many times a minute, counted in whole
 * minutes of the service's clock. Counters live in memory; a restart forgives.
 */
import type { HttpServerRequest } from "@effect/platform"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { Count } from "../kernel/Setting.ts"
import { RateLimited } from "./Problems.ts"

const perMinute = (preset: number) => Schema.optionalWith(Count, { default: () => preset })

/** Calls a minute and address. */
export const RateLimitSettings = Schema.Struct({
  sign_in: perMinute(60),
  token: perMinute(120),
  /** The pages of the OAuth code flow, and what a consent page of one's own asks. */
  authorize: perMinute(60),
  invite_preview: perMinute(30),
  client_token: perMinute(30),
  contact: perMinute(10),
  /** Whether the last entry of X-Forwarded-For is the caller's address: behind a proxy of one's own only. */
  trust_forwarded_for: Schema.optionalWith(Schema.Boolean, { default: () => false })
})
export interface RateLimitSettings extends Schema.Schema.Type<typeof RateLimitSettings> {}
export type RateLimitName = Exclude<keyof RateLimitSettings, "trust_forwarded_for">

export class RateLimitsConfig extends Context.Reference<RateLimitsConfig>()("tollgate/http/RateLimitsConfig", {
  defaultValue: () => Schema.decodeSync(RateLimitSettings)({})
}) {}

export interface Contract {
  /** Counts a call of this address; refuses it, with the seconds to wait, when there were too many in this minute. */
  readonly take: (name: RateLimitName, request: HttpServerRequest.HttpServerRequest) => Effect.Effect<void, RateLimited>
}

export class RateLimits extends Context.Tag("tollgate/http/RateLimits")<RateLimits, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(RateLimits, make))
}

const minute = 60_000
/** More addresses than this within a minute share one counter: the table cannot be made to grow. */
const addressesMax = 100_000

const make = Effect.gen(function* () {
  const settings = yield* RateLimitsConfig
  let current = 0
  let counts = new Map<string, number>()

  const take: Contract["take"] = Effect.fnUntraced(function* (name, request) {
    const now = yield* Clock.currentTimeMillis
    const period = Math.floor(now / minute)
    if (period !== current) {
      current = period
      counts = new Map()
    }
    const key = `${name} ${addressOf(request, settings.trust_forwarded_for)}`
    const counted = counts.has(key) || counts.size < addressesMax ? key : name
    const count = (counts.get(counted) ?? 0) + 1
    counts.set(counted, count)
    if (count > settings[name]) {
      return yield* new RateLimited({ retry_after: Math.ceil(((period + 1) * minute - now) / 1000) })
    }
  })

  return { take } satisfies Contract
})

const addressOf = (request: HttpServerRequest.HttpServerRequest, forwarded: boolean): string => {
  const claimed = forwarded ? request.headers["x-forwarded-for"]?.split(",").at(-1)?.trim() : undefined
  return claimed || Option.getOrElse(request.remoteAddress, () => "")
}
