/**
 * Lists an account's notifications and marks them as read. Other modules write them with `notice`.
 *
 * Where the specification is silent:
 * - The service stores an account's 1,000 newest notifications. A further notification overwrites the oldest, read or unread.
 * - The field `unread` of a page is the total number of unread notifications.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import type { AccountId } from "../../kernel/Ids.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { paginated } from "../../kernel/Page.ts"
import type { PageOf } from "../../kernel/Page.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { Notification, NotificationId, NotificationPage, NotificationsMarked } from "./Notification.ts"
import { NotificationNotFound } from "./Problems.ts"

type By = Pick<Caller, "account_id">

/** Times are Unix times in milliseconds. */
export interface NotificationsContract {
  /** Returns a page of the caller's notifications, newest first, and the total number of unread notifications. */
  readonly list: (request: { readonly caller: By } & PageOf) => Effect.Effect<typeof NotificationPage.Type>
  /** Returns each account's newest id. Accounts without notifications are absent. */
  readonly newest: (accounts: ReadonlyArray<AccountId>) => Effect.Effect<ReadonlyMap<AccountId, NotificationId>>
  /** Returns notifications after an id, oldest first. An empty id means all. */
  readonly since: (account: AccountId, id: string, limit: number) => Effect.Effect<ReadonlyArray<Notification>>
  /** Marks one of the caller's notifications as read. Idempotent. */
  readonly read: (request: {
    readonly caller: By
    readonly id: NotificationId
  }) => Effect.Effect<Notification, NotificationNotFound | BooksUnavailable>
  /** Marks the caller's notifications as read: all of them, or those up to and including an id. */
  readonly readAll: (request: {
    readonly caller: By
    readonly up_to?: NotificationId | undefined
  }) => Effect.Effect<typeof NotificationsMarked.Type, BooksUnavailable>
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

  const list: NotificationsContract["list"] = Effect.fn("Notifications.list")(function* ({ caller, page, per_page }) {
    const account = caller.account_id
    const [counts] = yield* sql<{ all: number; unread: number }>`SELECT count(*) AS "all",
      count(*) FILTER (WHERE read_at IS NULL) AS unread FROM tollgate_notifications_notices WHERE account_id = ${account}`
    const rows = yield* sql<Row>`SELECT * FROM tollgate_notifications_notices WHERE account_id = ${account}
      ORDER BY id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
    return { ...paginated({ page, per_page }, counts?.all ?? 0, rows.map(fromRow)), unread: counts?.unread ?? 0 }
  }, Effect.orDie)

  const newest: NotificationsContract["newest"] = Effect.fnUntraced(function* (accounts) {
    const rows = yield* sql<{ account_id: AccountId; id: NotificationId }>`SELECT account_id, max(id) AS id
      FROM tollgate_notifications_notices
      WHERE account_id IN (SELECT value FROM json_each(${JSON.stringify(accounts)})) GROUP BY account_id`
    return new Map(rows.map(({ account_id, id }) => [account_id, id]))
  }, Effect.orDie)

  const since: NotificationsContract["since"] = Effect.fnUntraced(function* (account, id, limit) {
    const rows =
      yield* sql<Row>`SELECT * FROM tollgate_notifications_notices WHERE account_id = ${account} AND id > ${id}
      ORDER BY id LIMIT ${limit}`
    return rows.map(fromRow)
  }, Effect.orDie)

  const read: NotificationsContract["read"] = Effect.fn("Notifications.read")(function* ({ caller, id }) {
    const account = caller.account_id
    const now = yield* Clock.currentTimeMillis
    const mark = sql`UPDATE tollgate_notifications_notices SET read_at = coalesce(read_at, ${now})
      WHERE id = ${id} AND account_id = ${account}`
    yield* Statements.write(writer, statement(mark))
    const [row] =
      yield* sql<Row>`SELECT * FROM tollgate_notifications_notices WHERE id = ${id} AND account_id = ${account}`.pipe(
        Effect.orDie
      )
    return row === undefined ? yield* new NotificationNotFound({ id }) : fromRow(row)
  })

  const unreadOf = (account: AccountId) =>
    Effect.map(
      Effect.orDie(sql<{ unread: number }>`SELECT count(*) AS unread FROM tollgate_notifications_notices
        WHERE account_id = ${account} AND read_at IS NULL`),
      ([row]) => row?.unread ?? 0
    )

  const readAll: NotificationsContract["readAll"] = Effect.fn("Notifications.readAll")(function* ({ caller, up_to }) {
    const account = caller.account_id
    const now = yield* Clock.currentTimeMillis
    const last = up_to ?? (yield* newest([account])).get(account)
    const before = yield* unreadOf(account)
    if (last === undefined || before === 0) return { marked: 0, unread: before }
    const mark = sql`UPDATE tollgate_notifications_notices SET read_at = ${now}
      WHERE account_id = ${account} AND id <= ${last} AND read_at IS NULL`
    yield* Statements.write(writer, statement(mark))
    const unread = yield* unreadOf(account)
    return { marked: Math.max(0, before - unread), unread }
  })

  return { list, newest, since, read, readAll } satisfies NotificationsContract
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
