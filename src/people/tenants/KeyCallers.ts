/**
 * Who calls with an API key. A key is looked up by its hash, and remembered for a minute, or until it expires.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Duration, Effect } from "effect"
import type { Clock } from "effect"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import { ExpiredKey } from "../credentials/Problems.ts"
import { isLive } from "../credentials/Families.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { earlier } from "../../kernel/hot/Earlier.ts"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { WriterContract } from "../../books/ledger/Writer.ts"
import { isCurrent } from "./Belonging.ts"
import type { BelongingContract, Mark } from "./Belonging.ts"

/** How long a key is taken for valid without another look. The specification allows five minutes. */
export const cacheLifetime = Duration.minutes(1)
const lifetime = Duration.toMillis(cacheLifetime)
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
  /** A JSON array. */
  readonly allowed_models: string | null
}

/**
 * From a key to its caller: `callerOf`, `undefined` where there is no such key, or no more. `remembered` gives the callers of keys that need no
 * look into the database at the moment.
 */
export const make = (
  sql: SqlClient,
  writer: WriterContract,
  secret: DeploymentSecretContract,
  belonging: BelongingContract,
  clock: Clock.Clock
) => {
  /**
   * By the key as it comes, since to hash it would be a fortieth of every call. In memory only; entries that have been out of date for a
   * minute are deleted: of one that is read again before, the caller stays the same object. Not Effect's `Cache`: every call by a key
   * reads it, without an allocation.
   */
  const cache = new Map<string, Entry>()
  let sweepAt = 0

  const remember = (key: string, entry: Entry, now: number): void => {
    if (now >= sweepAt) {
      sweepAt = now + lifetime
      for (const [other, { until }] of cache) if (until + lifetime <= now) cache.delete(other)
    }
    // It goes behind all others: the first is the one that was looked up the longest ago.
    cache.delete(key)
    if (cache.size >= cachedMax) cache.delete(cache.keys().next().value!)
    cache.set(key, entry)
  }

  /** The guard: an entry that was pushed out of a full cache is looked up more often than once a minute. */
  const noteUse = (id: ApplicationId, now: number) =>
    Statements.write(
      writer,
      statement(sql`UPDATE tollgate_tenants_applications SET last_used_at = ${now} WHERE id = ${id}
        AND (last_used_at IS NULL OR last_used_at <= ${now - lifetime})`)
    )

  const look = Effect.fnUntraced(function* (key: string, now: number) {
    const hash = secret.hash("api_key", key)
    const [application] = yield* sql<
      Pick<Row, "account_id" | "id">
    >`SELECT id, account_id FROM tollgate_tenants_applications WHERE key_hash = ${hash}`.pipe(Effect.orDie)
    if (application === undefined) return undefined
    // Taken before what is remembered is read: a change in between ends them.
    const marks = [belonging.markOf(application.account_id), belonging.markOf(application.id)]
    // A key acts for the person who made it, as long as they belong to the tenant; one that an OAuth client made, as long as its sign-in.
    const [row] =
      yield* sql<Row>`SELECT a.id, a.account_id, a.tenant_id, a.expires_at, a.allowed_models FROM tollgate_tenants_applications a
      JOIN tollgate_tenants_memberships m ON m.account_id = a.account_id AND m.tenant_id = a.tenant_id AND m.status = 'active'
      WHERE a.key_hash = ${hash} AND ${isLive(sql, "a.family_id")} AND NOT EXISTS (SELECT 1 FROM tollgate_tenants_suspensions s WHERE s.account_id = a.account_id)`.pipe(
        Effect.orDie
      )
    if (row === undefined) return undefined
    const { account_id, allowed_models, expires_at, id, tenant_id } = row
    if (expires_at !== null && expires_at <= now) return yield* new ExpiredKey({ expired_at: expires_at })
    // Of many calls that looked at once, the first has done the rest.
    const known = cache.get(key)
    if (known !== undefined && known.until > now && isCurrent(known.marks)) return known.caller
    const caller = earlier<Caller>(known?.caller, {
      account_id,
      tenant_id,
      application_id: id,
      credential: "api_key",
      team_first: false,
      ...(allowed_models !== null && { allowed_models: JSON.parse(allowed_models) as ReadonlyArray<string> })
    })
    remember(key, { caller, until: Math.min(now + lifetime, expires_at ?? Number.POSITIVE_INFINITY), marks }, now)
    // Nobody waits for it.
    yield* Effect.forkDaemon(noteUse(id, now))
    return caller
  })

  const rememberedAt = (key: string, now: number): Caller | undefined => {
    const known = cache.get(key)
    return known !== undefined && known.until > now && isCurrent(known.marks) ? known.caller : undefined
  }

  const callerOf = (key: string): Effect.Effect<Caller | undefined, ExpiredKey> =>
    Effect.suspend(() => {
      const now = clock.unsafeCurrentTimeMillis()
      const caller = rememberedAt(key, now)
      return caller === undefined ? look(key, now) : Effect.succeed(caller)
    })
  const remembered = (key: string): Caller | undefined => rememberedAt(key, clock.unsafeCurrentTimeMillis())
  return { callerOf, remembered }
}
