/** Records the latest calls that the outside world received. */
import type { ServiceName } from "./World.ts"

export const callsMax = 10_000
/** The maximum recorded body size, in bytes. A longer body is truncated. */
export const bodyBytesMax = 1024 * 1024
/** The maximum total size of recorded bodies, in bytes. The oldest calls are dropped first. */
export const bytesMax = 64 * 1024 * 1024

export interface Call {
  readonly service: ServiceName
  readonly path: string
  readonly body: Buffer
  /** Whether the caller closed the connection before the response was complete. */
  aborted: boolean
}

export interface Calls {
  readonly note: (service: ServiceName, path: string, body: Buffer) => Call
  /** Returns a JSON array, newest call first. */
  readonly list: (service: ServiceName | undefined, limit: number) => string
  /** Drops all calls. Returns how many were dropped. */
  readonly clear: () => number
}

export const make = (): Calls => {
  // A ring buffer. Call i is at index i modulo the length. The buffer contains the calls from `first` up to, but not including, `next`.
  const ring: Array<Call | undefined> = Array.from({ length: callsMax })
  let first = 0
  let next = 0
  let bytes = 0

  /** Drops the oldest calls until at most `count` calls with `size` bytes are left. */
  const shrink = (count: number, size: number) => {
    for (; next - first > count || bytes > size; first++) {
      bytes -= ring[first % callsMax]?.body.length ?? 0
      ring[first % callsMax] = undefined
    }
  }

  return {
    note: (service, path, body) => {
      // Copy the body, because a view would keep the entire buffer in memory.
      const truncatedBody = body.length > bodyBytesMax ? Buffer.from(body.subarray(0, bodyBytesMax)) : body
      const call: Call = { service, path, body: truncatedBody, aborted: false }
      shrink(callsMax - 1, bytesMax - truncatedBody.length)
      bytes += truncatedBody.length
      ring[next % callsMax] = call
      next += 1
      return call
    },
    list: (service, limit) => {
      const shown: Array<string> = []
      for (let i = next - 1; i >= first && shown.length < limit; i--) {
        const call = ring[i % callsMax]
        if (call !== undefined && (service === undefined || call.service === service)) shown.push(show(call))
      }
      return `[${shown.join(",")}]`
    },
    clear: () => {
      const count = next - first
      shrink(0, 0)
      return count
    }
  }
}

const show = ({ aborted, body, path, service }: Call): string =>
  `{"service":"${service}","path":${JSON.stringify(path)},"body":${bodyOf(body)},"aborted":${aborted}}`

/** Returns a JSON body unchanged, with all its digits. Any other body becomes a JSON string. */
const bodyOf = (body: Buffer): string => {
  if (body.length === 0) return "null"
  const text = body.toString()
  try {
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify(text)
  }
}
