/**
 * Operator sign-in over HTTP. The command line creates a link with a code that works once, within five minutes. The code opens a twelve-hour browser
 * session, identified by a cookie. The session issues ten-minute access tokens to the console's page. The database stores codes and cookies as
 * hashes. Every request checks that its token's session is open.
 *
 * Where the specification is silent:
 * - An operator's session belongs to no user account. Routes for users reject its tokens, and operator routes reject users' tokens, with 401 `invalid
 *   or expired token`. The operator's name is the name given on the command line.
 * - Ending a session ends its tokens immediately on all nodes. The service refuses a second use of a code but ends no session. A page that posts
 *   twice must not lose the session from its first post.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import { InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"
import * as Ids from "../../kernel/Ids.ts"
import { day } from "../../kernel/Moment.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import * as AccessToken from "./AccessToken.ts"
import * as Audit from "./Audit.ts"
import type { Operator, SignedInOperator } from "./Operator.ts"
import type { Session, SessionToken } from "./Session.ts"

/** Names are not verified, because anyone who can create a session already has the database and the secret. Times are in Unix milliseconds. */
export interface OperatorSessionsContract {
  /** Creates a code that works once, until `expires_at`. */
  readonly invite: (
    name: string
  ) => Effect.Effect<{ readonly code: string; readonly expires_at: number }, BooksUnavailable>
  /** Redeems a code: opens its session and returns the session's cookie. */
  readonly enter: (code: string) => Effect.Effect<Entered, InvalidToken | BooksUnavailable>
  readonly resume: (cookie: string | undefined) => Effect.Effect<SignedInOperator, InvalidToken>
  readonly issue: (operator: SignedInOperator) => Effect.Effect<SessionToken>
  /** Opens a session for scripts, without a browser. Its only token is valid as long as the session. */
  readonly openForScripts: (name: string) => Effect.Effect<SessionToken, BooksUnavailable>
  readonly operatorOf: (
    authorization: string | undefined
  ) => Effect.Effect<SignedInOperator, MissingAuthorization | InvalidToken>
  /** Lists up to 200 open links and sessions, newest first. */
  readonly list: Effect.Effect<ReadonlyArray<Omit<Session, "current">>>
  /** Ends a link, or a session and its tokens. Returns `false` if neither is open under this id. */
  readonly end: (id: string, by: Operator) => Effect.Effect<boolean, BooksUnavailable>
}

export interface Entered {
  readonly operator: SignedInOperator
  readonly cookie: string
}

export const codeLifetime = Duration.minutes(5)
export const sessionLifetime = Duration.hours(12)
export const accessLifetime = Duration.minutes(10)
export const scriptLifetime = Duration.hours(1)
/** How long an expired session's row is retained, in milliseconds. */
const retention = 30 * day
const listMax = 200

export class OperatorSessions extends Context.Tag("tollgate/operator/Sessions")<
  OperatorSessions,
  OperatorSessionsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorSessions, make))
}

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
}

const make = Effect.gen(function* () {
  const parts: Parts = { sql: yield* SqlClient, writer: yield* Writer, secret: yield* DeploymentSecret }
  return {
    invite: invite(parts),
    enter: enter(parts),
    resume: resume(parts),
    issue: (operator) =>
      Effect.map(Clock.currentTimeMillis, (now) => tokenOf(parts, operator, Duration.toMillis(accessLifetime), now)),
    openForScripts: openForScripts(parts),
    operatorOf: operatorOf(parts),
    list: list(parts),
    end: end(parts)
  } satisfies OperatorSessionsContract
})

interface Row {
  readonly id: string
  readonly name: string
  readonly kind: "browser" | "token"
  readonly created_at: number
  readonly signed_in_at: number | null
  readonly expires_at: number
}

const columns = (sql: SqlClient) => sql.literal("id, name, kind, created_at, signed_in_at, expires_at")

const operatorIn = (row: Row): SignedInOperator => ({
  name: row.name,
  via: row.kind === "token" ? "token" : "console",
  session_id: row.id,
  signed_in_at: row.signed_in_at ?? row.created_at,
  expires_at: row.expires_at
})

/** Returns the statements that add a row and delete rows that expired long ago. */
const adding = (sql: SqlClient, row: Row & { readonly code_hash: string | null }, now: number) => [
  statement(sql`DELETE FROM tollgate_operator_sessions WHERE expires_at < ${now - retention}`),
  statement(sql`INSERT INTO tollgate_operator_sessions ${sql.insert({ ...row, cookie_hash: null, ended_at: null })}`)
]

const invite = ({ secret, sql, writer }: Parts): OperatorSessionsContract["invite"] =>
  Effect.fn("OperatorSessions.invite")(function* (name) {
    const now = yield* Clock.currentTimeMillis
    const code = randomBytes(32).toString("hex")
    const expires_at = now + Duration.toMillis(codeLifetime)
    const row = { id: Ids.at("ops", now), name, kind: "browser", created_at: now, signed_in_at: null } as const
    yield* Statements.write(
      writer,
      ...adding(sql, { ...row, expires_at, code_hash: secret.hash("operator_code", code) }, now),
      Audit.entry({ name, via: "command" }, { action: "link", subject: row.id }, now)
    )
    return { code, expires_at }
  })

const enter = ({ secret, sql, writer }: Parts): OperatorSessionsContract["enter"] =>
  Effect.fn("OperatorSessions.enter")(function* (code) {
    const now = yield* Clock.currentTimeMillis
    const hash = secret.hash("operator_code", code)
    const [link] = yield* Effect.orDie(
      sql<Row>`SELECT ${columns(sql)} FROM tollgate_operator_sessions WHERE code_hash = ${hash}`
    )
    if (link === undefined) return yield* new InvalidToken()
    const cookie = randomBytes(32).toString("hex")
    const expires_at = now + Duration.toMillis(sessionLifetime)
    const entered = yield* Statements.tryWrite(
      writer,
      statement(
        sql`UPDATE tollgate_operator_sessions SET signed_in_at = ${now}, expires_at = ${expires_at},
            cookie_hash = ${secret.hash("operator_cookie", cookie)}
          WHERE id = ${link.id} AND signed_in_at IS NULL AND ended_at IS NULL AND expires_at > ${now} RETURNING id`,
        1
      ),
      Audit.entry({ name: link.name, via: "console" }, { action: "sign_in", subject: link.id }, now)
    )
    if (!entered) return yield* new InvalidToken()
    return { cookie, operator: operatorIn({ ...link, signed_in_at: now, expires_at }) }
  })

const openSession = (sql: SqlClient, condition: Fragment, now: number) =>
  Effect.flatMap(
    Effect.orDie(
      sql<Row>`SELECT ${columns(sql)} FROM tollgate_operator_sessions
        WHERE ${condition} AND signed_in_at IS NOT NULL AND ended_at IS NULL AND expires_at > ${now}`
    ),
    ([row]) => (row === undefined ? new InvalidToken() : Effect.succeed(operatorIn(row)))
  )

const resume = ({ secret, sql }: Parts): OperatorSessionsContract["resume"] =>
  Effect.fn("OperatorSessions.resume")(function* (cookie) {
    if (cookie === undefined || !/^[0-9a-f]{64}$/.test(cookie)) return yield* new InvalidToken()
    const now = yield* Clock.currentTimeMillis
    return yield* openSession(sql, sql`cookie_hash = ${secret.hash("operator_cookie", cookie)}`, now)
  })

/** Issues a token for a session. It expires after `lifetime`, or with the session if that is earlier. */
const tokenOf = (
  { secret }: Parts,
  { expires_at, name, session_id }: SignedInOperator,
  lifetime: number,
  now: number
): SessionToken => {
  const until = Math.min(expires_at, now + lifetime)
  return {
    access_token: AccessToken.write(secret, { session_id, expires_at: until }),
    expires_in: Math.floor((until - now) / 1000),
    name
  }
}

const openForScripts = (parts: Parts): OperatorSessionsContract["openForScripts"] =>
  Effect.fn("OperatorSessions.openForScripts")(function* (name) {
    const now = yield* Clock.currentTimeMillis
    const expires_at = now + Duration.toMillis(scriptLifetime)
    const row = {
      id: Ids.at("ops", now),
      name,
      kind: "token",
      created_at: now,
      signed_in_at: now,
      expires_at
    } as const
    yield* Statements.write(
      parts.writer,
      ...adding(parts.sql, { ...row, code_hash: null }, now),
      Audit.entry({ name, via: "command" }, { action: "token", subject: row.id }, now)
    )
    return tokenOf(parts, operatorIn(row), Duration.toMillis(scriptLifetime), now)
  })

const operatorOf = ({ secret, sql }: Parts): OperatorSessionsContract["operatorOf"] =>
  Effect.fn("OperatorSessions.operatorOf")(function* (authorization) {
    if (authorization === undefined || authorization === "") return yield* new MissingAuthorization()
    const token = AccessToken.read(secret, authorization)
    if (token === undefined) return yield* new InvalidToken()
    const now = yield* Clock.currentTimeMillis
    if (token.expires_at <= now) return yield* new InvalidToken()
    return yield* openSession(sql, sql`id = ${token.session_id}`, now)
  })

const list = ({ sql }: Parts): OperatorSessionsContract["list"] =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* sql<Row>`SELECT ${columns(sql)} FROM tollgate_operator_sessions
      WHERE ended_at IS NULL AND expires_at > ${now} ORDER BY id DESC LIMIT ${listMax}`
    return rows.map((row) => ({ ...row, kind: row.signed_in_at === null ? ("link" as const) : row.kind }))
  }).pipe(Effect.orDie)

const end = ({ sql, writer }: Parts): OperatorSessionsContract["end"] =>
  Effect.fn("OperatorSessions.end")(function* (id, by) {
    const now = yield* Clock.currentTimeMillis
    return yield* Statements.tryWrite(
      writer,
      statement(
        sql`UPDATE tollgate_operator_sessions SET ended_at = ${now}
          WHERE id = ${id} AND ended_at IS NULL AND expires_at > ${now} RETURNING id`,
        1
      ),
      Audit.entry(by, { action: "session.end", subject: id }, now)
    )
  })

/** Invalidates all codes, cookies and tokens of operators, because a new deployment secret cannot verify them. */
export const operatorSessionsEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_operator_sessions WHERE ended_at IS NULL AND expires_at > ${now}`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_operator_sessions SET ended_at = ${now} WHERE ended_at IS NULL`)
  ],
  notice: (n) => `${n} operator sessions and links become invalid`
}
