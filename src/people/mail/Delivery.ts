/** Hands letters of the outbox to the mail server, and stores what became of them. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Clock, Duration, Effect } from "effect"
import { createHash } from "node:crypto"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import { untilWritten } from "../../books/ledger/Writer.ts"
import type { WriterContract } from "../../books/ledger/Writer.ts"
import type { MailContract, MailFailed } from "../../upstream/mail/Mail.ts"

export interface Row {
  readonly key: string
  readonly recipient: string
  readonly sealed: string
  readonly attempts: number
  readonly created_at: number
}

/** What became of an attempt. `failed`: refused for good; `unknown`: it may have left, and is not sent again. */
export type Fate = "sent" | "failed" | "unknown" | "waiting"

/** How long after an attempt the next one comes: the n-th pause, in milliseconds. The last one repeats. */
const pauses = [30_000, 120_000, 600_000, 1_800_000, 7_200_000, 21_600_000]
/** A letter that could not leave for so long is of no use any more. */
const lifetime = Duration.toMillis(Duration.days(3))

/** The Message-ID of the letter with this key. */
export const messageId = (key: string, domain: string): string =>
  `${createHash("sha256").update(key).digest("hex").slice(0, 32)}@${domain}`

export const make = (sql: SqlClient, writer: WriterContract, secret: DeploymentSecretContract) => {
  /** One process serves the database, and hands over a letter once at a time. */
  const isAlone = sql.onDialectOrElse({ pg: () => false, orElse: () => true })

  /** What must be written in the end: it says the same however often it is written. */
  const record = (text: Parameters<typeof statement>[0]) =>
    untilWritten<void, never, never>(Statements.write(writer, statement(text)))

  const end = Effect.fnUntraced(function* (row: Row, status: "sent" | "failed" | "unknown", reason: string | null) {
    const now = yield* Clock.currentTimeMillis
    yield* record(sql`UPDATE tollgate_mail_outbox SET status = ${status}, sealed = '', ended_at = ${now}, last_error = ${reason}
      WHERE key = ${row.key}`)
    if (reason !== null) {
      yield* Effect.logWarning("a letter did not leave").pipe(Effect.annotateLogs({ letter: row.key, status, reason }))
    }
    return status
  })

  const postpone = Effect.fnUntraced(function* (row: Row, { how, reason }: MailFailed): Effect.fn.Return<Fate> {
    if (how !== "later") return yield* end(row, how === "refused" ? "failed" : "unknown", reason)
    const now = yield* Clock.currentTimeMillis
    const due = now + pauses[Math.min(row.attempts, pauses.length - 1)]!
    yield* record(sql`UPDATE tollgate_mail_outbox SET status = 'waiting', due_at = ${due}, last_error = ${reason}
      WHERE key = ${row.key} AND status = 'sending'`)
    return "waiting"
  })

  const contentOf = ({ sealed }: Row) =>
    Effect.map(secret.unseal(sealed), (text) => JSON.parse(text) as { readonly subject: string; readonly text: string })

  /** Hands a letter to the server, once. Its row says `sending`. */
  const attempt = Effect.fnUntraced(function* (port: MailContract, row: Row): Effect.fn.Return<Fate> {
    const content = yield* Effect.exit(contentOf(row))
    if (content._tag === "Failure") return yield* end(row, "failed", `it cannot be read: ${wordsOf(content.cause)}`)
    const { subject, text } = content.value
    const id = messageId(row.key, port.domain)
    return yield* Effect.matchCauseEffect(port.send({ to: row.recipient, subject, text, id }), {
      onSuccess: () => end(row, "sent", null),
      onFailure: (cause) => (Cause.isFailType(cause) ? postpone(row, cause.error) : end(row, "unknown", wordsOf(cause)))
    })
  })

  /** Says that it is handed over now; `false`: another node does that, or did. */
  const take = ({ attempts, key }: Row, now: number) => {
    const waiting = sql`status = 'waiting' AND attempts = ${attempts}`
    // Once a try may have been written, what it would have left is this one's too; where there are other nodes it may be one of theirs.
    const taken = sql`(${waiting} OR status = 'sending' AND attempts = ${attempts + 1} AND due_at = ${now})`
    let state = waiting
    const taking = Effect.suspend(() =>
      Statements.tryWrite(
        writer,
        statement(
          sql`UPDATE tollgate_mail_outbox SET status = 'sending', attempts = ${attempts + 1}, due_at = ${now}
            WHERE key = ${key} AND ${state} RETURNING key`,
          1
        )
      )
    )
    return untilWritten<boolean, never, never>(
      Effect.tapError(taking, ({ maybe_written }) =>
        Effect.sync(() => {
          if (maybe_written && isAlone) state = taken
        })
      )
    )
  }

  /** Sends a letter that is due; `undefined`: another node does. */
  const deliver = Effect.fn("Outbox.deliver")(function* (
    port: MailContract,
    row: Row
  ): Effect.fn.Return<Fate | undefined> {
    const now = yield* Clock.currentTimeMillis
    if (now - row.created_at > lifetime) return yield* end(row, "failed", "it could not leave for days")
    // Before a byte of it leaves: should the process end now, nobody can know whether it did.
    return (yield* take(row, now)) ? yield* attempt(port, row) : undefined
  }, Effect.uninterruptible)

  /** Gives up the letters whose process ended while they were handed over: those of which that began before. */
  const endInterrupted = Effect.fnUntraced(function* (before: number) {
    const interrupted = sql`status = 'sending' AND due_at <= ${before}`
    const found = yield* Effect.orDie(sql`SELECT 1 FROM tollgate_mail_outbox WHERE ${interrupted} LIMIT 1`)
    if (found.length === 0) return
    yield* record(sql`UPDATE tollgate_mail_outbox SET status = 'unknown', sealed = '',
      last_error = 'the process ended while it was sent' WHERE ${interrupted}`)
  })

  return { attempt, deliver, endInterrupted }
}

/** The innermost words of what went wrong. */
const wordsOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}
