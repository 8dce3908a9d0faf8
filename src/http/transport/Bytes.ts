/**
 * The process's byte budget for request bodies and complete upstream responses. Without it, many large or stalled bodies could exhaust the memory.
 * Uploads buffered on disk count too. A body that arrives too slowly is rejected.
 *
 * Some bytes are reserved for a response before its upstream is called. If none are free, the call is refused. A response that turns out to be long
 * waits for the additional bytes while its upstream is paused. It requests them in one step, so responses never wait for each other. A response that
 * waits longer than 30 seconds is charged and discarded (`upstream/wire/Intake`).
 */
import { Context, Layer, Schema } from "effect"
import type { Room } from "../../kernel/Room.ts"
import { Seconds } from "../../kernel/Setting.ts"

export const BytesSettings = Schema.Struct({
  /**
   * The total budget. An eighth of it is reserved for short bodies, so calls continue while long bodies wait. No account may hold more of the
   * remaining budget than it leaves for the others. Once half of the budget is in use, this rule also applies to short bodies.
   */
  bytes_total: Schema.optionalWith(Schema.Int.pipe(Schema.greaterThanOrEqualTo(128 * 1024 * 1024)), {
    default: () => 256 * 1024 * 1024
  }),
  /** The length of a window, in milliseconds. In each window, a body must deliver `windowBytesMin` or end. */
  window_ms: Schema.optionalWith(Seconds, { default: () => 15_000 }).pipe(Schema.fromKey("window_seconds"))
})
export interface BytesSettings extends Schema.Schema.Type<typeof BytesSettings> {}

/** The minimum number of body bytes per window. */
export const windowBytesMin = 64 * 1024

/** The maximum length of a short body, in bytes. */
export const shortMax = 64 * 1024

/** How long a long response waits for its bytes, in milliseconds. */
const waitMax = 30_000

/** The part of the budget that one body or response holds. */
export interface Share extends Room {
  /** Releases all bytes. The share cannot take any bytes after that. */
  readonly release: () => void
}

export interface Budget {
  /** Returns whether more than half of the budget is in use. */
  readonly isTight: () => boolean
  /** Creates a share for a body sent by this account or network. All bodies without a holder count as those of a single holder. */
  readonly share: (holder: string | undefined) => Share
  readonly window_ms: number
}

export interface Budgets extends Budget {
  /**
   * A separate budget, a sixteenth of the size, for the bodies of routes without a credential. Its holders are networks. No network may hold more
   * than it leaves for the others, even with short bodies. Otherwise, one network could keep all others from signing in.
   */
  readonly open: Budget
}

const presets = Schema.decodeSync(BytesSettings)({})

/** Exported for tests. */
export const make = ({ bytes_total, window_ms }: BytesSettings): Budgets =>
  Object.assign(new Pool({ total: bytes_total, forLong: bytes_total - bytes_total / 8, shortMax, window_ms }), {
    open: new Pool({ total: bytes_total / 16, forLong: bytes_total / 16, shortMax: 0, window_ms })
  })

interface PoolOptions {
  readonly total: number
  /** The part of the total that bodies of more than `shortMax` bytes may use. */
  readonly forLong: number
  readonly shortMax: number
  readonly window_ms: number
}

class Holders extends Map<string, number> {
  of(holder: string): number {
    return this.get(holder) ?? 0
  }
  subtract(holder: string, count: number): void {
    const left = this.of(holder) - count
    if (left === 0) this.delete(holder)
    else this.set(holder, left)
  }
}

/** The bytes held by bodies and responses, within a total. */
class Pool implements Budget {
  readonly options: PoolOptions
  taken = 0
  readonly long = new Holders()
  /** The short bodies that began while the budget was tight. Counting all short bodies would slow down every call. */
  readonly short = new Holders()
  /** The responses that are waiting for bytes, in order of arrival. */
  private waiting: ReadonlyArray<Waiting> = []

  constructor(options: PoolOptions) {
    this.options = options
  }

  get window_ms(): number {
    return this.options.window_ms
  }

  readonly isTight = (): boolean => this.taken > this.options.total / 2

  readonly share = (holder = ""): Share => new Held(this, holder)

  isAwaited(holder: string): boolean {
    return this.waiting.some(({ share }) => share.holder === holder)
  }

  wait(one: Waiting): void {
    this.waiting = [...this.waiting, one]
  }

  leave(one: Waiting): void {
    this.waiting = this.waiting.filter((other) => other !== one)
  }

  /** Grants released bytes to the waiting responses. */
  freed(): void {
    const granted = this.waiting.filter(({ bytes, share }) => share.hold(bytes))
    if (granted.length === 0) return
    this.waiting = this.waiting.filter((one) => !granted.includes(one))
    for (const { granted: tell } of granted) tell()
  }
}

interface Waiting {
  readonly share: Held
  readonly bytes: number
  readonly granted: () => void
}

class Held implements Share {
  readonly holder: string
  held = 0
  private readonly pool: Pool
  /** The counter that includes `held`. */
  private among: Holders | undefined
  private over = false

  constructor(pool: Pool, holder: string) {
    this.pool = pool
    this.holder = holder
  }

  reserve(count: number): boolean {
    return !this.pool.isAwaited(this.holder) && this.take(count)
  }

  claim(bytes: number, then: (granted: boolean) => void): (() => void) | undefined {
    if (this.over) return () => {}
    if (this.hold(bytes)) return undefined
    const { pool } = this
    const one: Waiting = {
      share: this,
      bytes,
      granted: () => {
        clearTimeout(timer)
        // Bytes can be released inside one upstream's parser, and another upstream's parser must not run inside it.
        setImmediate(then, true)
      }
    }
    const leave = () => {
      clearTimeout(timer)
      pool.leave(one)
    }
    const timer = setTimeout(() => {
      leave()
      then(false)
    }, waitMax)
    pool.wait(one)
    return leave
  }

  /** Holds this many bytes in total if the budget allows it. Returns whether the bytes are held. */
  hold(bytes: number): boolean {
    const { held } = this
    this.giveBack()
    const fits = this.take(bytes)
    if (!fits) this.put(held)
    return fits
  }

  take(count: number): boolean {
    const { among: before, held, holder, pool } = this
    if (this.over) return false
    const { forLong, shortMax, total } = pool.options
    const isLong = held + count > shortMax
    const among = isLong ? pool.long : (before ?? (pool.isTight() ? pool.short : undefined))
    if (among === undefined) {
      if (pool.taken + count > total) return false
    } else {
      const mine = among.of(holder) + count + (among === before ? 0 : held)
      // No holder may hold more than it leaves for the others.
      if (mine > (isLong ? forLong : total) - pool.taken) return false
      if (among !== before) before?.subtract(holder, held)
      among.set(holder, mine)
      this.among = among
    }
    pool.taken += count
    this.held += count
    return true
  }

  become(count: number): void {
    if (this.over) return
    this.giveBack()
    this.put(count)
    this.pool.freed()
  }

  release(): void {
    this.over = true
    if (this.held === 0) return
    this.giveBack()
    this.pool.freed()
  }

  private put(count: number): void {
    const { holder, pool } = this
    pool.taken += count
    this.held = count
    if (count <= pool.options.shortMax) return
    this.among = pool.long
    pool.long.set(holder, pool.long.of(holder) + count)
  }

  private giveBack(): void {
    this.pool.taken -= this.held
    this.among?.subtract(this.holder, this.held)
    this.held = 0
    this.among = undefined
  }
}

/** The budgets of an application. An application without its own layer shares the budget of the process. */
export class Bytes extends Context.Reference<Bytes>()("tollgate/http/Bytes", {
  defaultValue: () => make(presets)
}) {
  static readonly layer = (settings: Partial<BytesSettings>) =>
    Layer.sync(Bytes, () => make({ ...presets, ...settings }))
}
