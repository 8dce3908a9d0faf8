/** Stores the watched balances in memory, with the crossings to handle and the due reloads. */
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { StoredSettings } from "./AutoReload.ts"
import { isNews, observe, watched } from "./Watched.ts"
import type { Watched } from "./Watched.ts"

export const make = () => {
  /** The watched balances by billing account. A movement of any other account costs only one lookup. */
  const byAccount = new Map<string, Watched>()
  const crossed = new Set<Watched>()
  /** Balances with a due reload, each with the earliest start of its attempt. */
  const due = new Map<Watched, number>()

  return {
    byAccount,
    crossed,
    due,
    /** The Unix time, in milliseconds, of the next check of all watched balances. */
    checkAt: 0,

    /** Watches a balance under these settings, which replace the tenant's earlier settings. */
    watch: (tenant: TenantId, settings: StoredSettings, balance: Nano): void => {
      const account = billingAccountOf(tenant)
      const before = byAccount.get(account)
      if (before !== undefined) {
        crossed.delete(before)
        due.delete(before)
      }
      const one = watched(tenant, settings, balance)
      if (one === undefined) return void byAccount.delete(account)
      byAccount.set(account, one)
      if (one.due) due.set(one, 0)
    },

    /** Records a movement. Returns whether it caused new work. */
    moved: (account: string, before: Nano, after: Nano): boolean => {
      const one = byAccount.get(account)
      if (one === undefined || !observe(one, before, after)) return false
      if (one.crossings.length > 0) crossed.add(one)
      if (one.due && !due.has(one)) due.set(one, 0)
      return true
    },

    /** Records a movement on a node that does not lead. Returns whether the leading node must check the balance. */
    concerns: (account: string, before: Nano, after: Nano): boolean => {
      const one = byAccount.get(account)
      return one !== undefined && isNews(one, before, after)
    },

    /** Records that an attempt of the tenant began, so no reload is due. */
    attemptBegan: (tenant: TenantId): void => {
      const one = byAccount.get(billingAccountOf(tenant))
      if (one === undefined) return
      one.due = false
      due.delete(one)
    },

    /** Records that the tenant's attempt ended, so a due reload may begin. */
    attemptEnded: (tenant: TenantId): void => {
      const one = byAccount.get(billingAccountOf(tenant))
      if (one?.due === true) due.set(one, 0)
    }
  }
}

export type WatchList = ReturnType<typeof make>
