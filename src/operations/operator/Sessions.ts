/**
 * How an operator comes in over HTTP. The command line makes a link with a code, good once and for five minutes; the code gives a session
 * of a browser, known by a cookie for twelve hours; the session gives access tokens of ten minutes, of which only the page knows. Codes and
 * cookies are stored by their hashes. An access token is stored nowhere: it names its session and its end under a keyed hash, and holds
 * while the session does, which is asked with every request.
 *
 * Where the specification is silent:
 * - An operator's session is no person's: its tokens are refused wherever a user's are taken, and a user's here, with 401
 *   `invalid or expired token`. It belongs to nobody's account; who acts is the name that the command line was given.
 * - A session that ends ends its tokens at once, on all nodes. A code that comes a second time is refused, and ends nothing: a page that
 *   posts twice must not lose the session that its first post gave.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { randomBytes, timingSafeEqual } from "node:crypto"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/Ending.ts"
import { InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"
import * as Ids from "../../kernel/Ids.ts"
import { day } from "../../kernel/Moment.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import { Writer } from "../../books/ledger/Writer.ts"
import * as Audit from "./Audit.ts"
import type { Operator, SignedInOperator } from "./Operator.ts"
import type { Session, SessionToken } from "./Session.ts"

/** Who acts is said by the one who asks for it, who has the database and the secret. Times are milliseconds since 1970. */
export interface OperatorSessionsContract {
  /** A code that works once, until `expires_at`. */
  readonly invite: (
    name: string
  ) => Effect.Effect<{ readonly code: string; readonly expires_at: number }, BooksUnavailable>
  /** A session for a code, which is spent, and the cookie that it is known by. */
  readonly enter: (code: string) => Effect.Effect<Entered, InvalidToken | BooksUnavailable>
  /** The session of a cookie. */
  readonly resume: (cookie: string | undefined) => Effect.Effect<SignedInOperator, InvalidToken>
  /** A short access token of a session. */
  readonly issue: (operator: SignedInOperator) => Effect.Effect<SessionToken>
  /** A session without a browser, and a token that is as long as it: for scripts. */
  readonly openForScripts: (name: string) => Effect.Effect<SessionToken, BooksUnavailable>
  /** Who acts by an `Authorization` header. */
  readonly operatorOf: (
    authorization: string | undefined
  ) => Effect.Effect<SignedInOperator, MissingAuthorization | InvalidToken>
  /** Links and sessions that have not ended, the newest first; 200 at most. */
  readonly list: Effect.Effect<ReadonlyArray<Omit<Session, "current">>>
  /** Ends a link or a session, its tokens too; `false` where there is none that is open. */
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
/** How long a session that has ended is kept. */
const retention = 30 * day
const listMax = 200

export class OperatorSessions extends Context.Tag("tollgate/operator/Sessions")<
  OperatorSessions,
  OperatorSessionsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorSessions, make))
}

interface Row {
  readonly id: string
  readonly name: string
  readonly kind: "browser" | "token"
  readonly created_at: number
  readonly signed_in_at: number | null
  readonly expires_at: number
}

/** What an access token begins with. It has dots, so that no route takes it for an API key. */
const tokenPrefix = "tgop"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret

  const columns = sql.literal("id, name, kind, created_at, signed_in_at, expires_at")

  const operatorIn = (row: Row): SignedInOperator => ({
    name: row.name,
    via: row.kind === "token" ? "token" : "console",
    session_id: row.id,
    signed_in_at: row.signed_in_at ?? row.created_at,
    expires_at: row.expires_at
  })

  const add = (row: Row & { readonly code_hash: string | null }, now: number) => [
    statement(sql`DELETE FROM tollgate_operator_sessions WHERE expires_at < ${now - retention}`),
    statement(sql`INSERT INTO tollgate_operator_sessions ${sql.insert({ ...row, cookie_hash: null, ended_at: null })}`)
  ]

  const invite: OperatorSessionsContract["invite"] = Effect.fn("OperatorSessions.invite")(function* (name) {
    const now = yield* Clock.currentTimeMillis
    const code = randomBytes(32).toString("hex")
    const expires_at = now + Duration.toMillis(codeLifetime)
    const row = { id: Ids.at("ops", now), name, kind: "browser", created_at: now, signed_in_at: null } as const
    const added = add({ ...row, expires_at, code_hash: secret.hash("operator_code", code) }, now)
    yield* Statements.write(
      writer,
      ...added,
      Audit.entry({ name, via: "command" }, { action: "link", subject: row.id }, now)
    )
    return { code, expires_at }
  })

  const enter: OperatorSessionsContract["enter"] = Effect.fn("OperatorSessions.enter")(function* (code) {
    const now = yield* Clock.currentTimeMillis
    const hash = secret.hash("operator_code", code)
    const [link] = yield* Effect.orDie(
      sql<Row>`SELECT ${columns} FROM tollgate_operator_sessions WHERE code_hash = ${hash}`
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

  const live = (condition: Fragment, now: number) =>
    Effect.flatMap(
      Effect.orDie(
        sql<Row>`SELECT ${columns} FROM tollgate_operator_sessions
          WHERE ${condition} AND signed_in_at IS NOT NULL AND ended_at IS NULL AND expires_at > ${now}`
      ),
      ([row]) => (row === undefined ? new InvalidToken() : Effect.succeed(operatorIn(row)))
    )

  const resume: OperatorSessionsContract["resume"] = Effect.fn("OperatorSessions.resume")(function* (cookie) {
    if (cookie === undefined || !/^[0-9a-f]{64}$/.test(cookie)) return yield* new InvalidToken()
    const now = yield* Clock.currentTimeMillis
    return yield* live(sql`cookie_hash = ${secret.hash("operator_cookie", cookie)}`, now)
  })

  const signed = ({ expires_at, name, session_id }: SignedInOperator, lifetime: number, now: number): SessionToken => {
    const until = Math.min(expires_at, now + lifetime)
    const said = `${session_id}.${until}`
    return {
      access_token: `${tokenPrefix}.${said}.${secret.hash("operator_token", said)}`,
      expires_in: Math.floor((until - now) / 1000),
      name
    }
  }

  const issue: OperatorSessionsContract["issue"] = (operator) =>
    Effect.map(Clock.currentTimeMillis, (now) => signed(operator, Duration.toMillis(accessLifetime), now))

  const openForScripts: OperatorSessionsContract["openForScripts"] = Effect.fn("OperatorSessions.openForScripts")(
    function* (name) {
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
        writer,
        ...add({ ...row, code_hash: null }, now),
        Audit.entry({ name, via: "command" }, { action: "token", subject: row.id }, now)
      )
      return signed(operatorIn(row), Duration.toMillis(scriptLifetime), now)
    }
  )

  const operatorOf: OperatorSessionsContract["operatorOf"] = Effect.fn("OperatorSessions.operatorOf")(
    function* (authorization) {
      if (authorization === undefined || authorization === "") return yield* new MissingAuthorization()
      const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""
      const match = /^tgop\.(ops_[0-9a-z]{22})\.(\d{1,15})\.([0-9a-f]{64})$/.exec(bearer)
      if (match === null) return yield* new InvalidToken()
      const [, session = "", until = "", hash = ""] = match
      const wanted = secret.hash("operator_token", `${session}.${until}`)
      if (!timingSafeEqual(Buffer.from(hash), Buffer.from(wanted))) return yield* new InvalidToken()
      const now = yield* Clock.currentTimeMillis
      if (Number(until) <= now) return yield* new InvalidToken()
      return yield* live(sql`id = ${session}`, now)
    }
  )

  const list: OperatorSessionsContract["list"] = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* sql<Row>`SELECT ${columns} FROM tollgate_operator_sessions
      WHERE ended_at IS NULL AND expires_at > ${now} ORDER BY id DESC LIMIT ${listMax}`
    return rows.map((row) => ({ ...row, kind: row.signed_in_at === null ? ("link" as const) : row.kind }))
  }).pipe(Effect.orDie)

  const end: OperatorSessionsContract["end"] = Effect.fn("OperatorSessions.end")(function* (id, by) {
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

  return { invite, enter, resume, issue, openForScripts, operatorOf, list, end } satisfies OperatorSessionsContract
})

/** Under another secret no code, cookie or token of an operator is known any more. */
export const operatorSessionsEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_operator_sessions WHERE ended_at IS NULL AND expires_at > ${now}`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_operator_sessions SET ended_at = ${now} WHERE ended_at IS NULL`)
  ],
  notice: (n) => `${n} sessions and links of operators end`
}
