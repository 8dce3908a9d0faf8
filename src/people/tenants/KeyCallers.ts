/** Finds the callers of API keys. A key is looked up by its hash and cached for a minute or until it expires. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Duration, Effect } from "effect"
import type { Clock } from "effect"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import { ExpiredKey } from "../credentials/Problems.ts"
import { isLive } from "../credentials/Families.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { earlier } from "../../kernel/hot/Earlier.ts"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { isCurrent } from "./Belonging.ts"
import type { BelongingContract, Mark } from "./Belonging.ts"

/** The lifetime of a cached key. The specification allows five minutes. */
export const cacheLifetime = Duration.minutes(1)
export const cacheMillis = Duration.toMillis(cacheLifetime)
const lifetime = cacheMillis
const cachedMax = 50_000

interface Entry {
  readonly caller: Caller
  readonly until: number
  readonly marks: ReadonlyArray<Mark>
}

interface Row {
  readonly id: ApplicationId
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly expires_at: number | null
  /** A JSON array of model names. */
  readonly allowed_models: string | null
  readonly tags: string | null
  readonly attribution_tags: number
}

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
  readonly belonging: BelongingContract
}

/**
 * `callerOf` returns a key's caller. It returns `undefined` if the key is unknown or unusable, and fails if the key has expired. `remembered`
 * returns a cached key's caller, or `undefined` if the key is not cached.
 */
export const make = (
  sql: SqlClient,
  writer: WriterContract,
  secret: DeploymentSecretContract,
  belonging: BelongingContract,
  clock: Clock.Clock
) => {
  const dependencies: Dependencies = { sql, writer, secret, belonging }
  const cache = makeCache()

  const callerOf = (key: string): Effect.Effect<Caller | undefined, ExpiredKey> =>
    Effect.suspend(() => {
      const now = clock.unsafeCurrentTimeMillis()
      const caller = cache.callerAt(key, now)
      return caller === undefined ? read(dependencies, cache, key, now) : Effect.succeed(caller)
    })
  const remembered = (key: string): Caller | undefined => cache.callerAt(key, clock.unsafeCurrentTimeMillis())
  return { callerOf, remembered }
}

export interface Holder {
  readonly caller: Caller
  /** Null if the key does not expire. */
  readonly expires_at: number | null
}

/** Returns the holder of an application's key, for its runs' keys. Returns `undefined` if the key is unusable. */
export const holderOf = (sql: SqlClient, id: ApplicationId): Effect.Effect<Holder | undefined> =>
  Effect.map(liveRow(sql, sql`a.id = ${id}`), (row) =>
    row === undefined ? undefined : { caller: callerFrom(row), expires_at: row.expires_at }
  )

const callerFrom = ({ account_id, allowed_models, attribution_tags, id, tags, tenant_id }: Row): Caller => ({
  account_id,
  tenant_id,
  application_id: id,
  credential: "api_key",
  team_first: false,
  ...(allowed_models !== null && { allowed_models: JSON.parse(allowed_models) as ReadonlyArray<string> }),
  ...(tags !== null && { labels: { tags } }),
  ...(attribution_tags === 1 && { attribution: true })
})

export type Cache = ReturnType<typeof makeCache>

/**
 * Creates a cache of callers by full key, in memory only. Hashing the key would take 2.5 % of every call's time. An expired entry is retained for
 * a minute, so that a later read of the key can return the same caller object. The cache is a plain map, because every call with a key reads it, and
 * reads of Effect's `Cache` allocate.
 */
export const makeCache = () => {
  const entries = new Map<string, Entry>()
  let sweepAt = 0

  const set = (key: string, entry: Entry, now: number): void => {
    if (now >= sweepAt) {
      sweepAt = now + lifetime
      for (const [other, { until }] of entries) if (until + lifetime <= now) entries.delete(other)
    }
    // A map keeps insertion order, so its first entry is the oldest.
    entries.delete(key)
    if (entries.size >= cachedMax) entries.delete(entries.keys().next().value!)
    entries.set(key, entry)
  }

  const callerAt = (key: string, now: number): Caller | undefined => {
    const known = entries.get(key)
    return known !== undefined && known.until > now && isCurrent(known.marks) ? known.caller : undefined
  }

  /** Returns an entry's caller, even if the entry has expired. */
  const earlierCaller = (key: string): Caller | undefined => entries.get(key)?.caller

  return { set, callerAt, earlierCaller }
}

const read = Effect.fnUntraced(function* (dependencies: Dependencies, cache: Cache, key: string, now: number) {
  const { belonging, secret, sql } = dependencies
  const hash = secret.hash("api_key", key)
  const [application] = yield* sql<
    Pick<Row, "account_id" | "id">
  >`SELECT id, account_id FROM tollgate_tenants_applications WHERE key_hash = ${hash}`.pipe(Effect.orDie)
  if (application === undefined) return undefined
  // Gets the marks before reading the row, so a concurrent change invalidates them.
  const marks = [belonging.markOf(application.account_id), belonging.markOf(application.id)]
  const row = yield* liveRow(sql, sql`a.key_hash = ${hash}`)
  if (row === undefined) return undefined
  const { expires_at, id } = row
  if (expires_at !== null && expires_at <= now) return yield* new ExpiredKey({ expired_at: expires_at })
  // The first of several concurrent reads fills the cache.
  const cached = cache.callerAt(key, now)
  if (cached !== undefined) return cached
  const caller = earlier(cache.earlierCaller(key), callerFrom(row))
  cache.set(key, { caller, until: Math.min(now + lifetime, expires_at ?? Number.POSITIVE_INFINITY), marks }, now)
  // Forks the write, so that the call does not wait for it.
  yield* Effect.forkDaemon(noteUse(dependencies, id, now))
  return caller
})

/**
 * Reads the application of a usable key: its account must be an active, unsuspended member of the tenant, and the key's sign-in must not have ended.
 */
const liveRow = (sql: SqlClient, which: Fragment) =>
  Effect.map(
    Effect.orDie(sql<Row>`SELECT a.id, a.account_id, a.tenant_id, a.expires_at, a.allowed_models, a.tags, t.attribution_tags
      FROM tollgate_tenants_applications a JOIN tollgate_tenants_tenants t ON t.id = a.tenant_id
      JOIN tollgate_tenants_memberships m ON m.account_id = a.account_id AND m.tenant_id = a.tenant_id AND m.status = 'active'
      WHERE ${which} AND ${isLive(sql, "a.family_id")}
        AND NOT EXISTS (SELECT 1 FROM tollgate_tenants_suspensions s WHERE s.account_id = a.account_id)`),
    ([row]) => row
  )

/** Records the key's last use, at most once a minute. The SQL condition covers keys that a full cache has evicted. */
const noteUse = ({ sql, writer }: Dependencies, id: ApplicationId, now: number) =>
  Statements.write(
    writer,
    statement(sql`UPDATE tollgate_tenants_applications SET last_used_at = ${now} WHERE id = ${id}
      AND (last_used_at IS NULL OR last_used_at <= ${now - lifetime})`)
  )
