/**
 * The bytes of request bodies that the process holds at once, and of answers that may be long and come whole (embeddings, reranking). All of
 * them share one budget, uploads that lie on the disk included, so that many large or stalled ones cannot use up the memory. A body that
 * comes too slowly is given up. Room for an answer is taken before its upstream is asked, by what it can be expected to have: one that has
 * come was paid for, and is never given up.
 */
import { Context, Layer, Schema } from "effect"
import { Seconds } from "../../kernel/Setting.ts"

export const BytesSettings = Schema.Struct({
  /**
   * The budget. Of it an eighth is kept for short bodies, so that calls go on while long ones wait; and of the rest no account takes
   * more than it leaves to the others.
   */
  bytes_total: Schema.optionalWith(Schema.Int.pipe(Schema.greaterThanOrEqualTo(128 * 1024 * 1024)), {
    default: () => 256 * 1024 * 1024
  }),
  /** Every so many milliseconds a body must bring `bytesAWindow`, or its end. */
  window_ms: Schema.optionalWith(Seconds, { default: () => 15_000 }).pipe(Schema.fromKey("window_seconds"))
})
export interface BytesSettings extends Schema.Schema.Type<typeof BytesSettings> {}

/** What a body must bring in each window. */
export const bytesAWindow = 64 * 1024

/** A body up to this long is a short one. */
export const shortMax = 64 * 1024

/** What one body, or answer, holds of the budget. */
export interface Share {
  /** Takes this many bytes more, and answers whether there was room. */
  readonly take: (count: number) => boolean
  /** Holds so many from now on, whether or not there is room for more. */
  readonly become: (count: number) => void
  /** Gives everything back. */
  readonly release: () => void
}

export interface Budget {
  /** Whether more than half of it is taken. */
  readonly isTight: () => boolean
  /** The share of a body that this account sends; undefined: of whom nobody knows. */
  readonly share: (holder: string | undefined) => Share
  readonly window_ms: number
}

export interface Budgets extends Budget {
  /** For bodies of routes that ask for no credential: a sixteenth as large, beside the other. */
  readonly open: Budget
}

const presets = Schema.decodeSync(BytesSettings)({})

/** Exported for tests. */
export const make = ({ bytes_total, window_ms }: BytesSettings): Budgets => ({
  ...budgetOf(bytes_total, window_ms),
  open: budgetOf(bytes_total / 16, window_ms)
})

const budgetOf = (bytes_total: number, window_ms: number): Budget => {
  const forLong = bytes_total - bytes_total / 8
  let taken = 0
  /** What each holder has of long bodies. */
  const holders = new Map<string, number>()

  class Held implements Share {
    private readonly holder: string
    private held = 0
    private isLong = false
    constructor(holder: string) {
      this.holder = holder
    }

    take(count: number): boolean {
      if (this.held + count > shortMax) {
        const mine = (holders.get(this.holder) ?? 0) + count + (this.isLong ? 0 : this.held)
        // Nobody takes more than they leave to the others.
        if (mine > forLong - taken) return false
        holders.set(this.holder, mine)
        this.isLong = true
      } else if (taken + count > bytes_total) {
        return false
      }
      taken += count
      this.held += count
      return true
    }

    become(count: number): void {
      this.release()
      taken += count
      this.held = count
      if (count <= shortMax) return
      holders.set(this.holder, (holders.get(this.holder) ?? 0) + count)
      this.isLong = true
    }

    release(): void {
      taken -= this.held
      if (this.isLong) {
        const left = holders.get(this.holder)! - this.held
        if (left === 0) holders.delete(this.holder)
        else holders.set(this.holder, left)
      }
      this.held = 0
      this.isLong = false
    }
  }

  return { isTight: () => taken > bytes_total / 2, share: (holder = "") => new Held(holder), window_ms }
}

/** Without a layer of its own, an application shares the budget of the process. */
export class Bytes extends Context.Reference<Bytes>()("tollgate/http/Bytes", {
  defaultValue: () => make(presets)
}) {
  static readonly layer = (settings: Partial<BytesSettings>) =>
    Layer.sync(Bytes, () => make({ ...presets, ...settings }))
}
