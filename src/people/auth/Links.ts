/**
 * Sign-in links by email. A link works once, within 15 minutes, in the browser that requested it. The database stores link tokens and browser cookies
 * as hashes.
 *
 * Where the specification is silent:
 * - The response is identical for every address. An address that may not sign in receives no email.
 * - At most five links per hour can be requested for one address, whether or not an email is sent.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { randomBytes } from "node:crypto"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { ServiceFacts } from "../../kernel/ServiceInfo.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { VerifiedIdentity } from "../../upstream/identity/Identity.ts"
import type { Letter, OutboxContract } from "../mail/Outbox.ts"
import type { RegistrationContract } from "../tenants/Registration.ts"

/** The provider name of identities verified by email. */
export const emailProvider = "email"

export const linkLifetime = Duration.minutes(15)
/** The rate limit window per address, in milliseconds. */
const rateWindow = Duration.toMillis(Duration.hours(1))
/** The maximum number of links per address in this window. */
const perAddress = 5

/** The page that a link leads to. */
export interface Destination {
  readonly room?: "console" | undefined
  readonly page: string
}

export interface VerifiedLink {
  readonly identity: VerifiedIdentity
  readonly destination: Destination
}

interface Row {
  readonly browser_hash: string
  readonly email: string
  readonly destination: string
  readonly expires_at: number
  readonly used_at: number | null
}

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
  readonly outbox: OutboxContract
  readonly registration: RegistrationContract
  readonly info: ServiceFacts
}

export const make = (dependencies: Dependencies) => ({
  /** Requests a link. Returns a cookie for the browser that may follow the link, or `undefined` if the address has reached its limit. */
  request: makeRequest(dependencies),
  /** Follows a link. If the link cannot be used, returns the reason and leaves the link unspent. */
  follow: makeFollow(dependencies)
})

export type Links = ReturnType<typeof make>

const tokenHash = (secret: DeploymentSecretContract, token: string) => secret.hash("sign_in", `link ${token}`)
const browserHash = (secret: DeploymentSecretContract, cookie: string) => secret.hash("sign_in", `browser ${cookie}`)

const newSecret = (): string => randomBytes(32).toString("base64url")

export const identityOf = (email: string): VerifiedIdentity => ({
  provider: emailProvider,
  subject: email,
  email,
  email_verified: true,
  name: email.slice(0, email.lastIndexOf("@"))
})

const makeRequest = ({ info, outbox, registration, secret, sql, writer }: Dependencies) =>
  Effect.fn("Links.request")(function* (
    email: string,
    destination: Destination
  ): Effect.fn.Return<string | undefined, BooksUnavailable> {
    const now = yield* Clock.currentTimeMillis
    const [token, cookie] = [newSecret(), newSecret()]
    const row = {
      token_hash: tokenHash(secret, token),
      browser_hash: browserHash(secret, cookie),
      email,
      destination: JSON.stringify(destination),
      created_at: now,
      expires_at: now + Duration.toMillis(linkLifetime)
    }
    // Built for every address, because the response time must not reveal whether an email is sent.
    const letter = yield* outbox.letter(letterOf(email, token, row.token_hash, info))
    const comes = yield* registration.mayCome(identityOf(email))
    const stored = yield* Statements.tryWrite(
      writer,
      statement(sql`DELETE FROM tollgate_auth_links WHERE expires_at < ${now - rateWindow}`),
      statement(
        sql`INSERT INTO tollgate_auth_links (token_hash, browser_hash, email, destination, created_at, expires_at)
          SELECT ${row.token_hash}, ${row.browser_hash}, ${email}, ${row.destination}, ${now}, ${row.expires_at}
          WHERE (SELECT count(*) FROM tollgate_auth_links WHERE email = ${email} AND created_at > ${now - rateWindow})
            < ${perAddress} RETURNING token_hash`,
        1
      ),
      ...(comes ? [letter] : [])
    )
    yield* outbox.wake
    return stored ? cookie : undefined
  })

const letterOf = (email: string, token: string, key: string, { public_url, service_name }: ServiceFacts): Letter => ({
  key: `sign-in/${key}`,
  to: email,
  subject: `Sign in to ${service_name}`,
  text: [
    `This link signs you in to ${service_name}:`,
    `${public_url}/oauth/link?token=${token}`,
    `The link works once, within ${Duration.toMinutes(linkLifetime)} minutes, in the browser that requested it.`,
    "If you did not request this link, ignore this email. Do not forward it."
  ].join("\n\n")
})

const makeFollow = ({ secret, sql, writer }: Dependencies) =>
  Effect.fn("Links.follow")(function* (
    token: string,
    cookie: string | undefined
  ): Effect.fn.Return<VerifiedLink | "expired" | "other_browser", BooksUnavailable> {
    const now = yield* Clock.currentTimeMillis
    const hash = tokenHash(secret, token)
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT browser_hash, email, destination, expires_at, used_at FROM tollgate_auth_links WHERE token_hash = ${hash}`
    )
    if (row === undefined || row.used_at !== null || row.expires_at <= now) return "expired"
    if (cookie === undefined || browserHash(secret, cookie) !== row.browser_hash) return "other_browser"
    const spent = statement(
      sql`UPDATE tollgate_auth_links SET used_at = ${now} WHERE token_hash = ${hash} AND used_at IS NULL RETURNING email`,
      1
    )
    if (!(yield* Statements.tryWrite(writer, spent))) return "expired"
    return { identity: identityOf(row.email), destination: JSON.parse(row.destination) as Destination }
  })

/** Invalidates sign-in links that were sent under the old secret. */
export const linksEnd: Ending = {
  count: (sql, now) => sql`SELECT count(*) AS n FROM tollgate_auth_links WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [
    statement(sql`DELETE FROM tollgate_auth_links`),
    statement(sql`DELETE FROM tollgate_auth_returns`)
  ],
  notice: (n) => `${n} sign-in links become invalid; users must request new ones`
}
