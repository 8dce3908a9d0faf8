/**
 * The bytes of request bodies that the process holds at once. All bodies share one budget, uploads that lie on the disk included,
 * so that many large or stalled ones cannot use up the memory. A body that comes too slowly is given up.
 */
import { Context, Layer } from "effect"

export interface BytesSettings {
  /** The budget. Of it an eighth is kept for short bodies, so that calls go on while long ones wait. */
  readonly bytes_total: number
  /** Every so many milliseconds a body must bring `bytesAWindow`, or its end. */
  readonly window_ms: number
}

/** What a body must bring in each window. */
export const bytesAWindow = 64 * 1024

/** A body up to this long is a short one. */
export const shortMax = 64 * 1024

/** What one body holds of the budget. */
export interface Share {
  /** Takes this many bytes more, and answers whether there was room. */
  readonly take: (count: number) => boolean
  /** Gives everything back. */
  readonly release: () => void
}

export interface Budget {
  readonly share: () => Share
  readonly window_ms: number
}

const preset: BytesSettings = { bytes_total: 256 * 1024 * 1024, window_ms: 15_000 }

const make = ({ bytes_total, window_ms }: BytesSettings): Budget => {
  const forLong = bytes_total - bytes_total / 8
  let taken = 0

  class Held implements Share {
    private held = 0
    take(count: number): boolean {
      if (taken + count > (this.held + count > shortMax ? forLong : bytes_total)) return false
      taken += count
      this.held += count
      return true
    }
    release(): void {
      taken -= this.held
      this.held = 0
    }
  }

  return { share: () => new Held(), window_ms }
}

/** Without a layer of its own, an application shares the budget of the process. */
export class Bytes extends Context.Reference<Bytes>()("tollgate/http/Bytes", {
  defaultValue: () => make(preset)
}) {
  static readonly layer = (settings: Partial<BytesSettings>) =>
    Layer.sync(Bytes, () => make({ ...preset, ...settings }))
}
