/** Sends emails from the outbox to the mail server and records the outcomes. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Clock, Duration, Effect } from "effect"
import { createHash } from "node:crypto"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { untilWritten } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { MailContract, MailFailed } from "../../upstream/mail/Mail.ts"

export interface Row {
  readonly key: string
  readonly recipient: string
  readonly sealed: string
  readonly attempts: number
  readonly created_at: number
}

/**
 * The outcome of an attempt. `failed`: the email is unreadable, too old or permanently rejected. `unknown`: the email may have been sent, so it is
 * not resent.
 */
export type Fate = "sent" | "failed" | "unknown" | "waiting"

/** The pause after each attempt, in milliseconds. The last one repeats. */
const pauses = [30_000, 120_000, 600_000, 1_800_000, 7_200_000, 21_600_000]
/** The age at which an unsent email fails. */
export const lifetime = Duration.toMillis(Duration.days(3))

export const messageId = (key: string, domain: string): string =>
  `${createHash("sha256").update(key).digest("hex").slice(0, 32)}@${domain}`

export interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
}

/** Returns whether a single process serves the database. */
export const servesAlone = (sql: SqlClient): boolean => sql.onDialectOrElse({ pg: () => false, orElse: () => true })

/** Retries an idempotent statement until it is written. */
const record = (writer: WriterContract, text: Parameters<typeof statement>[0]) =>
  untilWritten<void, never, never>(Statements.write(writer, statement(text)))

// ---- ending an email ----------------------------------------------------------------------------------------------------

/** Whether a finished email's row is retained, so that its key cannot be reused. */
type Retention = "kept" | "deleted"

const end = Effect.fnUntraced(function* (
  { sql, writer }: Dependencies,
  { key }: Row,
  status: "sent" | "failed" | "unknown",
  reason: string | null,
  retention: Retention
) {
  const now = yield* Clock.currentTimeMillis
  yield* record(
    writer,
    retention === "deleted"
      ? sql`DELETE FROM tollgate_mail_outbox WHERE key = ${key}`
      : sql`UPDATE tollgate_mail_outbox SET status = ${status}, sealed = '', ended_at = ${now}, last_error = ${reason}
          WHERE key = ${key}`
  )
  if (reason !== null) {
    yield* Effect.logWarning("an email was not sent").pipe(Effect.annotateLogs({ letter: key, status, reason }))
  }
  return status
})

const postpone = Effect.fnUntraced(function* ({ sql, writer }: Dependencies, row: Row, reason: string) {
  const now = yield* Clock.currentTimeMillis
  const due = now + pauses[Math.min(row.attempts, pauses.length - 1)]!
  yield* record(
    writer,
    sql`UPDATE tollgate_mail_outbox SET status = 'waiting', due_at = ${due}, last_error = ${reason}
      WHERE key = ${row.key} AND status = 'sending'`
  )
  return "waiting" as const
})

const wordsOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}

// ---- sending an email ---------------------------------------------------------------------------------------------------

const contentOf = (secret: DeploymentSecretContract, { sealed }: Row) =>
  Effect.map(secret.unseal(sealed), (text) => JSON.parse(text) as { readonly subject: string; readonly text: string })

/** Sends an email to the server once. Its row must have the status `sending`. */
export const attempt = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  port: MailContract,
  row: Row,
  retention: Retention
): Effect.fn.Return<Fate> {
  const content = yield* Effect.exit(contentOf(dependencies.secret, row))
  if (content._tag === "Failure") {
    return yield* end(dependencies, row, "failed", `the email cannot be read: ${wordsOf(content.cause)}`, retention)
  }
  const failed = ({ how, reason }: MailFailed) =>
    how === "later"
      ? postpone(dependencies, row, reason)
      : end(dependencies, row, how === "refused" ? "failed" : "unknown", reason, retention)
  const { subject, text } = content.value
  const id = messageId(row.key, port.domain)
  return yield* Effect.matchCauseEffect(port.send({ to: row.recipient, subject, text, id }), {
    onSuccess: (): Effect.Effect<Fate> => end(dependencies, row, "sent", null, retention),
    onFailure: (cause): Effect.Effect<Fate> =>
      Cause.isFailType(cause) ? failed(cause.error) : end(dependencies, row, "unknown", wordsOf(cause), retention)
  })
})

/** Claims an email for an attempt. Returns `false` if another node has claimed it. */
const tryClaim = ({ sql, writer }: Dependencies, { attempts, key }: Row, now: number) => {
  const waiting = sql`status = 'waiting' AND attempts = ${attempts}`
  // If an earlier claim has an unknown outcome, a row with these values is this process's own. With several nodes, the row can belong to another
  // node.
  const isClaimedHere = sql`(${waiting} OR status = 'sending' AND attempts = ${attempts + 1} AND due_at = ${now})`
  const isAlone = servesAlone(sql)
  let state = waiting
  const claimOnce = Effect.suspend(() =>
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
    Effect.tapError(claimOnce, ({ maybe_written }) =>
      Effect.sync(() => {
        if (maybe_written && isAlone) state = isClaimedHere
      })
    )
  )
}

/** Sends a due email, or fails it once it is older than `lifetime`. Returns `undefined` if another node is sending it. */
export const deliver = Effect.fn("Outbox.deliver")(function* (
  dependencies: Dependencies,
  port: MailContract,
  row: Row
): Effect.fn.Return<Fate | undefined> {
  const now = yield* Clock.currentTimeMillis
  if (now - row.created_at > lifetime)
    return yield* end(dependencies, row, "failed", "the email could not be sent within three days", "kept")
  // Claims the email before the first byte is sent, because after a crash no process knows whether the email was sent.
  return (yield* tryClaim(dependencies, row, now)) ? yield* attempt(dependencies, port, row, "kept") : undefined
}, Effect.uninterruptible)

/** Marks emails as `unknown` if their process died during an attempt that began by `before`. */
export const endInterrupted = Effect.fnUntraced(function* ({ sql, writer }: Dependencies, before: number) {
  const interrupted = sql`status = 'sending' AND due_at <= ${before}`
  const found = yield* Effect.orDie(sql`SELECT 1 FROM tollgate_mail_outbox WHERE ${interrupted} LIMIT 1`)
  if (found.length === 0) return
  yield* record(
    writer,
    sql`UPDATE tollgate_mail_outbox SET status = 'unknown', sealed = '',
      last_error = 'the process ended while it was sent' WHERE ${interrupted}`
  )
})
