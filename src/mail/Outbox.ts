/**
 * Letters on their way. A letter is written down in the transaction that is its cause, and sent after it: tried again while the
 * mail server is not to be had, and never sent twice for one key. Where it cannot be known whether a letter left (the process
 * ended, or the connection, while it was handed over), it is not sent again: who misses it can ask for another.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Fiber, Layer, Queue, Schedule } from "effect"
import { createHash } from "node:crypto"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
import type { Ending } from "../auth/DeploymentSecret.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { Mail } from "../upstream/Mail.ts"
import type { MailFailed } from "../upstream/Mail.ts"

export interface Letter {
  /** What it is about, once for each letter ever: `transfer/<id>/<n>`. A second letter of the same key is not taken. */
  readonly key: string
  readonly to: string
  readonly subject: string
  readonly text: string
}

export interface Contract {
  /** The statement that puts a letter into the outbox, for the transaction that is its cause. */
  readonly letter: (letter: Letter) => Effect.Effect<Statement>
  /** Says that there may be a new letter; it returns at once. */
  readonly wake: Effect.Effect<void>
  /**
   * Writes a letter down and sends it at once: for a cause that must know whether it is refused. One that could not leave yet waits
   * here like any other, and so does one that takes too long to be waited for.
   */
  readonly post: (port: Port, letter: Letter) => Effect.Effect<Fate>
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

export class Outbox extends Context.Tag("tollgate/mail/Outbox")<Outbox, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Outbox, make))
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

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const mail = yield* Mail
  const bell = yield* Queue.dropping<void>(1)
  const wake = Effect.asVoid(Queue.offer(bell, undefined))
  const scope = yield* Effect.scope

  const write = (text: Parameters<typeof statement>[0]) =>
    Effect.orDie(writer.submit({ postings: [], statements: [statement(text)] }))

  const insert = (row: Row, status: "waiting" | "sending", attempts: number) =>
    sql`INSERT INTO tollgate_mail_outbox ${sql.insert({ ...row, status, attempts, due_at: row.created_at })}
      ON CONFLICT (key) DO NOTHING`

  const rowOf = Effect.fnUntraced(function* ({ key, subject, text, to }: Letter): Effect.fn.Return<Row> {
    const created_at = yield* Clock.currentTimeMillis
    const sealed = yield* secret.seal(JSON.stringify({ subject, text }))
    return { key, recipient: to, sealed, attempts: 0, created_at }
  })

  const letter: Contract["letter"] = Effect.fn("Outbox.letter")(function* (letter) {
    return statement(insert(yield* rowOf(letter), "waiting", 0))
  })

  const post: Contract["post"] = Effect.fn("Outbox.post")(function* (port, letter) {
    const row = yield* rowOf(letter)
    // As in `deliver`: should the process end now, nobody can know whether it left.
    yield* write(insert(row, "sending", 1))
    // It goes on when nobody waits any more; woken, the outbox takes over what could not leave yet.
    const attempt = yield* Effect.forkIn(Effect.uninterruptible(Effect.zipLeft(attemptBy(port)(row), wake)), scope)
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
      yield* write(
        sql`UPDATE tollgate_mail_outbox SET status = 'sending', attempts = attempts + 1 WHERE key = ${row.key}`
      )
      yield* attemptBy(port)(row)
    }, Effect.uninterruptible)

  const attemptBy = (port: Port) =>
    Effect.fnUntraced(function* (row: Row): Effect.fn.Return<Fate> {
      const { subject, text } = JSON.parse(yield* secret.unseal(row.sealed)) as { subject: string; text: string }
      const id = messageId(row.key, port.domain)
      return yield* Effect.matchEffect(port.send({ to: row.recipient, subject, text, id }), {
        onSuccess: () => end(row, "sent", null),
        onFailure: (failure) => again(row, failure)
      })
    })

  const again = Effect.fnUntraced(function* (row: Row, { how, reason }: MailFailed): Effect.fn.Return<Fate> {
    if (how !== "later") return yield* end(row, how === "refused" ? "failed" : "unknown", reason)
    const now = yield* Clock.currentTimeMillis
    const due = now + pauses[Math.min(row.attempts, pauses.length - 1)]!
    yield* write(
      sql`UPDATE tollgate_mail_outbox SET status = 'waiting', due_at = ${due}, last_error = ${reason} WHERE key = ${row.key}`
    )
    return "waiting"
  })

  const end = Effect.fnUntraced(function* (row: Row, status: "sent" | "failed" | "unknown", reason: string | null) {
    const now = yield* Clock.currentTimeMillis
    yield* write(sql`UPDATE tollgate_mail_outbox SET status = ${status}, sealed = '', ended_at = ${now}, last_error = ${reason}
      WHERE key = ${row.key}`)
    if (reason !== null) {
      yield* Effect.logWarning("a letter did not leave").pipe(Effect.annotateLogs({ letter: row.key, status, reason }))
    }
    return status
  })

  const deliverDue = (port: Port) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const due = yield* sql<Row>`SELECT key, recipient, sealed, attempts, created_at FROM tollgate_mail_outbox
        WHERE status = 'waiting' AND due_at <= ${now} ORDER BY due_at LIMIT 100`
      yield* Effect.forEach(due, deliver(port), { concurrency: 4, discard: true })
      const [next] = yield* sql<{
        due_at: number | null
      }>`SELECT min(due_at) AS due_at FROM tollgate_mail_outbox WHERE status = 'waiting'`
      return next?.due_at ?? undefined
    }).pipe(Effect.orDie)

  const serve = (port: Port) =>
    Effect.gen(function* () {
      const due = yield* deliverDue(port)
      const rung = Queue.take(bell)
      if (due === undefined) return yield* rung
      const wait = due - (yield* Clock.currentTimeMillis)
      if (wait > 0) yield* Effect.race(rung, Effect.sleep(wait))
    }).pipe(
      Effect.forever,
      Effect.tapErrorCause((cause) => Effect.logError("the outbox stumbled", cause)),
      Effect.retry(Schedule.spaced("10 seconds")),
      Effect.withTracerEnabled(false)
    )

  if (mail !== undefined) {
    yield* write(sql`UPDATE tollgate_mail_outbox SET status = 'unknown', sealed = '', last_error = 'the process ended while it was sent'
      WHERE status = 'sending'`)
    yield* Effect.forkScoped(serve(mail))
  }

  return { letter, wake, post } satisfies Contract
})

/** Under another secret a letter that waits cannot be opened. */
export const lettersEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_mail_outbox WHERE status IN ('waiting', 'sending')`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_mail_outbox SET status = 'failed', sealed = '', ended_at = ${now},
      last_error = 'the secret that sealed it was replaced' WHERE status IN ('waiting', 'sending')`)
  ],
  told: (n) => `${n} letters that had not left yet are given up`
}
