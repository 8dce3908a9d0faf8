/** `tollgate key`: API keys of tenants. */
import { Command, Options } from "@effect/cli"
import { Console, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { serviceInfo } from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as DeploymentSecret from "../../storage/secret/DeploymentSecret.ts"
import type { ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Application } from "../../people/tenants/Application.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { cacheLifetime } from "../../people/tenants/KeyCallers.ts"
import { audited } from "./Audited.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, printed, tenantOption } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const keysOf = (facts: EnvironmentFacts) =>
  Applications.layer.pipe(
    Layer.provide(Belonging.layer),
    // Listing and revoking hash nothing, so they work without the secret.
    Layer.provide([DeploymentSecret.layer(randomBytes(32)), serviceInfo(facts, {})]),
    Layer.provideMerge(database(facts))
  )

/** A key as `--json` prints it, amounts in USD. Only limited keys have the fields of limits. */
const keyOf = (key: Application) => ({
  id: key.id,
  name: key.name,
  key_prefix: key.key_prefix,
  account_id: key.account_id,
  created_at: toIso(key.created_at),
  ...(key.created_by !== undefined && { created_by: key.created_by }),
  last_used_at: key.last_used_at === null ? null : toIso(key.last_used_at),
  ...(key.spending_limit_usd !== undefined && {
    spending_limit_usd: toDecimal(key.spending_limit_usd),
    spending_limit_period: key.spending_limit_period,
    spent_usd: toDecimal(key.spent_usd ?? 0n),
    reserved_usd: toDecimal(key.reserved_usd ?? 0n)
  }),
  ...(key.expires_at !== undefined && { expires_at: toIso(key.expires_at) }),
  ...(key.allowed_models !== undefined && { allowed_models: key.allowed_models })
})
type Key = ReturnType<typeof keyOf>

const columns = ["ID", "KEY", "MADE", "USED", "SPENT", "LIMIT", "ENDS", "MODELS", "NAME"]

const rowOf = (key: Key): ReadonlyArray<string> => [
  key.id,
  `${key.key_prefix}…`,
  key.created_at.slice(0, 10),
  key.last_used_at?.slice(0, 10) ?? "never",
  key.spent_usd ?? "",
  key.spending_limit_usd === undefined ? "" : `${key.spending_limit_usd} ${periods[key.spending_limit_period!]}`,
  key.expires_at?.slice(0, 16) ?? "",
  CommandLine.printable(key.allowed_models?.join(",") ?? ""),
  CommandLine.printable(key.name)
]

const periods = { month: "a month", total: "in all" } as const

const keyList = Command.make("list", { tenant: tenantOption, json }, ({ json, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const { records, total_records } = yield* Effect.flatMap(Applications, (keys) =>
      keys.list({ caller: { tenant_id: tenant as TenantId, account_id: null }, page: 1, per_page: 1_000 })
    ).pipe(Effect.provide(keysOf(facts)))
    const found = records.map(keyOf)
    if (json) return yield* printed({ keys: found, total: total_records })
    if (found.length === 0) return yield* Console.log(`${tenant} has no API keys`)
    yield* Console.log(CommandLine.table([columns, ...found.map(rowOf)]))
    if (total_records > found.length) yield* Console.log(`${found.length} of ${total_records}`)
  })
).pipe(Command.withDescription("List a tenant's API keys and their limits"))

const keyRevoke = Command.make("revoke", { tenant: tenantOption, id: Options.text("id") }, ({ id, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const entry = yield* audited({ action: "key.revoke", tenant_id: tenant, subject: id })
    yield* Effect.flatMap(Applications, (keys) =>
      keys.remove(
        { caller: { tenant_id: tenant as TenantId, account_id: null }, application_id: id as ApplicationId },
        [entry]
      )
    ).pipe(
      Effect.mapError((problem) =>
        refuse(problem._tag === "BooksUnavailable" ? problem.message : `--id ${id}: ${tenant} has no such key`)
      ),
      Effect.provide(keysOf(facts))
    )
    yield* Console.log(`revoked ${id}; ${noticedBy(facts)}`)
  })
).pipe(Command.withDescription("Revoke an API key"))

/** On SQLite a service reads again when its cache expires. PostgreSQL notifies nodes (`storage/engine/Signals`), which also poll. */
const noticedBy = ({ database }: EnvironmentFacts): string =>
  database.engine === "sqlite"
    ? `a running service notices within ${Duration.toMinutes(cacheLifetime)} min`
    : "running nodes are notified and refuse it at once; a node that misses the notification refuses it within 2 s"

export const subcommands = [keyList, keyRevoke] as const

export const command = Command.make("key").pipe(
  Command.withDescription("API keys of tenants"),
  Command.withSubcommands(subcommands)
)
