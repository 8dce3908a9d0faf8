/**
 * A balance that somebody wants to be told of. Each movement is shown to it as the balance before and after; it says when the balance
 * is low, when an alert may come again, and when a reload is due. It runs in the middle of calls, so it only compares.
 */
import type { TenantId } from "../kernel/Ids.ts"
import type { Nano } from "../kernel/Money.ts"
import type { Kept } from "./Settings.ts"

/** `low`: the balance fell below the first threshold; `rearmed`: it rose above the second. */
export type Turn = { readonly _tag: "low"; readonly balance: Nano } | { readonly _tag: "rearmed" }

export interface Watched {
  readonly tenant: TenantId
  /** Of the settings that it follows from. */
  readonly updated_at: number
  /** 0 where there is no auto-reload. */
  readonly reload_below: Nano
  /** 0 where there are no alerts. */
  readonly warn_below: Nano
  readonly rearm_above: Nano
  /** Whether the next fall below the threshold is told. */
  armed: boolean
  /** Turns that nobody was told of yet, in their order. */
  readonly turns: Array<Turn>
  /** Whether the balance fell below the threshold of auto-reload, and no attempt has begun since. */
  due: boolean
  /** The balance as it was last shown, and how often it was. */
  last: Nano
  shown: number
}

/** `undefined` where nothing is to be watched. */
export const watched = (tenant: TenantId, kept: Kept, balance: Nano): Watched | undefined => {
  const reload_below = kept.enabled ? kept.threshold : 0n
  const warn_below = kept.alerts_enabled ? (kept.warn_threshold ?? 0n) : 0n
  if (reload_below === 0n && warn_below === 0n) return undefined
  return {
    tenant,
    updated_at: kept.updated_at,
    reload_below,
    warn_below,
    rearm_above: kept.rearm_threshold ?? warn_below,
    armed: !kept.warned,
    turns: [],
    due: kept.fell,
    last: kept.looked ?? balance,
    shown: 0
  }
}

/** Shows a movement; answers whether there is something new to do. */
export const show = (one: Watched, before: Nano, after: Nano): boolean => {
  one.last = after
  one.shown++
  let news = false
  if (one.warn_below > 0n) {
    // What lifted it may have been a movement that was not shown: a grant by a command in another process.
    if (!one.armed && (before > one.rearm_above || after > one.rearm_above)) {
      one.armed = true
      one.turns.push({ _tag: "rearmed" })
      news = true
    }
    if (one.armed && after < before && after < one.warn_below) {
      one.armed = false
      one.turns.push({ _tag: "low", balance: after })
      news = true
    }
  }
  if (!one.due && after < before && after < one.reload_below) {
    one.due = true
    news = true
  }
  return news
}
