/**
 * Which tenants, people and keys there are, for the operator: tenants by a part of an id, a name or an owner's address, which reads all of
 * them; and all three by an id or the beginning of a name, an address or a key, which an index finds.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"

export interface Listed {
  readonly id: TenantId
  readonly name: string
  /** Of the owner who came first; null where none is left. */
  readonly owner_email: string | null
  readonly created_at: number
}

/** The newest first, at most `limit` of them, and how many there are in all. `search` is a text, not a pattern. */
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

/** A person as the operator sees them. */
export interface Person {
  readonly id: AccountId
  readonly name: string
  readonly email: string
  readonly email_verified: boolean
  readonly home_tenant_id: TenantId
  readonly created_at: number
  /** When the operator suspended them; `null` where they are not. */
  readonly suspended_at: number | null
}

/** An identity by which a person signs in. */
export interface IdentityOf {
  readonly provider: string
  readonly provider_id: string
  readonly email: string
}

/** An API key, without what it is known by. */
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

/** Behind all texts that begin alike. */
const last = "\u{10ffff}"

/** Lists are bounded by `limit`. Names and addresses are compared by their letters of ASCII in lower case. */
export const make = (sql: SqlClient) => {
  /** Texts that begin so: a range of an index. */
  const begins = (expression: string, text: string) => {
    const column = sql.literal(expression)
    return sql`${column} >= lower(${text}) AND ${column} < lower(${text + last})`
  }

  const listed = sql.literal(`t.id, t.name, t.created_at,
    (SELECT a.email FROM tollgate_tenants_memberships m JOIN tollgate_tenants_accounts a ON a.id = m.account_id
      WHERE m.tenant_id = t.id AND m.role = 'owner' AND m.status = 'active' ORDER BY m.created_at LIMIT 1) AS owner_email`)

  const person = sql.literal(`a.id, a.name, a.email, a.email_verified, a.home_tenant_id, a.created_at, s.suspended_at
    FROM tollgate_tenants_accounts a LEFT JOIN tollgate_tenants_suspensions s ON s.account_id = a.id`)

  const key = sql.literal(`id, name, key_prefix, tenant_id, account_id, created_at, last_used_at, expires_at
    FROM tollgate_tenants_applications`)

  type PersonRow = Omit<Person, "email_verified"> & { readonly email_verified: number }
  const personOf = (row: PersonRow): Person => ({ ...row, email_verified: row.email_verified === 1 })

  return {
    /** The newest first; from below the id `before`, where there is one. */
    tenants: (before: string | undefined, limit: number) =>
      Effect.orDie(
        sql<Listed>`SELECT ${listed} FROM tollgate_tenants_tenants t
          WHERE ${before === undefined ? sql`true` : sql`t.id < ${before}`} ORDER BY t.id DESC LIMIT ${limit}`
      ),
    tenantsById: (ids: ReadonlyArray<string>) =>
      Effect.orDie(
        sql<Listed>`SELECT ${listed} FROM tollgate_tenants_tenants t
          WHERE t.id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) ORDER BY t.id DESC`
      ),
    /** The names of those of the tenants that there are. */
    namesOf: (ids: Iterable<string | null>): Effect.Effect<ReadonlyMap<string, string>> => {
      const asked = [...new Set(ids)].filter((id) => id !== null)
      if (asked.length === 0) return Effect.succeed(new Map())
      return Effect.map(
        Effect.orDie(
          sql<{ id: string; name: string }>`SELECT id, name FROM tollgate_tenants_tenants
            WHERE id IN (SELECT value FROM json_each(${JSON.stringify(asked)}))`
        ),
        (rows) => new Map(rows.map(({ id, name }) => [id, name]))
      )
    },
    tenantsNamed: (text: string, limit: number) =>
      Effect.orDie(
        sql<Listed>`SELECT ${listed} FROM tollgate_tenants_tenants t
          WHERE ${begins("lower(t.name)", text)} ORDER BY lower(t.name), t.id LIMIT ${limit}`
      ),
    person: (id: string) =>
      Effect.map(Effect.orDie(sql<PersonRow>`SELECT ${person} WHERE a.id = ${id}`), ([row]) => row && personOf(row)),
    /** By the beginning of an address, then by that of a name. */
    peopleLike: Effect.fnUntraced(function* (text: string, limit: number) {
      const byAddress = yield* sql<PersonRow>`SELECT ${person}
        WHERE ${begins("lower(a.email)", text)} ORDER BY lower(a.email), a.id LIMIT ${limit}`
      const byName = yield* sql<PersonRow>`SELECT ${person}
        WHERE ${begins("lower(a.name)", text)} ORDER BY lower(a.name), a.id LIMIT ${limit}`
      return [...new Map([...byAddress, ...byName].map((row) => [row.id, personOf(row)])).values()].slice(0, limit)
    }, Effect.orDie),
    identities: (account: AccountId) =>
      Effect.orDie(
        sql<IdentityOf>`SELECT provider, subject AS provider_id, email FROM tollgate_tenants_identities
          WHERE account_id = ${account} ORDER BY provider, subject LIMIT 20`
      ),
    key: (id: string) => Effect.map(Effect.orDie(sql<Key>`SELECT ${key} WHERE id = ${id}`), ([row]) => row),
    /** By the beginning of a key, as far as that is stored, then by that of a name. */
    keysLike: Effect.fnUntraced(function* (text: string, limit: number) {
      const [beginning] = /^[A-Za-z0-9]+-prod-[0-9a-f]{0,4}/.exec(text) ?? []
      const byKey =
        beginning === undefined
          ? []
          : yield* sql<Key>`SELECT ${key} WHERE key_prefix >= ${beginning} AND key_prefix < ${beginning + last}
              ORDER BY key_prefix, id LIMIT ${limit}`
      const byName =
        yield* sql<Key>`SELECT ${key} WHERE ${begins("lower(name)", text)} ORDER BY lower(name), id LIMIT ${limit}`
      return [...new Map([...byKey, ...byName].map((row) => [row.id, row])).values()].slice(0, limit)
    }, Effect.orDie),
    keysOfAccount: (account: AccountId, limit: number) =>
      Effect.orDie(
        sql<Key>`SELECT k.id, k.name, k.key_prefix, k.tenant_id, k.account_id, k.created_at, k.last_used_at, k.expires_at
          FROM tollgate_tenants_memberships m JOIN tollgate_tenants_applications k ON k.tenant_id = m.tenant_id
          WHERE m.account_id = ${account} AND k.account_id = ${account} ORDER BY k.id DESC LIMIT ${limit}`
      )
  }
}
