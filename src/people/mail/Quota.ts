/** Enforces the limits on emails that an account causes (`LetterLimits`), by counting them in the outbox. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Duration, Effect } from "effect"
import type { AccountId } from "../../kernel/Ids.ts"
import type { OutboxContract } from "./Outbox.ts"
import { TooManyLetters } from "./Problems.ts"
import type { LetterLimitFacts } from "./Settings.ts"

const hour = Duration.toMillis(Duration.hours(1))
const day = Duration.toMillis(Duration.days(1))

export const make = (sql: SqlClient, limits: LetterLimitFacts) => {
  /** The conditions on emails that count against each limit. */
  const ofHour = (account: AccountId, now: number) => sql`caused_by = ${account} AND created_at > ${now - hour}`
  const ofDay = (account: AccountId, to: string, now: number) =>
    sql`caused_by = ${account} AND created_at > ${now - day} AND recipient = ${to}`

  /** Returns the creation time of the email that must leave the period first, or `undefined` if another is allowed now. */
  const blockedBy = (counted: Fragment, limit: number) =>
    Effect.map(
      Effect.orDie(
        sql<{ created_at: number }>`SELECT created_at FROM tollgate_mail_outbox WHERE ${counted}
          ORDER BY created_at DESC LIMIT 1 OFFSET ${limit - 1}`
      ),
      ([row]) => row?.created_at
    )

  const room: OutboxContract["room"] = Effect.fn("Outbox.room")(function* (account, to) {
    const now = yield* Clock.currentTimeMillis
    const ofThisHour = yield* blockedBy(ofHour(account, now), limits.per_hour)
    const ofThisDay = yield* blockedBy(ofDay(account, to, now), limits.per_day_to_one_address)
    if (ofThisHour === undefined && ofThisDay === undefined) return
    const free = Math.max((ofThisHour ?? now - hour) + hour, (ofThisDay ?? now - day) + day)
    return yield* new TooManyLetters({ retry_after: Math.max(1, Math.ceil((free - now) / 1000)) })
  })

  /** Returns the SQL condition under which an email may be queued. The service's emails have no limit. */
  const allows = (letter: {
    readonly caused_by: AccountId | null
    readonly recipient: string
    readonly created_at: number
  }): Fragment => {
    const { caused_by, created_at, recipient } = letter
    return caused_by === null
      ? sql`true`
      : sql`(SELECT count(*) FROM tollgate_mail_outbox WHERE ${ofHour(caused_by, created_at)}) < ${limits.per_hour}
          AND (SELECT count(*) FROM tollgate_mail_outbox WHERE ${ofDay(caused_by, recipient, created_at)})
            < ${limits.per_day_to_one_address}`
  }

  return { room, allows }
}

export type Quota = ReturnType<typeof make>
