/** Schemas for an account's notifications within the service. */
import { Schema } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Paginated } from "../../kernel/Page.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"

export const Kind = Schema.Literal(
  "transfer_received",
  "transfer_ended",
  "tenant_invite",
  "low_balance",
  "auto_reload_failed",
  "budget_reached",
  "budget_raised"
)
export type Kind = typeof Kind.Type

export const NotificationId = Schema.String.pipe(Schema.brand("NotificationId"))
export type NotificationId = typeof NotificationId.Type

export const Notification = Schema.Struct({
  id: NotificationId,
  kind: Kind,
  /** `title` is one line, and `text` is one or two sentences. */
  title: Schema.String,
  text: Schema.String,
  /** The ids of related objects, such as `{ transfer_id }`. */
  data: Schema.Record({ key: Schema.String, value: Schema.String }),
  created_at: Moment,
  read_at: Schema.NullOr(Moment)
}).annotations({ identifier: "Notification" })
export type Notification = typeof Notification.Type

export const NotificationPage = Schema.Struct({
  ...Paginated(Notification).fields,
  /** The total number of unread notifications. */
  unread: Schema.Int
}).annotations({ identifier: "NotificationPage" })

/** The notifications to mark as read: all of them, or those up to and including an id. */
export const NotificationsRead = Schema.Struct({
  up_to: Schema.optionalWith(NotificationId, { exact: true })
}).annotations({ identifier: "NotificationsRead" })

/** The numbers of newly marked and of unread notifications. */
export const NotificationsMarked = Schema.Struct({ marked: Schema.Int, unread: Schema.Int }).annotations({
  identifier: "NotificationsMarked"
})

export interface Notice {
  readonly account_id: AccountId
  readonly kind: Kind
  readonly title: string
  readonly text: string
  readonly data?: Readonly<Record<string, string>>
}

export const noticesMax = 1_000

/**
 * Returns the statement that notifies an account, for the transaction that causes the notification. If the account's list is full, the statement
 * overwrites the oldest notification.
 */
export const notice = ({ account_id, data = {}, kind, text, title }: Notice, now: number): Statement => {
  const id = Ids.at("ntf", now)
  return {
    text: `INSERT INTO tollgate_notifications_notices (id, account_id, kind, title, text, data, created_at)
      SELECT coalesce((SELECT id FROM tollgate_notifications_notices WHERE account_id = ?
        ORDER BY id DESC LIMIT 1 OFFSET ${noticesMax - 1}), ?), ?, ?, ?, ?, ?, CAST(? AS BIGINT)
      WHERE 1 = 1
      ON CONFLICT (id) DO UPDATE SET id = ?, kind = excluded.kind, title = excluded.title, text = excluded.text,
        data = excluded.data, created_at = excluded.created_at, read_at = NULL`,
    params: [account_id, id, account_id, kind, title, text, JSON.stringify(data), now, id]
  }
}
