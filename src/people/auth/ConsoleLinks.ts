/**
 * Single-use links that open the console as a specific user. For deployments without an identity provider, an operator's command creates a link
 * valid for 15 minutes. If the operator creates a user, the user's first email contains a link that is valid for seven days. The table of
 * authorization codes stores the links' codes as hashes.
 *
 * Where the specification is silent:
 * - A link is not bound to a browser, because it is printed on a terminal or sent by email and opened elsewhere. The code follows the `#`, so servers
 *   do not log it.
 * - A suspended user's link opens nothing. Suspending a user or ending their sign-ins invalidates their links permanently.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { randomBytes } from "node:crypto"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import { toRow } from "../credentials/Scope.ts"

export const linkLifetime = Duration.minutes(15)
/** The lifetime of the link in a user's first email. */
export const letterLinkLifetime = Duration.days(7)

/** The client id in the rows of links. No OAuth client can exchange their codes, because they are hashed for a separate purpose. */
const client_id = "console"

export interface Person {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
}

interface Row extends Person {
  readonly expires_at: number
  readonly used_at: number | null
}

export const make = (sql: SqlClient, writer: WriterContract, secret: DeploymentSecretContract) => {
  /** Creates a code and the statement that inserts its row. */
  const drafted = Effect.fnUntraced(function* ({ account_id, tenant_id }: Person, lifetime: Duration.Duration) {
    const code = randomBytes(32).toString("hex")
    const expires_at = (yield* Clock.currentTimeMillis) + Duration.toMillis(lifetime)
    const row = {
      hash: secret.hash("console_link", code),
      client_id,
      redirect_uri: "",
      account_id,
      tenant_id,
      challenge: "",
      scope: toRow("all"),
      expires_at
    }
    return { code, expires_at, stored: statement(sql`INSERT INTO tollgate_auth_codes ${sql.insert(row)}`) }
  })

  const invite = Effect.fn("ConsoleLinks.invite")(function* (
    person: Person,
    beside: ReadonlyArray<Statement>
  ): Effect.fn.Return<{ readonly code: string; readonly expires_at: number }, BooksUnavailable> {
    const { code, expires_at, stored } = yield* drafted(person, linkLifetime)
    yield* Statements.write(writer, stored, ...beside)
    return { code, expires_at }
  })

  /** Redeems a code. Returns the code's user, or `undefined` if the code is unknown, used or expired. */
  const spend = Effect.fn("ConsoleLinks.spend")(function* (
    code: string
  ): Effect.fn.Return<Person | undefined, BooksUnavailable> {
    const now = yield* Clock.currentTimeMillis
    const hash = secret.hash("console_link", code)
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT account_id, tenant_id, expires_at, used_at FROM tollgate_auth_codes WHERE hash = ${hash}`
    )
    if (row === undefined || row.used_at !== null || row.expires_at <= now) return undefined
    const spent = statement(
      sql`UPDATE tollgate_auth_codes SET used_at = ${now} WHERE hash = ${hash} AND used_at IS NULL RETURNING hash`,
      1
    )
    return (yield* Statements.tryWrite(writer, spent)) ? row : undefined
  })

  return { drafted, invite, spend }
}
