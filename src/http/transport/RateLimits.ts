/**
 * Rate limits per address, for routes that need no account. The counters are in memory (`kernel/Counts`), so a restart resets them.
 *
 * Where the specification is silent:
 * - Requests are counted in memory, per clock minute. Contact messages are also counted per day (UTC). `X-Forwarded-For` is trusted only if the
 *   configuration enables it.
 * - An address may send 20 contact messages a day (`contact_per_day`). Any further message gets 429 `rate_limited`.
 */
import type { HttpServerRequest } from "@effect/platform"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { isIPv6 } from "node:net"
import { counts, leftOf } from "../../kernel/Counts.ts"
import { Count } from "../../kernel/Setting.ts"
import { RateLimited } from "../contract/Problems.ts"

const limit = (preset: number) => Schema.optionalWith(Count, { default: () => preset })

/** Requests per minute from one address. */
export const RateLimitSettings = Schema.Struct({
  sign_in: limit(60),
  sign_in_link: limit(10),
  token: limit(120),
  /** The pages of the OAuth code flow, and the requests of a custom consent page. */
  authorize: limit(60),
  invite_preview: limit(30),
  client_token: limit(30),
  /** Invalid bearer tokens on `/metrics`. */
  metrics: limit(60),
  /** Invalid bearer tokens on `/scim/v2`. */
  scim: limit(300),
  /** The public files of the log: its checkpoint and its tiles. */
  log: limit(1_200),
  contact: limit(10),
  /** Contact messages per day from one address. */
  contact_per_day: limit(20),
  /** Whether the last entry of X-Forwarded-For is the caller's address. Enable this only behind your own proxy. */
  trust_forwarded_for: Schema.optionalWith(Schema.Boolean, { default: () => false })
})
export interface RateLimitSettings extends Schema.Schema.Type<typeof RateLimitSettings> {}
export type RateLimitName = Exclude<keyof RateLimitSettings, "trust_forwarded_for">

export class RateLimitsConfig extends Context.Reference<RateLimitsConfig>()("tollgate/http/RateLimitsConfig", {
  defaultValue: () => Schema.decodeSync(RateLimitSettings)({})
}) {}

export interface RateLimitsContract {
  /** Counts a request for its address, and refuses it if the address has sent too many requests in this minute or day. */
  readonly take: (name: RateLimitName, request: HttpServerRequest.HttpServerRequest) => Effect.Effect<void, RateLimited>
}

export class RateLimits extends Context.Tag("tollgate/http/RateLimits")<RateLimits, RateLimitsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(RateLimits, make))
}

const minute = 60_000
const day = 24 * 60 * minute
const periodOf = (name: RateLimitName): number => (name === "contact_per_day" ? day : minute)

const make = Effect.gen(function* () {
  const settings = yield* RateLimitsConfig
  const { add } = yield* counts

  const take: RateLimitsContract["take"] = Effect.fnUntraced(function* (name, request) {
    const now = yield* Clock.currentTimeMillis
    const network = senderOf(request, settings)
    const period = periodOf(name)
    const count = yield* add(`${name} ${network}`, period, now)
    if (count > settings[name]) return yield* new RateLimited({ retry_after: Math.ceil(leftOf(period, now) / 1000) })
  })

  return { take } satisfies RateLimitsContract
})

export const senderOf = (
  request: HttpServerRequest.HttpServerRequest,
  { trust_forwarded_for }: Pick<RateLimitSettings, "trust_forwarded_for">
): string => {
  const claimed = trust_forwarded_for ? request.headers["x-forwarded-for"]?.split(",").at(-1)?.trim() : undefined
  return networkOf(claimed || Option.getOrElse(request.remoteAddress, () => ""))
}

/**
 * Returns the counter's key for an address: an IPv4 address itself, or the /64 of an IPv6 address, because a single customer has that many addresses.
 * A port is dropped, and any other string is used unchanged.
 */
export const networkOf = (address: string): string => {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1] ?? address
  const withoutZone = bare.split("%", 1)[0]!
  if (!isIPv6(withoutZone)) return /^(\d+(?:\.\d+){3}):\d+$/.exec(bare)?.[1] ?? bare
  const groups = groupsOf(withoutZone)
  // This is an IPv4 address from a dual-stack socket.
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

const groupsOf = (address: string): ReadonlyArray<number> => {
  // The URL parser rewrites an IPv4 suffix and lower-cases the address.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::")
  const [left, right] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":")))
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - left!.length - right!.length }, () => "0")
  return [...left!, ...zeros, ...right!].map((group) => Number.parseInt(group, 16))
}
