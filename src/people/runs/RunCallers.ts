/**
 * Finds the callers that run keys identify. A key is looked up by its hash and cached like an API key (`KeyCallers`). A key is rejected once its run,
 * a run above it, its API key or the account's membership has ended.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { Clock } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { earlier } from "../../kernel/hot/Earlier.ts"
import { mergedWithin } from "../../kernel/Labels.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import { ExpiredKey } from "../credentials/Problems.ts"
import type { ApplicationsContract } from "../tenants/Applications.ts"
import type { BelongingContract } from "../tenants/Belonging.ts"
import { cacheMillis, makeCache } from "../tenants/KeyCallers.ts"
import type { Cache, Holder } from "../tenants/KeyCallers.ts"
import { modelsOf, runsOf } from "./RunRow.ts"
import type { Row } from "./RunRow.ts"

interface Dependencies {
  readonly sql: SqlClient
  readonly secret: DeploymentSecretContract
  readonly belonging: BelongingContract
  readonly applications: Pick<ApplicationsContract, "holderOf">
}

export const keyPrefix = (prefix: string): string => `${prefix}-run-`

/**
 * `callerOf` returns a key's caller. It returns `undefined` if the key is unknown or rejected, and fails if the key has expired. `remembered` returns
 * a key's caller only if it is cached.
 */
export const make = (dependencies: Dependencies, clock: Clock.Clock) => {
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

type Found = Pick<Row, "account_id" | "application_id" | "end_user" | "expires_at" | "models" | "path" | "tags">

const read = Effect.fnUntraced(function* (dependencies: Dependencies, cache: Cache, key: string, now: number) {
  const { applications, belonging, secret, sql } = dependencies
  const [row] = yield* Effect.orDie(
    sql<Found>`SELECT account_id, application_id, end_user, expires_at, models, path, tags FROM tollgate_runs
      WHERE key_hash = ${secret.hash("run_key", key)}`
  )
  if (row === undefined) return undefined
  const runs = runsOf(row.path)
  // Gets the marks before the reads below, so an end in the meantime invalidates the cached caller. The columns read above never change.
  const marks = [row.account_id, row.application_id, ...runs].map(belonging.markOf)
  const [ended] = yield* Effect.orDie(
    sql`SELECT 1 FROM tollgate_runs WHERE id IN (SELECT value FROM json_each(${JSON.stringify(runs)}))
      AND ended_at IS NOT NULL AND ended_at < expires_at LIMIT 1`
  )
  if (ended !== undefined) return undefined
  const holder = yield* applications.holderOf(row.application_id)
  if (holder === undefined) return undefined
  const expires_at = Math.min(row.expires_at, holder.expires_at ?? Number.POSITIVE_INFINITY)
  if (expires_at <= now) return yield* new ExpiredKey({ expired_at: expires_at })
  const cached = cache.callerAt(key, now)
  if (cached !== undefined) return cached
  const caller = earlier(cache.earlierCaller(key), callerFrom(row, runs, holder))
  cache.set(key, { caller, until: Math.min(now + cacheMillis, expires_at), marks }, now)
  return caller
})

/** Returns the run's caller. The API key's current tags apply, so a tag added after the run was created also marks the run's calls. */
const callerFrom = (row: Found, runs: ReadonlyArray<string>, { caller }: Holder): Caller => {
  const models = both(caller.allowed_models, modelsOf(row))
  const own = { ...(row.tags !== "" && { tags: row.tags }), ...(row.end_user !== "" && { end_user: row.end_user }) }
  const hasLabels = row.tags !== "" || row.end_user !== ""
  return {
    ...caller,
    runs,
    ...(models !== undefined && { allowed_models: models }),
    ...(hasLabels && { labels: mergedWithin(caller.labels, own) })
  }
}

/** Returns the models in both lists. An absent list allows all models. */
const both = (one: ReadonlyArray<string> | undefined, other: ReadonlyArray<string> | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : other.filter((model) => one.includes(model))
