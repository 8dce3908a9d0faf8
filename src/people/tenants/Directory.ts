/**
 * Finds tenants, users and keys for the operator. `tenantsLike` matches substrings and scans all tenants. `make` uses an index to match an id, or the
 * prefix of a name, address or key.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"

export interface Listed {
  readonly id: TenantId
  readonly name: string
  /** The first owner's address; null if there is no owner. */
  readonly owner_email: string | null
  readonly created_at: number
}

/** Returns up to `limit` of the newest matching tenants, and the total number of matches. `search` is plain text, not a pattern. */
export const tenantsLike = (
  search: string,
  limit: number
): Effect.Effect<{ readonly found: ReadonlyArray<Listed>; readonly total: number }, never, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const part = `%${search.replace(/[\\%_]/g, "\\$&")}%`
    const like = (column: string) => sql`lower(${sql.literal(column)}) LIKE lower(${part}) ESCAPE '\\'`
    const owners = sql`tollgate_tenants_memberships m JOIN tollgate_tenants_accounts a ON a.id = m.account_id
      WHERE m.tenant_id = t.id AND m.role = 'owner' AND m.status = 'active'`
    const wanted = sql`${like("t.id")} OR ${like("t.name")} OR EXISTS (SELECT 1 FROM ${owners} AND ${like("a.email")})`
    const found = yield* sql<Listed>`SELECT t.id, t.name, t.created_at,
        (SELECT a.email FROM ${owners} ORDER BY m.created_at LIMIT 1) AS owner_email
      FROM tollgate_tenants_tenants t WHERE ${wanted} ORDER BY t.id DESC LIMIT ${limit}`
    const [counted] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_tenants_tenants t WHERE ${wanted}`
    return { found, total: counted?.n ?? 0 }
  }).pipe(Effect.orDie)

export interface Person {
  readonly id: AccountId
  readonly name: string
  readonly email: string
  readonly email_verified: boolean
  readonly home_tenant_id: TenantId
  readonly created_at: number
  /** When the operator suspended the user; null if the user is not suspended. */
  readonly suspended_at: number | null
}

export interface IdentityOf {
  readonly provider: string
  readonly provider_id: string
  readonly email: string
}

/** An API key, without its hash. */
export interface Key {
  readonly id: ApplicationId
  readonly name: string
  readonly key_prefix: string
  readonly tenant_id: TenantId
  readonly account_id: AccountId
  readonly created_at: number
  readonly last_used_at: number | null
  readonly expires_at: number | null
}

/** Creates the directory. Lists contain up to `limit` rows. Text is compared in lower case (ASCII). */
export const make = (sql: SqlClient) => ({
  tenants: (before: string | undefined, limit: number) => tenants(sql, before, limit),
  tenantsById: (ids: ReadonlyArray<string>) => tenantsById(sql, ids),
  namesOf: (ids: Iterable<string | null>) => namesOf(sql, ids),
  tenantsNamed: (text: string, limit: number) => tenantsNamed(sql, text, limit),
  people: (before: string | undefined, limit: number) => peopleBefore(sql, before, limit),
  person: (id: string) => person(sql, id),
  peopleLike: (text: string, limit: number) => peopleLike(sql, text, limit),
  identities: (account: AccountId) => identities(sql, account),
  keys: (before: string | undefined, limit: number) => keysBefore(sql, before, limit),
  key: (id: string) => key(sql, id),
  keysLike: (text: string, limit: number) => keysLike(sql, text, limit),
  keysOfAccount: (account: AccountId, limit: number) => keysOfAccount(sql, account, limit)
})

/** The last character in sort order. It ends a range of strings with the same prefix. */
const last = "\u{10ffff}"

/** Builds the condition that an expression begins with the text. An index serves the condition. */
const begins = (sql: SqlClient, expression: string, text: string) => {
  const column = sql.literal(expression)
  return sql`${column} >= lower(${text}) AND ${column} < lower(${text + last})`
}

const byId = <A extends { readonly id: string }>(rows: ReadonlyArray<A>, limit: number): ReadonlyArray<A> =>
  [...new Map(rows.map((row) => [row.id, row])).values()].slice(0, limit)

// ---- tenants ------------------------------------------------------------------------------------------------------------

const tenantColumns = (sql: SqlClient) =>
  sql.literal(`t.id, t.name, t.created_at,
    (SELECT a.email FROM tollgate_tenants_memberships m JOIN tollgate_tenants_accounts a ON a.id = m.account_id
      WHERE m.tenant_id = t.id AND m.role = 'owner' AND m.status = 'active' ORDER BY m.created_at LIMIT 1) AS owner_email`)

/** Lists tenants with ids below `before`, newest first. */
const tenants = (sql: SqlClient, before: string | undefined, limit: number) =>
  Effect.orDie(
    sql<Listed>`SELECT ${tenantColumns(sql)} FROM tollgate_tenants_tenants t
      WHERE ${before === undefined ? sql`true` : sql`t.id < ${before}`} ORDER BY t.id DESC LIMIT ${limit}`
  )

const tenantsById = (sql: SqlClient, ids: ReadonlyArray<string>) =>
  Effect.orDie(
    sql<Listed>`SELECT ${tenantColumns(sql)} FROM tollgate_tenants_tenants t
      WHERE t.id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) ORDER BY t.id DESC`
  )

/** Reads the names of tenants. Unknown ids are absent. */
const namesOf = (sql: SqlClient, ids: Iterable<string | null>): Effect.Effect<ReadonlyMap<string, string>> => {
  const asked = [...new Set(ids)].filter((id) => id !== null)
  if (asked.length === 0) return Effect.succeed(new Map())
  return Effect.map(
    Effect.orDie(
      sql<{ id: string; name: string }>`SELECT id, name FROM tollgate_tenants_tenants
        WHERE id IN (SELECT value FROM json_each(${JSON.stringify(asked)}))`
    ),
    (rows) => new Map(rows.map(({ id, name }) => [id, name]))
  )
}

const tenantsNamed = (sql: SqlClient, text: string, limit: number) =>
  Effect.orDie(
    sql<Listed>`SELECT ${tenantColumns(sql)} FROM tollgate_tenants_tenants t
      WHERE ${begins(sql, "lower(t.name)", text)} ORDER BY lower(t.name), t.id LIMIT ${limit}`
  )

// ---- people -------------------------------------------------------------------------------------------------------------

type PersonRow = Omit<Person, "email_verified"> & { readonly email_verified: number }

const personOf = (row: PersonRow): Person => ({ ...row, email_verified: row.email_verified === 1 })

const people = (sql: SqlClient) =>
  sql.literal(`a.id, a.name, a.email, a.email_verified, a.home_tenant_id, a.created_at, s.suspended_at
    FROM tollgate_tenants_accounts a LEFT JOIN tollgate_tenants_suspensions s ON s.account_id = a.id`)

const person = (sql: SqlClient, id: string) =>
  Effect.map(Effect.orDie(sql<PersonRow>`SELECT ${people(sql)} WHERE a.id = ${id}`), ([row]) => row && personOf(row))

const peopleBefore = (sql: SqlClient, before: string | undefined, limit: number) =>
  Effect.map(
    Effect.orDie(
      sql<PersonRow>`SELECT ${people(sql)} WHERE ${before === undefined ? sql`true` : sql`a.id < ${before}`}
        ORDER BY a.id DESC LIMIT ${limit}`
    ),
    (rows) => rows.map(personOf)
  )

/** Lists users by the beginning of their address, then by the beginning of their name. */
const peopleLike = Effect.fnUntraced(function* (sql: SqlClient, text: string, limit: number) {
  const byAddress = yield* sql<PersonRow>`SELECT ${people(sql)}
    WHERE ${begins(sql, "lower(a.email)", text)} ORDER BY lower(a.email), a.id LIMIT ${limit}`
  const byName = yield* sql<PersonRow>`SELECT ${people(sql)}
    WHERE ${begins(sql, "lower(a.name)", text)} ORDER BY lower(a.name), a.id LIMIT ${limit}`
  return byId([...byAddress, ...byName], limit).map(personOf)
}, Effect.orDie)

const identities = (sql: SqlClient, account: AccountId) =>
  Effect.orDie(
    sql<IdentityOf>`SELECT provider, subject AS provider_id, email FROM tollgate_tenants_identities
      WHERE account_id = ${account} ORDER BY provider, subject LIMIT 20`
  )

// ---- keys ---------------------------------------------------------------------------------------------------------------

const keys = (sql: SqlClient) =>
  sql.literal(`k.id, k.name, k.key_prefix, k.tenant_id, k.account_id, k.created_at, k.last_used_at, k.expires_at`)

const key = (sql: SqlClient, id: string) =>
  Effect.map(
    Effect.orDie(sql<Key>`SELECT ${keys(sql)} FROM tollgate_tenants_applications k WHERE k.id = ${id}`),
    ([row]) => row
  )

const keysBefore = (sql: SqlClient, before: string | undefined, limit: number) =>
  Effect.orDie(
    sql<Key>`SELECT ${keys(sql)} FROM tollgate_tenants_applications k
      WHERE ${before === undefined ? sql`true` : sql`k.id < ${before}`} ORDER BY k.id DESC LIMIT ${limit}`
  )

/** Lists keys whose saved prefix starts with the search text, then keys whose name does. */
const keysLike = Effect.fnUntraced(function* (sql: SqlClient, text: string, limit: number) {
  const [beginning] = /^[A-Za-z0-9]+-prod-[0-9a-f]{0,4}/.exec(text) ?? []
  const byPrefix =
    beginning === undefined
      ? []
      : yield* sql<Key>`SELECT ${keys(sql)} FROM tollgate_tenants_applications k
          WHERE k.key_prefix >= ${beginning} AND k.key_prefix < ${beginning + last} ORDER BY k.key_prefix, k.id LIMIT ${limit}`
  const byName = yield* sql<Key>`SELECT ${keys(sql)} FROM tollgate_tenants_applications k
    WHERE ${begins(sql, "lower(k.name)", text)} ORDER BY lower(k.name), k.id LIMIT ${limit}`
  return byId([...byPrefix, ...byName], limit)
}, Effect.orDie)

const keysOfAccount = (sql: SqlClient, account: AccountId, limit: number) =>
  Effect.orDie(
    sql<Key>`SELECT ${keys(sql)}
      FROM tollgate_tenants_memberships m JOIN tollgate_tenants_applications k ON k.tenant_id = m.tenant_id
      WHERE m.account_id = ${account} AND k.account_id = ${account} ORDER BY k.id DESC LIMIT ${limit}`
  )
