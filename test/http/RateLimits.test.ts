/** Limits by address: what counts as one, and what a minute holds. */
import { HttpServerRequest } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { networkOf, RateLimits, RateLimitsConfig } from "../../src/http/transport/RateLimits.ts"

describe("an address", () => {
  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["203.0.113.7:5678", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["::FFFF:cb00:7107", "203.0.113.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:1:2::", "2001:db8:1:2::/64"],
    ["2001:0db8:0001:0002:ffff::1", "2001:db8:1:2::/64"],
    ["[2001:db8:1:2::9]:443", "2001:db8:1:2::/64"],
    ["2001:db8::9", "2001:db8:0:0::/64"],
    ["2001:db8::64:0:0:192.0.2.1", "2001:db8:0:64::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["unknown", "unknown"],
    ["", ""]
  ])("%s is counted as %s", (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})

describe("a limit", () => {
  const from = (address: string) =>
    HttpServerRequest.fromWeb(new Request("http://x/", { headers: { "x-forwarded-for": `198.51.100.1, ${address}` } }))
  const settings = { ...RateLimitsConfig.defaultValue(), token: 2, trust_forwarded_for: true }

  it.effect("holds for all addresses of a /64 together, for a minute", () =>
    Effect.gen(function* () {
      const { take } = yield* RateLimits
      yield* take("token", from("2001:db8::1"))
      yield* take("token", from("2001:db8::ffff"))
      const refused = yield* Effect.flip(take("token", from("2001:db8::2:2")))
      expect(refused.retry_after).toBe(60)
      yield* take("token", from("2001:db8:0:1::1"))
      yield* take("sign_in", from("2001:db8::1"))
      yield* TestClock.adjust("1 minute")
      yield* take("token", from("2001:db8::1"))
    }).pipe(Effect.provide(RateLimits.layer), Effect.provideService(RateLimitsConfig, settings))
  )

  it.effect("on contact messages holds for a day", () =>
    Effect.gen(function* () {
      const { take } = yield* RateLimits
      for (let i = 0; i < 20; i++) {
        yield* take("contact_per_day", from("203.0.113.7"))
        yield* TestClock.adjust("1 minute")
      }
      expect((yield* Effect.flip(take("contact_per_day", from("203.0.113.7")))).retry_after).toBe(86_400 - 20 * 60)
      yield* take("contact_per_day", from("203.0.113.8"))
      yield* take("contact", from("203.0.113.7"))
      yield* TestClock.adjust("1 day")
      yield* take("contact_per_day", from("203.0.113.7"))
    }).pipe(Effect.provide(RateLimits.layer), Effect.provideService(RateLimitsConfig, settings))
  )

  it.effect("holds for each network, however many others send", () =>
    Effect.gen(function* () {
      const { take } = yield* RateLimits
      for (let i = 0; i < 100_000; i++) {
        yield* take("contact_per_day", from(`2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::1`))
      }
      for (let i = 0; i < 40; i++) yield* take("contact_per_day", from(`203.0.113.${i}`))
      for (let i = 0; i < 20; i++) yield* take("contact_per_day", from("198.51.100.1"))
      yield* Effect.flip(take("contact_per_day", from("198.51.100.1")))
    }).pipe(Effect.provide(RateLimits.layer), Effect.provideService(RateLimitsConfig, settings))
  )
})
