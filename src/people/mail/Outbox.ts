/**
 * The outbox. It stores an email in the transaction that causes it, and sends the email after the commit.
 *
 * Where the specification is silent:
 * - An email is never sent twice under one key. If the connection or the process ended during an attempt, the email may have been sent, so it is not
 *   sent again. A user can request a resend, as a separate email.
 * - An email that cannot be opened, because the secret changed or its row is damaged, is marked as failed.
 * - If the mail server is unreachable or temporarily rejects an email, the service retries for three days: after 30 seconds, and then after
 *   increasing pauses. Without a mail server, an email also fails after three days.
 * - The outbox stores emails sealed, because they contain invitation tokens, and empties them once they are sent.
 * - A row is deleted 30 days after its email was created. The row of an email to oneself is deleted once the email is sent.
 * - Up to 100 emails to oneself may be waiting for one address. A further email is rejected with 429 `too_many_letters`.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Fiber, Layer } from "effect"
import type { Scope } from "effect"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { Mail } from "../../upstream/mail/Mail.ts"
import type { MailContract } from "../../upstream/mail/Mail.ts"
import * as Delivery from "./Delivery.ts"
import type { Fate, Row } from "./Delivery.ts"
import { LetterLimits } from "./Settings.ts"
import { TooManyLetters } from "./Problems.ts"
import * as Quota from "./Quota.ts"
import * as Sweep from "./Sweep.ts"

export interface Letter {
  /** The email's purpose, unique per email: `transfer/<id>/<n>`. A second email with the same key is ignored. */
  readonly key: string
  readonly to: string
  readonly subject: string
  readonly text: string
  /** The account that causes the email. The email counts against its `LetterLimits`. Absent if the service itself causes the email. */
  readonly caused_by?: AccountId | undefined
}

export interface OutboxContract {
  /**
   * Returns the statement that queues an email, for the transaction that causes it. If the account has exceeded its limits, the statement has
   * no effect.
   */
  readonly letter: (letter: Letter) => Effect.Effect<Statement>
  /** Like `letter`, but the statement fails the transaction if the account has exceeded its limits or the key is already used. */
  readonly requiredLetter: (letter: Letter) => Effect.Effect<Statement>
  /** Fails if the account may not send an email to this address now. */
  readonly room: (account: AccountId, to: string) => Effect.Effect<void, TooManyLetters>
  /** Wakes the loop for a possible new email, without waiting. */
  readonly wake: Effect.Effect<void>
  /**
   * Queues an email and sends it at once, for a caller that needs to know whether the server rejects it. Returns `waiting` after ten seconds,
   * while the attempt continues, or after a temporary rejection, when the loop takes over.
   */
  readonly post: (port: MailContract, letter: Letter) => Effect.Effect<Fate, TooManyLetters | BooksUnavailable>
  /** The outbox's loop. Each iteration sends up to eight due emails and deletes old rows. `layerJobs` runs it. */
  readonly jobs: ReadonlyArray<Loop.Job>
}

/** The timeout of `post` for an attempt. */
const postTimeout = Duration.seconds(10)
/** The maximum number of posted emails waiting for one address. */
const postedMax = 100

export class Outbox extends Context.Tag("tollgate/mail/Outbox")<Outbox, OutboxContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Outbox, make))
  static readonly layerJobs = Loop.layer(Outbox, ({ jobs }) => jobs)
}

interface Dependencies extends Delivery.Dependencies {
  readonly quota: Quota.Quota
  readonly waker: Loop.Waker
  /** The outbox's scope. Attempts continue in it if the caller is interrupted. */
  readonly scope: Scope.Scope
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const dependencies: Dependencies = {
    sql,
    writer: yield* Writer,
    secret: yield* DeploymentSecret,
    quota: Quota.make(sql, yield* LetterLimits),
    waker: yield* Loop.waker,
    scope: yield* Effect.scope
  }
  const mail = yield* Mail
  // In a single process, every email with the status `sending` was interrupted. With several nodes, another node can still be sending it.
  if (mail !== undefined && Delivery.servesAlone(sql))
    yield* Delivery.endInterrupted(dependencies, Number.MAX_SAFE_INTEGER)
  const { quota, waker } = dependencies
  return {
    letter: makeQueueLetter(dependencies, undefined),
    requiredLetter: makeQueueLetter(dependencies, 1),
    room: quota.room,
    wake: waker.wake,
    post: makePost(dependencies),
    jobs: [{ name: loopName, turn: turn(dependencies, mail), waker }]
  } satisfies OutboxContract
})

// ---- storing emails -----------------------------------------------------------------------------------------------------

interface NewRow extends Row {
  readonly caused_by: AccountId | null
}

const newRow = Effect.fnUntraced(function* ({ secret }: Dependencies, letter: Letter): Effect.fn.Return<NewRow> {
  const { caused_by = null, key, subject, text, to } = letter
  const created_at = yield* Clock.currentTimeMillis
  const sealed = yield* secret.seal(JSON.stringify({ subject, text }))
  return { key, recipient: to, sealed, attempts: 0, created_at, caused_by }
})

const makeQueueLetter = (dependencies: Dependencies, requiredRows: number | undefined) =>
  Effect.fn("Outbox.letter")(function* (letter: Letter) {
    const { quota, sql } = dependencies
    const row = yield* newRow(dependencies, letter)
    const { caused_by, created_at, key, recipient, sealed } = row
    const inserted = sql`INSERT INTO tollgate_mail_outbox
        (key, recipient, sealed, status, attempts, due_at, created_at, caused_by)
      SELECT ${key}, ${recipient}, ${sealed}, 'waiting', 0, ${created_at}, ${created_at}, ${caused_by}
      WHERE ${quota.allows(row)} ON CONFLICT (key) DO NOTHING RETURNING key`
    return statement(inserted, requiredRows)
  })

/** Queues a posted email with the status `sending`. Returns `false` if its address has too many waiting emails or its key exists. */
const storePosted = ({ sql, writer }: Dependencies, { created_at, key, recipient, sealed }: Row) => {
  const waiting = sql`SELECT count(*) FROM tollgate_mail_outbox
    WHERE recipient = ${recipient} AND status IN ('waiting', 'sending') AND caused_by IS NULL`
  const inserted = sql`INSERT INTO tollgate_mail_outbox
      (key, recipient, sealed, status, attempts, due_at, created_at, caused_by)
    SELECT ${key}, ${recipient}, ${sealed}, 'sending', 1, ${created_at}, ${created_at}, NULL
    WHERE (${waiting}) < ${postedMax} ON CONFLICT (key) DO NOTHING RETURNING key`
  return Statements.tryWrite(writer, statement(inserted, 1))
}

// ---- sending emails -----------------------------------------------------------------------------------------------------

const makePost = (dependencies: Dependencies): OutboxContract["post"] =>
  Effect.fn("Outbox.post")(function* (port, letter) {
    const { scope, waker } = dependencies
    const row = yield* newRow(dependencies, letter)
    // Commits `sending` before the first byte is sent, because after a crash no process knows whether the email was sent.
    if (!(yield* storePosted(dependencies, row))) return yield* new TooManyLetters({ retry_after: 60 })
    // The attempt continues if the caller is interrupted. If the email is postponed, the loop takes over.
    const attempt = Effect.zipLeft(Delivery.attempt(dependencies, port, row, "deleted"), waker.wake)
    const sending = yield* Effect.forkIn(Effect.uninterruptible(attempt), scope)
    // Metered calls are uninterruptible, and an uninterruptible wait cannot time out.
    return yield* Effect.timeoutTo(Effect.interruptible(Fiber.join(sending)), {
      duration: postTimeout,
      onSuccess: (fate): Fate => fate,
      onTimeout: (): Fate => "waiting"
    })
  })

const loopName = "outbox"
/** The pause after an iteration that failed to process an email. */
const afterFailure = Duration.seconds(10)
/** The maximum duration of an attempt. A mail server that hangs times out long before. */
const attemptMax = Duration.toMillis(Duration.minutes(5))
/** The maximum pause. The loop polls, because a late-confirmed commit queues an email without waking the loop. */
const pauseMax = Duration.minutes(1)
/** The maximum number of emails per iteration. Emails are sent concurrently, because a hanging mail server delays each by a minute. */
const turnMax = 8
const concurrencyMax = 4

/** Sends due emails. Returns the pause before the next iteration. */
const turn = Effect.fnUntraced(function* (dependencies: Dependencies, port: MailContract | undefined) {
  const { sql } = dependencies
  const now = yield* Clock.currentTimeMillis
  yield* Sweep.deleteOld(dependencies, now)
  if (port === undefined) {
    yield* Sweep.failOld(dependencies, now)
    return pauseMax
  }
  yield* Delivery.endInterrupted(dependencies, now - attemptMax)
  const due = yield* sql<Row>`SELECT key, recipient, sealed, attempts, created_at FROM tollgate_mail_outbox
    WHERE status = 'waiting' AND due_at <= ${now} ORDER BY due_at LIMIT ${turnMax}`
  const failed = yield* Loop.each(
    loopName,
    due,
    ({ key }) => key,
    (row) => Delivery.deliver(dependencies, port, row),
    { concurrency: concurrencyMax }
  )
  if (failed > 0) return afterFailure
  const [next] = yield* sql<{
    due_at: number | null
  }>`SELECT min(CASE status WHEN 'waiting' THEN due_at ELSE due_at + ${attemptMax} END) AS due_at
    FROM tollgate_mail_outbox WHERE status IN ('waiting', 'sending')`
  if (next?.due_at == null) return pauseMax
  return Duration.min(pauseMax, Duration.millis(Math.max(0, next.due_at - (yield* Clock.currentTimeMillis))))
})

/** Discards unsent emails, because a new secret cannot open them. */
export const lettersEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_mail_outbox WHERE status IN ('waiting', 'sending')`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_mail_outbox SET status = 'failed', sealed = '', ended_at = ${now},
      last_error = 'the secret that sealed it was replaced' WHERE status IN ('waiting', 'sending')`)
  ],
  notice: (n) => `${n} unsent emails are discarded`
}
