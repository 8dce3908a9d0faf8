/**
 * Letters on their way. A letter is written down in the transaction that is its cause, and sent after it: tried again while the
 * mail server is not to be had, and never sent twice for one key. Where it cannot be known whether a letter left (the process
 * ended, or the connection, while it was handed over), it is not sent again: who misses it can ask for another.
 *
 * Where the specification is silent:
 * - A letter is never sent twice for one key. Where it cannot be known whether it left (the connection or the process ended after the
 *   letter was handed over and before the answer), it is not sent again; who misses it asks for a resend, which is another letter.
 * - A letter that cannot be opened, because the secret has changed or its row is damaged, ends as failed.
 * - A server that is not reached, or says not now, is asked again after 30 seconds, then at growing distances, for three days.
 * - Letters are sealed in the outbox, since an invitation's token stands in them, and emptied once they have left.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Cause, Clock, Context, Duration, Effect, Fiber, Layer } from "effect"
import { createHash } from "node:crypto"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
import type { Ending } from "../auth/DeploymentSecret.ts"
import type { AccountId } from "../kernel/Ids.ts"
import * as Loop from "../kernel/Loop.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import * as Statements from "../ledger/Statements.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { statement } from "../ledger/Transaction.ts"
import { untilWritten, Writer } from "../ledger/Writer.ts"
import { Mail } from "../upstream/Mail.ts"
import type { MailFailed } from "../upstream/Mail.ts"
import { LetterLimits } from "./Settings.ts"
import { TooManyLetters } from "./Problems.ts"

export interface Letter {
  /** What it is about, once for each letter ever: `transfer/<id>/<n>`. A second letter of the same key is not taken. */
  readonly key: string
  readonly to: string
  readonly subject: string
  readonly text: string
  /** The account that causes it, which may cause only so many (`LetterLimits`); none: the service itself. */
  readonly caused_by?: AccountId | undefined
}

export interface OutboxContract {
  /**
   * The statement that puts a letter into the outbox, for the transaction that is its cause. One that its account may not cause any
   * more is left out.
   */
  readonly letter: (letter: Letter) => Effect.Effect<Statement>
  /** The same, but one that its account may not cause any more refuses the transaction. */
  readonly requiredLetter: (letter: Letter) => Effect.Effect<Statement>
  /** Whether the account may cause a letter to this address now. */
  readonly room: (account: AccountId, to: string) => Effect.Effect<void, TooManyLetters>
  /** Says that there may be a new letter; it returns at once. */
  readonly wake: Effect.Effect<void>
  /**
   * Writes a letter down and sends it at once: for a cause that must know whether it is refused. One that could not leave yet waits
   * here like any other, and so does one that takes too long to be waited for.
   */
  readonly post: (port: Port, letter: Letter) => Effect.Effect<Fate, BooksUnavailable>
  /** Sends the letters that are due, eight at most in a turn; none where there is no mail server. `layerJobs` runs it. */
  readonly jobs: ReadonlyArray<Loop.Job>
}

type Port = NonNullable<Context.Tag.Service<typeof Mail>>

/** What became of an attempt. `failed`: refused for good; `unknown`: it may have left, and is not sent again. */
export type Fate = "sent" | "failed" | "unknown" | "waiting"

/** How long somebody who waits for an attempt waits. */
const patience = Duration.seconds(10)

/** How long after an attempt the next one comes: the n-th pause, in milliseconds. The last one repeats. */
const pauses = [30_000, 120_000, 600_000, 1_800_000, 7_200_000, 21_600_000]
/** A letter that could not leave for so long is of no use any more. */
export const lifetime = Duration.days(3)

export class Outbox extends Context.Tag("tollgate/mail/Outbox")<Outbox, OutboxContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Outbox, make))
  static readonly layerJobs = Loop.layer(Outbox, ({ jobs }) => jobs)
}

/** The Message-ID of the letter with this key. */
export const messageId = (key: string, domain: string): string =>
  `${createHash("sha256").update(key).digest("hex").slice(0, 32)}@${domain}`

interface Row {
  readonly key: string
  readonly recipient: string
  readonly sealed: string
  readonly attempts: number
  readonly created_at: number
}

interface NewRow extends Row {
  readonly caused_by: AccountId | null
}

const loopName = "outbox"
/** How long the loop waits when a letter could not be handled at all. */
const afterFailure = Duration.seconds(10)
/** How many letters a turn takes, and how many of them are on their way at once. A mail server that hangs holds each for a minute. */
const turnMax = 8
const atOnce = 4

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const mail = yield* Mail
  const limits = yield* LetterLimits
  const scope = yield* Effect.scope
  const waker = yield* Loop.waker

  /** What must be written in the end: it says the same however often it is written. */
  const record = (text: Parameters<typeof statement>[0]) =>
    untilWritten<void, never, never>(Statements.write(writer, statement(text)))

  // ---- writing letters down -----------------------------------------------------------------------------------------------

  const hour = Duration.toMillis(Duration.hours(1))
  const day = Duration.toMillis(Duration.days(1))

  /** The letters of an account that count for each limit at the time. */
  const ofHour = (account: AccountId, now: number) => sql`caused_by = ${account} AND created_at > ${now - hour}`
  const ofDay = (account: AccountId, to: string, now: number) =>
    sql`caused_by = ${account} AND created_at > ${now - day} AND recipient = ${to}`

  /** Of the counted letters the one that has to grow old first. */
  const inTheWay = (counted: Fragment, limit: number) =>
    Effect.map(
      Effect.orDie(
        sql<{ created_at: number }>`SELECT created_at FROM tollgate_mail_outbox WHERE ${counted}
          ORDER BY created_at DESC LIMIT 1 OFFSET ${limit - 1}`
      ),
      ([row]) => row?.created_at
    )

  const room: OutboxContract["room"] = Effect.fn("Outbox.room")(function* (account, to) {
    const now = yield* Clock.currentTimeMillis
    const ofThisHour = yield* inTheWay(ofHour(account, now), limits.per_hour)
    const ofThisDay = yield* inTheWay(ofDay(account, to, now), limits.per_day_to_one_address)
    if (ofThisHour === undefined && ofThisDay === undefined) return
    const free = Math.max((ofThisHour ?? now - hour) + hour, (ofThisDay ?? now - day) + day)
    return yield* new TooManyLetters({ retry_after: Math.max(1, Math.ceil((free - now) / 1000)) })
  })

  const insert = (row: NewRow, status: "waiting" | "sending", attempts: number) => {
    const { caused_by, created_at, key, recipient, sealed } = row
    const allowed =
      caused_by === null
        ? sql`1`
        : sql`(SELECT count(*) FROM tollgate_mail_outbox WHERE ${ofHour(caused_by, created_at)}) < ${limits.per_hour}
            AND (SELECT count(*) FROM tollgate_mail_outbox WHERE ${ofDay(caused_by, recipient, created_at)})
              < ${limits.per_day_to_one_address}`
    return sql`INSERT INTO tollgate_mail_outbox
        (key, recipient, sealed, status, attempts, due_at, created_at, caused_by)
      SELECT ${key}, ${recipient}, ${sealed}, ${status}, ${attempts}, ${created_at}, ${created_at}, ${caused_by}
      WHERE ${allowed} ON CONFLICT (key) DO NOTHING RETURNING key`
  }

  const rowOf = Effect.fnUntraced(function* (letter: Letter): Effect.fn.Return<NewRow> {
    const { caused_by = null, key, subject, text, to } = letter
    const created_at = yield* Clock.currentTimeMillis
    const sealed = yield* secret.seal(JSON.stringify({ subject, text }))
    return { key, recipient: to, sealed, attempts: 0, created_at, caused_by }
  })

  const letter: OutboxContract["letter"] = Effect.fn("Outbox.letter")(function* (letter) {
    return statement(insert(yield* rowOf(letter), "waiting", 0))
  })

  const requiredLetter: OutboxContract["requiredLetter"] = Effect.fn("Outbox.requiredLetter")(function* (letter) {
    return statement(insert(yield* rowOf(letter), "waiting", 0), 1)
  })

  // ---- sending them -------------------------------------------------------------------------------------------------------

  const post: OutboxContract["post"] = Effect.fn("Outbox.post")(function* (port, letter) {
    const row = yield* rowOf(letter)
    // As in `deliver`: should the process end now, nobody can know whether it left.
    yield* Statements.write(writer, statement(insert(row, "sending", 1)))
    // It goes on when nobody waits any more; woken, the outbox takes over what could not leave yet.
    const attempt = yield* Effect.forkIn(
      Effect.uninterruptible(Effect.zipLeft(attemptBy(port)(row), waker.wake)),
      scope
    )
    // Metered calls are uninterruptible, and a wait that cannot be interrupted has no bound.
    return yield* Effect.timeoutTo(Effect.interruptible(Fiber.join(attempt)), {
      duration: patience,
      onSuccess: (fate): Fate => fate,
      onTimeout: (): Fate => "waiting"
    })
  })

  const deliver = (port: Port) =>
    Effect.fn("Outbox.deliver")(function* (row: Row) {
      const begun = yield* Clock.currentTimeMillis
      if (begun - row.created_at > Duration.toMillis(lifetime))
        return yield* end(row, "failed", "it could not leave for days")
      // Before a byte of it leaves: should the process end now, nobody can know whether it did.
      yield* record(
        sql`UPDATE tollgate_mail_outbox SET status = 'sending', attempts = ${row.attempts + 1} WHERE key = ${row.key}`
      )
      return yield* attemptBy(port)(row)
    }, Effect.uninterruptible)

  const attemptBy = (port: Port) =>
    Effect.fnUntraced(function* (row: Row): Effect.fn.Return<Fate> {
      const opened = yield* Effect.exit(unsealed(row))
      if (opened._tag === "Failure") return yield* end(row, "failed", `it cannot be read: ${wordsOf(opened.cause)}`)
      const { subject, text } = opened.value
      const id = messageId(row.key, port.domain)
      return yield* Effect.matchCauseEffect(port.send({ to: row.recipient, subject, text, id }), {
        onSuccess: () => end(row, "sent", null),
        onFailure: (cause) => (Cause.isFailType(cause) ? again(row, cause.error) : end(row, "unknown", wordsOf(cause)))
      })
    })

  const unsealed = ({ sealed }: Row) =>
    Effect.map(secret.unseal(sealed), (text) => JSON.parse(text) as { readonly subject: string; readonly text: string })

  const again = Effect.fnUntraced(function* (row: Row, { how, reason }: MailFailed): Effect.fn.Return<Fate> {
    if (how !== "later") return yield* end(row, how === "refused" ? "failed" : "unknown", reason)
    const now = yield* Clock.currentTimeMillis
    const due = now + pauses[Math.min(row.attempts, pauses.length - 1)]!
    yield* record(
      sql`UPDATE tollgate_mail_outbox SET status = 'waiting', due_at = ${due}, last_error = ${reason} WHERE key = ${row.key}`
    )
    return "waiting"
  })

  const end = Effect.fnUntraced(function* (row: Row, status: "sent" | "failed" | "unknown", reason: string | null) {
    const now = yield* Clock.currentTimeMillis
    yield* record(sql`UPDATE tollgate_mail_outbox SET status = ${status}, sealed = '', ended_at = ${now}, last_error = ${reason}
      WHERE key = ${row.key}`)
    if (reason !== null) {
      yield* Effect.logWarning("a letter did not leave").pipe(Effect.annotateLogs({ letter: row.key, status, reason }))
    }
    return status
  })

  /** Sends what is due. Answers how long it is to the next. */
  const turn = (port: Port) =>
    Effect.gen(function* () {
      const due = yield* sql<Row>`SELECT key, recipient, sealed, attempts, created_at FROM tollgate_mail_outbox
        WHERE status = 'waiting' AND due_at <= ${yield* Clock.currentTimeMillis} ORDER BY due_at LIMIT ${turnMax}`
      const failed = yield* Loop.each(loopName, due, ({ key }) => key, deliver(port), { concurrency: atOnce })
      if (failed > 0) return afterFailure
      const [next] = yield* sql<{
        due_at: number | null
      }>`SELECT min(due_at) AS due_at FROM tollgate_mail_outbox WHERE status = 'waiting'`
      return next?.due_at == null ? undefined : Duration.millis(next.due_at - (yield* Clock.currentTimeMillis))
    })

  if (mail !== undefined) {
    yield* record(sql`UPDATE tollgate_mail_outbox SET status = 'unknown', sealed = '', last_error = 'the process ended while it was sent'
      WHERE status = 'sending'`)
  }

  const jobs = mail === undefined ? [] : [{ name: loopName, turn: turn(mail), waker }]

  return { letter, requiredLetter, room, wake: waker.wake, post, jobs } satisfies OutboxContract
})

/** Under another secret a letter that waits cannot be opened. */
export const lettersEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_mail_outbox WHERE status IN ('waiting', 'sending')`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_mail_outbox SET status = 'failed', sealed = '', ended_at = ${now},
      last_error = 'the secret that sealed it was replaced' WHERE status IN ('waiting', 'sending')`)
  ],
  notice: (n) => `${n} letters that had not left yet are given up`
}

/** The innermost words of what went wrong. */
const wordsOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}
