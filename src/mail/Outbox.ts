/**
 * Letters on their way. A letter is written down in the transaction that is its cause, and sent after it: tried again while the
 * mail server is not to be had, and never sent twice for one key. Where it cannot be known whether a letter left (the process
 * ended, or the connection, while it was handed over), it is not sent again: who misses it can ask for another.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer, Queue, Schedule } from "effect"
import { createHash } from "node:crypto"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
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

interface Contract {
  /** The statement that puts a letter into the outbox, for the transaction that is its cause. */
  readonly letter: (letter: Letter) => Effect.Effect<Statement>
  /** Says that there may be a new letter; it returns at once. */
  readonly wake: Effect.Effect<void>
}

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

  const write = (text: Parameters<typeof statement>[0]) =>
    Effect.orDie(writer.submit({ postings: [], statements: [statement(text)] }))

  const letter = Effect.fn("Outbox.letter")(function* ({ key, subject, text, to }: Letter) {
    const now = yield* Clock.currentTimeMillis
    const sealed = yield* secret.seal(JSON.stringify({ subject, text }))
    return statement(
      sql`INSERT INTO tollgate_mail_outbox ${sql.insert({
        key,
        recipient: to,
        sealed,
        status: "waiting",
        attempts: 0,
        due_at: now,
        created_at: now
      })} ON CONFLICT (key) DO NOTHING`
    )
  })

  const deliver = (port: NonNullable<Context.Tag.Service<typeof Mail>>) =>
    Effect.fn("Outbox.deliver")(function* (row: Row) {
      const begun = yield* Clock.currentTimeMillis
      if (begun - row.created_at > Duration.toMillis(lifetime))
        return yield* end(row, "failed", "it could not leave for days")
      // Before a byte of it leaves: should the process end now, nobody can know whether it did.
      yield* write(
        sql`UPDATE tollgate_mail_outbox SET status = 'sending', attempts = attempts + 1 WHERE key = ${row.key}`
      )
      const { subject, text } = JSON.parse(yield* secret.unseal(row.sealed)) as { subject: string; text: string }
      const id = messageId(row.key, port.domain)
      yield* port.send({ to: row.recipient, subject, text, id }).pipe(
        Effect.andThen(end(row, "sent", null)),
        Effect.catchAll((failure) => again(row, failure))
      )
    }, Effect.uninterruptible)

  const again = Effect.fnUntraced(function* (row: Row, { how, reason }: MailFailed) {
    if (how !== "later") return yield* end(row, how === "refused" ? "failed" : "unknown", reason)
    const now = yield* Clock.currentTimeMillis
    const due = now + pauses[Math.min(row.attempts, pauses.length - 1)]!
    yield* write(
      sql`UPDATE tollgate_mail_outbox SET status = 'waiting', due_at = ${due}, last_error = ${reason} WHERE key = ${row.key}`
    )
  })

  const end = Effect.fnUntraced(function* (row: Row, status: "sent" | "failed" | "unknown", reason: string | null) {
    const now = yield* Clock.currentTimeMillis
    yield* write(sql`UPDATE tollgate_mail_outbox SET status = ${status}, sealed = '', ended_at = ${now}, last_error = ${reason}
      WHERE key = ${row.key}`)
    if (reason !== null) {
      yield* Effect.logWarning("a letter did not leave").pipe(Effect.annotateLogs({ letter: row.key, status, reason }))
    }
  })

  const deliverDue = (port: NonNullable<Context.Tag.Service<typeof Mail>>) =>
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

  const serve = (port: NonNullable<Context.Tag.Service<typeof Mail>>) =>
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

  return { letter, wake: Effect.asVoid(Queue.offer(bell, undefined)) } satisfies Contract
})
