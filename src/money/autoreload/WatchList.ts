/** The balances that are watched, and what follows from their movements: crossings to handle, reloads that are due. In memory only. */
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { StoredSettings } from "./AutoReload.ts"
import { isNews, observe, watched } from "./Watched.ts"
import type { Watched } from "./Watched.ts"

export const make = () => {
  /** By billing account. Of a movement of another account, nothing costs more than a look in here. */
  const byAccount = new Map<string, Watched>()
  /** Those with crossings to handle. */
  const crossed = new Set<Watched>()
  /** For whom a reload is due, and from when on an attempt may begin. */
  const due = new Map<Watched, number>()

  return {
    byAccount,
    crossed,
    due,
    /** When all watched balances are to be read next, in milliseconds since 1970. */
    lookAt: 0,

    /** Watches the balance by these settings from now on, and no longer by earlier ones. */
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

    /** Takes in a movement; gives whether there is something new to do. */
    moved: (account: string, before: Nano, after: Nano): boolean => {
      const one = byAccount.get(account)
      if (one === undefined || !observe(one, before, after)) return false
      if (one.crossings.length > 0) crossed.add(one)
      if (one.due && !due.has(one)) due.set(one, 0)
      return true
    },

    /** The same on a node that does not lead: whether the one that does has to look. */
    concerns: (account: string, before: Nano, after: Nano): boolean => {
      const one = byAccount.get(account)
      return one !== undefined && isNews(one, before, after)
    },

    /** An attempt of the tenant began, so no reload is due. */
    attemptBegan: (tenant: TenantId): void => {
      const one = byAccount.get(billingAccountOf(tenant))
      if (one === undefined) return
      one.due = false
      due.delete(one)
    },

    /** Until now no other attempt of the tenant could begin. */
    attemptEnded: (tenant: TenantId): void => {
      const one = byAccount.get(billingAccountOf(tenant))
      if (one?.due === true) due.set(one, 0)
    }
  }
}

export type WatchList = ReturnType<typeof make>
