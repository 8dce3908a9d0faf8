/**
 * Compares a balance with the tenant's thresholds at each movement to detect a low balance, its recovery and a due reload. It runs during calls, so
 * it does no I/O.
 *
 * Where the specification is silent:
 * - The writer reports every balance that a posting moved (`Writer.watch`), and `money/autoreload/` compares it with the tenant's thresholds. A check
 *   of all watched balances at startup and every ten minutes finds the movements of other processes and those just before a crash.
 */
import type { TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { StoredSettings } from "./AutoReload.ts"

/** `low` means that the balance fell below the first threshold, `rearmed` that it rose above the second. */
export type Crossing = { readonly _tag: "low"; readonly balance: Nano } | { readonly _tag: "rearmed" }

export interface Watched {
  readonly tenant: TenantId
  /** The time of the last change. It identifies the version of the settings. */
  readonly updated_at: number
  /** 0 if auto-reload is disabled. */
  readonly reload_below: Nano
  /** 0 if alerts are disabled. */
  readonly warn_below: Nano
  readonly rearm_above: Nano
  /** Whether the next fall below the threshold causes an alert. */
  armed: boolean
  /** Crossings to handle, in order. */
  readonly crossings: Array<Crossing>
  /** Whether the balance fell below the auto-reload threshold without a subsequent attempt. */
  due: boolean
  /** The balance after the last movement, and the movement count. */
  last: Nano
  movements: number
  /** The number of thresholds above the balance at the last `isNews` call. */
  below: number
}

/** Creates the state of a watched balance. Returns `undefined` if both auto-reload and alerts are disabled. */
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

/** Records a movement. Returns whether it caused new work. */
export const observe = (one: Watched, before: Nano, after: Nano): boolean => {
  one.last = after
  one.movements++
  let news = false
  if (one.warn_below > 0n) {
    // An unreported movement may have raised the balance, such as a grant by a command in another process.
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
 * Returns whether a movement can cause an alert, a reload or the end of an alert. Nodes that do not lead call this function. They do not see
 * movements on other nodes, so several nodes can report the same fall, which is harmless. A balance that remains low is reported once.
 */
export const isNews = (one: Watched, before: Nano, after: Nano): boolean => {
  const { rearm_above, reload_below, warn_below } = one
  const below = (balance: Nano): number => (balance < warn_below ? 1 : 0) + (balance < reload_below ? 1 : 0)
  const known = Math.min(one.below, below(before))
  one.below = below(after)
  return one.below > known || (before <= rearm_above && after > rearm_above)
}
