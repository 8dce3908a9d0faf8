import { describe, expect, it } from "vitest"
import { isVendorId, vendorRequestsOf, withAttempt, withLast } from "../../src/kernel/VendorRequests.ts"

describe("the vendors' ids of a call", () => {
  it("are in the order of the attempts, and the last one served", () => {
    const ids = withAttempt(withAttempt(withAttempt(undefined, "one"), undefined), "three")
    expect(vendorRequestsOf(ids)).toEqual({ last: "three", retried: ["one"] })
    expect(vendorRequestsOf(withLast(ids, "four"))).toEqual({ last: "four", retried: ["one"] })
  })

  it("lose the oldest when there is no room", () => {
    const long = (name: string) => name.repeat(199)
    const ids = [..."abcdef"].map(long).reduce<string | undefined>(withAttempt, undefined)
    const { last, retried } = vendorRequestsOf(ids)
    expect(last).toBe(long("f"))
    expect(retried).toEqual([..."bcde"].map(long))
    expect(ids!.length).toBeLessThanOrEqual(1_000)
  })

  it.each(["", "-", "a b", "a\u0000b", "a\u0085b", "\ud800", "x".repeat(201)])("are not %j", (text) => {
    expect(isVendorId(text)).toBe(false)
  })
})
