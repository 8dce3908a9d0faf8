/**
 * How often one address may knock where an anonymous or a guessing caller could hurt: so many times a minute, counted in whole
 * minutes of the service's clock. Counters live in memory; a restart forgives.
 *
 * Where the specification is silent:
 * - Limits by address count in whole minutes of the clock, in memory, and only trust `X-Forwarded-For` where the configuration says so.
 */
import type { HttpServerRequest } from "@effect/platform"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { isIPv6 } from "node:net"
import { Count } from "../../kernel/Setting.ts"
import { RateLimited } from "../contract/Problems.ts"

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

export interface RateLimitsContract {
  /** Counts a call of this address; refuses it, with the seconds to wait, when there were too many in this minute. */
  readonly take: (name: RateLimitName, request: HttpServerRequest.HttpServerRequest) => Effect.Effect<void, RateLimited>
}

export class RateLimits extends Context.Tag("tollgate/http/RateLimits")<RateLimits, RateLimitsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(RateLimits, make))
}

const minute = 60_000
/** More networks than this within a minute share one counter: the table cannot be made to grow. */
const networksMax = 100_000

const make = Effect.gen(function* () {
  const settings = yield* RateLimitsConfig
  let current = 0
  let counts = new Map<string, number>()

  const take: RateLimitsContract["take"] = Effect.fnUntraced(function* (name, request) {
    const now = yield* Clock.currentTimeMillis
    const period = Math.floor(now / minute)
    if (period !== current) {
      current = period
      counts = new Map()
    }
    const key = `${name} ${addressOf(request, settings.trust_forwarded_for)}`
    const counted = counts.has(key) || counts.size < networksMax ? key : name
    const count = (counts.get(counted) ?? 0) + 1
    counts.set(counted, count)
    if (count > settings[name]) {
      return yield* new RateLimited({ retry_after: Math.ceil(((period + 1) * minute - now) / 1000) })
    }
  })

  return { take } satisfies RateLimitsContract
})

const addressOf = (request: HttpServerRequest.HttpServerRequest, forwarded: boolean): string => {
  const claimed = forwarded ? request.headers["x-forwarded-for"]?.split(",").at(-1)?.trim() : undefined
  return networkOf(claimed || Option.getOrElse(request.remoteAddress, () => ""))
}

/**
 * What an address is counted by: an IPv4 address itself, an IPv6 address as the /64 that it is in, since a single customer has as many
 * addresses as that. A port is left out; what is no address is counted as it is.
 */
export const networkOf = (address: string): string => {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1] ?? address
  const withoutZone = bare.split("%", 1)[0]!
  if (!isIPv6(withoutZone)) return /^(\d+(?:\.\d+){3}):\d+$/.exec(bare)?.[1] ?? bare
  const groups = groupsOf(withoutZone)
  // An IPv4 address that came over a socket for both.
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 0xff])
      .join(".")
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`
}

/** The eight groups of an IPv6 address. */
const groupsOf = (address: string): ReadonlyArray<number> => {
  // Without an IPv4 address at its end, in lower case.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::")
  const [left, right] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":")))
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - left!.length - right!.length }, () => "0")
  return [...left!, ...zeros, ...right!].map((group) => Number.parseInt(group, 16))
}
