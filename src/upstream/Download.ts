/**
 * A file that a vendor has made, fetched by the address that the vendor's answer gives, or decoded from a data URI. The vendor is trusted
 * as far as the operator who configured it trusts it; no redirect is followed.
 */
import { Effect } from "effect"
import * as Wire from "./Wire.ts"

/** How long a file may take to come, in milliseconds. */
const timeout = 60_000

/** The bytes of a file of up to `limit` bytes. */
export const download = (url: string, limit: number): Effect.Effect<Buffer, Wire.Unreachable> =>
  url.startsWith("data:") ? decoded(url) : Effect.scoped(fetched(url, limit))

const decoded = (url: string): Effect.Effect<Buffer, Wire.Unreachable> => {
  const comma = url.indexOf(",")
  return /;base64$/i.test(url.slice(0, comma))
    ? Effect.succeed(Buffer.from(url.slice(comma + 1), "base64"))
    : new Wire.Unreachable({ reason: "a data URI that is not base64" })
}

const fetched = Effect.fnUntraced(function* (url: string, limit: number) {
  if (!URL.canParse(url)) return yield* new Wire.Unreachable({ reason: "no address" })
  const { origin, pathname, search } = new URL(url)
  const wire = yield* Wire.make({ base_url: origin, silence_ms_max: timeout })
  const request = { method: "GET", path: pathname + search, headers: {} } as const
  const { body, status } = yield* wire.exchange(request, { limit, timeout, read_on: false })
  return status === 200 ? body : yield* new Wire.Unreachable({ reason: `status ${status}` })
})
