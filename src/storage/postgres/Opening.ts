/** Checks a PostgreSQL database before it is used, and describes in one sentence why a database cannot be used. */
import { Cause, Effect } from "effect"
import { DatabaseError } from "pg"
import type { Client } from "pg"
import type { PostgresDatabase } from "../database/Location.ts"
import { copyTable, DatabaseUnusable, migrationsTable, selectSource, unfinishedCopy } from "../database/Unusable.ts"
import type { Use } from "../database/Unusable.ts"
import { isConnectionFault } from "./Faults.ts"
import { selectAtWork } from "./Leases.ts"
import { TargetClient, targetOf } from "./Target.ts"

/** The oldest supported version. It is the first version that allows a subquery without an alias after FROM. */
const oldest = 16

/** The timeout for connecting and for queries, in milliseconds. */
const queryTimeout = 5_000

/** Returns the newest applied migration; 0 if the database does not contain the service's tables. Fails if the database cannot be used. */
export const look = (
  database: PostgresDatabase,
  { copying = false }: Pick<Use, "copying"> = {}
): Effect.Effect<number, DatabaseUnusable> =>
  asking(database, async (client) => {
    const { rows } = await client.query(settings)
    const refusal = refusalOf(database, rows[0] as Settings)
    if (refusal !== undefined) throw new DatabaseUnusable({ message: refusal })
    if (!copying) {
      const copy = await client.query("SELECT to_regclass($1) IS NOT NULL AS there", [copyTable])
      if (copy.rows[0].there === true)
        throw unfinishedCopy(database.shown, (await client.query(selectSource)).rows[0].value)
    }
    const { rows: tables } = await client.query(selectTable, [migrationsTable])
    if (tables[0].there !== true) return 0
    if (tables[0].may_read !== true) throw new DatabaseUnusable({ message: foreignTables(database) })
    return (await client.query(`SELECT max(migration_id) AS id FROM ${migrationsTable}`)).rows[0].id ?? 0
  })

/** Fails if nodes are serving the database. The database must contain the service's tables. Nodes can still start afterwards. */
export const unserved = (database: PostgresDatabase): Effect.Effect<void, DatabaseUnusable> =>
  asking(database, async (client) => {
    const { rows } = await client.query(selectAtWork)
    if (rows.length > 0) throw new DatabaseUnusable({ message: `${database.shown} ${servedBy(rows)}` })
  })

/** Returns the end of a refusal's sentence for a database that these nodes are serving (`selectAtWork`). */
export const servedBy = (nodes: ReadonlyArray<{ readonly name: string }>): string =>
  `is served by ${nodes.map(({ name }) => name).join(", ")}: stop it first (a node that was killed counts for 20 s)`

const asking = <A>(
  database: PostgresDatabase,
  ask: (client: Client) => Promise<A>
): Effect.Effect<A, DatabaseUnusable> =>
  Effect.acquireUseRelease(
    Effect.try({
      try: () =>
        new TargetClient({
          ...targetOf(database.url),
          connectionTimeoutMillis: queryTimeout,
          query_timeout: queryTimeout
        }),
      catch: (error) => new DatabaseUnusable({ message: wordsOf(database, error) })
    }),
    (client) =>
      Effect.tryPromise({
        try: async () => {
          client.on("error", () => {})
          await client.connect()
          return await ask(client)
        },
        catch: (error) =>
          error instanceof DatabaseUnusable ? error : new DatabaseUnusable({ message: wordsOf(database, error) })
      }),
    (client) => Effect.promise(() => client.end().catch(() => {}))
  )

interface Settings {
  readonly version: number
  readonly commit: string
  readonly read_only: boolean
  readonly standby: boolean
  readonly encoding: string
  readonly may_create: boolean
}

const settings = `SELECT current_setting('server_version_num')::int / 10000 AS version,
  current_setting('synchronous_commit') AS commit,
  current_setting('transaction_read_only') = 'on' AS read_only, pg_is_in_recovery() AS standby,
  current_setting('server_encoding') AS encoding,
  has_schema_privilege(current_schema(), 'CREATE') AS may_create`

const selectTable = `SELECT to_regclass($1) IS NOT NULL AS there, has_table_privilege(to_regclass($1), 'SELECT') AS may_read`

const foreignTables = ({ shown }: PostgresDatabase): string =>
  `${shown} contains tables that its user may not read (${migrationsTable}): use the user who created them, or GRANT that user to this one`

const refusalOf = ({ shown }: PostgresDatabase, found: Settings): string | undefined => {
  if (found.version < oldest) return `${shown} is PostgreSQL ${found.version}: it must be ${oldest} or newer`
  if (found.standby || found.read_only) return `${shown} is a standby or read-only: use the address of the primary`
  if (found.encoding !== "UTF8")
    return `${shown} has the encoding ${found.encoding}: create the database with ENCODING 'UTF8'`
  // Acknowledged writes must be on disk. The operator decides how many standbys must store them too.
  if (found.commit === "off")
    return `${shown} has synchronous_commit = off, which may lose acknowledged commits: set it to on`
  if (!found.may_create)
    return `the user of ${shown} may not create tables there: GRANT CREATE ON SCHEMA public TO that user`
  return undefined
}

/** Describes the error in one sentence, with advice for the operator. */
export const wordsOf = ({ shown }: PostgresDatabase, error: unknown): string => {
  const { code, message } =
    faultOf(error) ?? (error as { readonly code?: string | undefined; readonly message?: string })
  switch (code) {
    case "28P01":
    case "28000":
      return `${shown} rejects this user: wrong password, or pg_hba.conf does not allow it (${message})`
    case "3D000":
      return `${shown}: the database does not exist; create it with CREATE DATABASE`
    case "42P01":
    case "42703":
      return `${shown} is not as this service left it (${message}): restore a backup of it, or use an empty database`
    case "42501":
      return `${shown}: this user lacks a required permission (${message})`
    case "53300":
      return `${shown} accepts no more connections (${message}): raise that limit, or reduce the connections`
    case "57P03":
      return `${shown} is starting up or shutting down: try again shortly`
    case "ECONNREFUSED":
      return `cannot connect to ${shown}: is PostgreSQL running there?`
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the host of ${shown} is unknown`
    case "ECONNRESET":
    case "EPIPE":
      return `the server at ${shown} closed the connection: is it PostgreSQL?`
    default:
  }
  const text = message ?? String(error)
  if (/timeout/i.test(text))
    return `${shown} did not respond within ${queryTimeout / 1_000} s: is it PostgreSQL, and does a firewall block the connection?`
  if (/does not support SSL/i.test(text))
    return `${shown} does not offer TLS: set ssl = on on the server, or remove sslmode from the URL`
  if (/key values mismatch|bad decrypt|passphrase/i.test(text))
    return `the sslkey in the URL of ${shown} does not match its sslcert, or sslpassword does not decrypt it (${text})`
  if (/alert/i.test(text))
    return `${shown} rejects this client's certificate: set a trusted one with sslcert=FILE and sslkey=FILE in the URL (${text})`
  if (/does not match certificate/i.test(text))
    return `${shown} presents a certificate for another host: use the name in the certificate, or sslmode=verify-ca (${text})`
  if (/self.signed|certificate|unable to verify/i.test(text))
    return `${shown} presents a certificate that is not trusted (${text}): set its root with sslrootcert=FILE in the URL`
  if (
    /Connection terminated unexpectedly|Invalid message|invalid response|unexpected message|SSL connection|protocol/i.test(
      text
    )
  )
    return `the server at ${shown} does not speak PostgreSQL's protocol (${text})`
  if (/SASL|password must be a string/i.test(text)) return `${shown} requires a password: add it to the URL`
  return `${shown} could not be used: ${text}${code === undefined ? "" : ` (${code})`}`
}

/** Returns the underlying error of PostgreSQL or the connection, if there is one. */
export const faultOf = (error: unknown): (Error & { readonly code?: string | undefined }) | undefined => {
  let one: unknown = Cause.isCause(error) ? Cause.squash(error) : error
  for (let depth = 0; one instanceof Error && depth < 10; depth++) {
    const { code } = one as { readonly code?: unknown }
    if (one instanceof DatabaseError || isConnectionFault(one)) return one
    if (typeof code === "string" && /^E[A-Z]+$/.test(code)) return one as Error & { readonly code: string }
    one = one.cause
  }
  return undefined
}
