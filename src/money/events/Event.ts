/** What a listener is told as it happens, and the cursor by which it goes on after a lost connection. */
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Notification } from "../../people/notifications/Notification.ts"
import type { UsageRecord } from "../usage/Usage.ts"

/** Who listens, to the events of which tenant. */
export interface Listener {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  /** Whether it may see the person's notifications. */
  readonly notified: boolean
}

/** How far a listener has come: the number of the last call of the tenant, and the last notification of the account (empty: none). */
export interface Place {
  readonly tenant_id: TenantId
  readonly call: number
  readonly notification: string
}

export type FeedEvent =
  | { readonly type: "ready" }
  | { readonly type: "call"; readonly record: UsageRecord }
  | { readonly type: "balance"; readonly balance: Nano }
  | { readonly type: "notification"; readonly notification: Notification }
  /** More calls were missed than are sent: the listener reads them anew. */
  | { readonly type: "reset" }
  /** Nothing has happened for a while. */
  | { readonly type: "beat" }

/** Why a stream ends: its credential does not hold any more, its listener does not read, or it gave its place to another listener. */
export type FeedEnd = "credential" | "slow" | "displaced"

export const cursorOf = ({ call, notification, tenant_id }: Place): string => `${tenant_id}.${call}.${notification}`

/** The place that a cursor of this tenant names; `undefined`: none. */
export const placeIn = (cursor: string | undefined, tenant_id: TenantId): Place | undefined => {
  const [, tenant, call, notification = ""] =
    /^(ten_\w{1,40})\.(\d{1,15})\.((?:ntf_\w{1,40})?)$/.exec(cursor ?? "") ?? []
  return tenant === tenant_id ? { tenant_id, call: Number(call), notification } : undefined
}
