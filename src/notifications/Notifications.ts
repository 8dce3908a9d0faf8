/** An account's notices: read, and marked as read. Other rooms write them, with `notice`. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { AccountId } from "../kernel/Ids.ts"
import { paginated } from "../kernel/Page.ts"
import type { PageOf } from "../kernel/Page.ts"
import { statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import type { Notification, NotificationId, NotificationPage } from "./Notification.ts"
import { NotificationNotFound } from "./Problems.ts"

export interface NotificationsContract {
  /** Newest first. */
  readonly list: (account: AccountId, page: PageOf) => Effect.Effect<typeof NotificationPage.Type>
  /** Marking it again changes nothing. */
  readonly read: (account: AccountId, id: NotificationId) => Effect.Effect<Notification, NotificationNotFound>
}

export class Notifications extends Context.Tag("tollgate/notifications/Notifications")<
  Notifications,
  NotificationsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Notifications, make))
}

type Row = Omit<Notification, "data"> & { readonly data: string }

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer

  const list = Effect.fn("Notifications.list")(function* (account: AccountId, page: PageOf) {
    const [counts] = yield* sql<{ all: number; unread: number }>`SELECT count(*) AS "all",
      count(*) FILTER (WHERE read_at IS NULL) AS unread FROM tollgate_notifications_notices WHERE account_id = ${account}`
    const rows = yield* sql<Row>`SELECT * FROM tollgate_notifications_notices WHERE account_id = ${account}
      ORDER BY id DESC LIMIT ${page.per_page} OFFSET ${(page.page - 1) * page.per_page}`
    return { ...paginated(page, counts?.all ?? 0, rows.map(fromRow)), unread: counts?.unread ?? 0 }
  }, Effect.orDie)

  const read = Effect.fn("Notifications.read")(function* (account: AccountId, id: NotificationId) {
    const now = yield* Clock.currentTimeMillis
    const mark = sql`UPDATE tollgate_notifications_notices SET read_at = coalesce(read_at, ${now})
      WHERE id = ${id} AND account_id = ${account}`
    yield* Effect.orDie(writer.submit({ postings: [], statements: [statement(mark)] }))
    const [row] =
      yield* sql<Row>`SELECT * FROM tollgate_notifications_notices WHERE id = ${id} AND account_id = ${account}`.pipe(
        Effect.orDie
      )
    return row === undefined ? yield* new NotificationNotFound() : fromRow(row)
  })

  return { list, read } satisfies NotificationsContract
})

const fromRow = ({ created_at, data, id, kind, read_at, text, title }: Row): Notification => ({
  id,
  kind,
  title,
  text,
  data: JSON.parse(data) as Notification["data"],
  created_at,
  read_at
})
