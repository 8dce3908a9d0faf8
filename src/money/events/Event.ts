/** Live events, and the cursor for continuing after a lost connection. */
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Notification } from "../../people/notifications/Notification.ts"
import type { UsageRecord } from "../usage/Usage.ts"

/** An account that listens to a tenant's events. */
export interface Listener {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  /** Whether the listener may see the account's notifications. */
  readonly notified: boolean
}

/** A listener's position: the number of the last call sent, and the id of the last notification sent (empty before the first). */
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
  /** The listener missed too many calls and must reload them. */
  | { readonly type: "reset" }
  /** A heartbeat, sent after 15 seconds without another event. */
  | { readonly type: "beat" }

/** The reason why a stream ended: its credential became invalid, its listener is too slow, or another listener replaced it. */
export type FeedEnd = "credential" | "slow" | "displaced"

export const cursorOf = ({ call, notification, tenant_id }: Place): string => `${tenant_id}.${call}.${notification}`

/** Decodes a cursor. Returns `undefined` unless it is a valid cursor for this tenant. */
export const placeIn = (cursor: string | undefined, tenant_id: TenantId): Place | undefined => {
  const [, tenant, call, notification = ""] =
    /^(ten_\w{1,40})\.(\d{1,15})\.((?:ntf_\w{1,40})?)$/.exec(cursor ?? "") ?? []
  return tenant === tenant_id ? { tenant_id, call: Number(call), notification } : undefined
}
