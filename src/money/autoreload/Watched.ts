/**
 * A balance that is compared with a tenant's thresholds at each movement. It says when the balance is low, when an alert may come
 * again, and when a reload is due. It runs in the middle of calls, so it only compares.
 *
 * Where the specification is silent:
 * - The writer tells of every balance that a posting moved, up or down (`Writer.watch`); `money/autoreload/` compares it with the tenant's
 *   thresholds. A look at all watched balances, at the start and every ten minutes, finds movements that nobody told of: those of another
 *   process, and those before a crash.
 */
import type { TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { StoredSettings } from "./AutoReload.ts"

/** `low`: the balance fell below the first threshold; `rearmed`: it rose above the second. */
export type Crossing = { readonly _tag: "low"; readonly balance: Nano } | { readonly _tag: "rearmed" }

export interface Watched {
  readonly tenant: TenantId
  /** Of the settings that it follows from. */
  readonly updated_at: number
  /** 0 where there is no auto-reload. */
  readonly reload_below: Nano
  /** 0 where there are no alerts. */
  readonly warn_below: Nano
  readonly rearm_above: Nano
  /** Whether the next fall below the threshold causes an alert. */
  armed: boolean
  /** Crossings that are still to be handled, in their order. */
  readonly crossings: Array<Crossing>
  /** Whether the balance fell below the threshold of auto-reload, and no attempt has begun since. */
  due: boolean
  /** The balance after the last movement, and how many movements there were. */
  last: Nano
  movements: number
  /** Below how many thresholds the balance was when `isNews` last saw it. */
  below: number
}

/** `undefined` where nothing is to be watched. */
export const watched = (tenant: TenantId, settings: StoredSettings, balance: Nano): Watched | undefined => {
  const reload_below = settings.enabled ? settings.threshold : 0n
  const warn_below = settings.alerts_enabled ? (settings.warn_threshold ?? 0n) : 0n
  if (reload_below === 0n && warn_below === 0n) return undefined
  return {
    tenant,
    updated_at: settings.updated_at,
    reload_below,
    warn_below,
    rearm_above: settings.rearm_threshold ?? warn_below,
    armed: !settings.warned,
    crossings: [],
    due: settings.fell,
    last: settings.looked ?? balance,
    movements: 0,
    below: 0
  }
}

/** Takes in a movement; gives whether there is something new to do. */
export const observe = (one: Watched, before: Nano, after: Nano): boolean => {
  one.last = after
  one.movements++
  let news = false
  if (one.warn_below > 0n) {
    // What lifted it may have been a movement that was not observed: a grant by a command in another process.
    if (!one.armed && (before > one.rearm_above || after > one.rearm_above)) {
      one.armed = true
      one.crossings.push({ _tag: "rearmed" })
      news = true
    }
    if (one.armed && after < before && after < one.warn_below) {
      one.armed = false
      one.crossings.push({ _tag: "low", balance: after })
      news = true
    }
  }
  if (!one.due && after < before && after < one.reload_below) {
    one.due = true
    news = true
  }
  return news
}

/**
 * Whether a movement may cause an alert, its end or a reload. For a node that does not lead: it knows of no other movements, and what it
 * says twice does no harm. A balance that stays low is news once.
 */
export const isNews = (one: Watched, before: Nano, after: Nano): boolean => {
  const { rearm_above, reload_below, warn_below } = one
  const below = (balance: Nano): number => (balance < warn_below ? 1 : 0) + (balance < reload_below ? 1 : 0)
  const known = Math.min(one.below, below(before))
  one.below = below(after)
  return one.below > known || (before <= rearm_above && after > rearm_above)
}
