/**
 * Letters that wait to be sent. A letter is stored in the transaction that is its cause, and sent after it: tried again while the
 * mail server cannot be reached, and never sent twice for one key. Where it cannot be known whether a letter left (the process
 * ended, or the connection, while it was handed over), it is not sent again: who misses it can ask for another. Of two nodes that find a
 * letter due at once, the one whose transaction says that it is handed over sends it.
 *
 * Where the specification is silent:
 * - A letter is never sent twice for one key. Where it cannot be known whether it left (the connection or the process ended after the
 *   letter was handed over and before the answer), it is not sent again; who misses it asks for a resend, which is another letter.
 * - A letter that cannot be opened, because the secret has changed or its row is damaged, ends as failed.
 * - A server that is not reached, or says not now, is asked again after 30 seconds, then at growing distances, for three days.
 * - Letters are sealed in the outbox, since an invitation's token stands in them, and emptied once they have left.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Fiber, Layer } from "effect"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/Ending.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import { Writer } from "../../books/ledger/Writer.ts"
import { Mail } from "../../upstream/mail/Mail.ts"
import type { MailContract } from "../../upstream/mail/Mail.ts"
import * as Delivery from "./Delivery.ts"
import type { Fate, Row } from "./Delivery.ts"
import { LetterLimits } from "./Settings.ts"
import type { TooManyLetters } from "./Problems.ts"
import * as Quota from "./Quota.ts"

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
   * Stores a letter and sends it at once: for a cause that must know whether it is refused. One that could not leave yet waits
   * here like any other, and so does one that takes too long to be waited for.
   */
  readonly post: (port: MailContract, letter: Letter) => Effect.Effect<Fate, BooksUnavailable>
  /** Sends the letters that are due, eight at most in a turn; none where there is no mail server. `layerJobs` runs it. */
  readonly jobs: ReadonlyArray<Loop.Job>
}

/** How long somebody who waits for an attempt waits. */
const patience = Duration.seconds(10)

export class Outbox extends Context.Tag("tollgate/mail/Outbox")<Outbox, OutboxContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Outbox, make))
  static readonly layerJobs = Loop.layer(Outbox, ({ jobs }) => jobs)
}

interface NewRow extends Row {
  readonly caused_by: AccountId | null
}

const loopName = "outbox"
/** How long the loop waits when a letter could not be handled at all. */
const afterFailure = Duration.seconds(10)
/** From when on nobody can be handing a letter over any more: a mail server that hangs is given up long before. */
const handOverMax = Duration.toMillis(Duration.minutes(5))
/**
 * How long the loop waits at most. A commit that is answered too late is done all the same, but whoever asked for it was told otherwise and
 * woke nobody: what it wrote is found by looking.
 */
const pauseMax = Duration.minutes(1)
/** How many letters a turn takes, and how many of them are on their way at once. A mail server that hangs holds each for a minute. */
const turnMax = 8
const atOnce = 4

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const mail = yield* Mail
  const quota = Quota.make(sql, yield* LetterLimits)
  const delivery = Delivery.make(sql, writer, secret)
  const scope = yield* Effect.scope
  const waker = yield* Loop.waker

  // ---- storing letters ----------------------------------------------------------------------------------------------------

  const insert = (row: NewRow, status: "waiting" | "sending", attempts: number) => {
    const { caused_by, created_at, key, recipient, sealed } = row
    return sql`INSERT INTO tollgate_mail_outbox
        (key, recipient, sealed, status, attempts, due_at, created_at, caused_by)
      SELECT ${key}, ${recipient}, ${sealed}, ${status}, ${attempts}, ${created_at}, ${created_at}, ${caused_by}
      WHERE ${quota.allows(row)} ON CONFLICT (key) DO NOTHING RETURNING key`
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
    // As in `Delivery.deliver`: should the process end now, nobody can know whether it left.
    yield* Statements.write(writer, statement(insert(row, "sending", 1)))
    // It goes on when nobody waits any more; woken, the outbox takes over what could not leave yet.
    const attempt = yield* Effect.forkIn(
      Effect.uninterruptible(Effect.zipLeft(delivery.attempt(port, row), waker.wake)),
      scope
    )
    // Metered calls are uninterruptible, and a wait that cannot be interrupted has no bound.
    return yield* Effect.timeoutTo(Effect.interruptible(Fiber.join(attempt)), {
      duration: patience,
      onSuccess: (fate): Fate => fate,
      onTimeout: (): Fate => "waiting"
    })
  })

  /** Sends what is due. Answers how long it is to the next. */
  const turn = (port: MailContract) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* delivery.endInterrupted(now - handOverMax)
      const due = yield* sql<Row>`SELECT key, recipient, sealed, attempts, created_at FROM tollgate_mail_outbox
        WHERE status = 'waiting' AND due_at <= ${now} ORDER BY due_at LIMIT ${turnMax}`
      const failed = yield* Loop.each(
        loopName,
        due,
        ({ key }) => key,
        (row) => delivery.deliver(port, row),
        { concurrency: atOnce }
      )
      if (failed > 0) return afterFailure
      const [next] = yield* sql<{
        due_at: number | null
      }>`SELECT min(CASE status WHEN 'waiting' THEN due_at ELSE due_at + ${handOverMax} END) AS due_at
        FROM tollgate_mail_outbox WHERE status IN ('waiting', 'sending')`
      if (next?.due_at == null) return pauseMax
      return Duration.min(pauseMax, Duration.millis(Math.max(0, next.due_at - (yield* Clock.currentTimeMillis))))
    })

  // Where one process serves the database, what was being handed over is nobody's now. Other nodes may be at it.
  if (mail !== undefined && sql.onDialectOrElse({ pg: () => false, orElse: () => true }))
    yield* delivery.endInterrupted(Number.MAX_SAFE_INTEGER)

  const jobs = mail === undefined ? [] : [{ name: loopName, turn: turn(mail), waker }]

  return { letter, requiredLetter, room: quota.room, wake: waker.wake, post, jobs } satisfies OutboxContract
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
