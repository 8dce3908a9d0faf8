/** `tollgate key`: API keys of tenants. */
import { Command, Options } from "@effect/cli"
import { Console, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { serviceInfo } from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as DeploymentSecret from "../auth/DeploymentSecret.ts"
import type { ApplicationId, TenantId } from "../kernel/Ids.ts"
import { toIso } from "../kernel/Moment.ts"
import { Applications } from "../tenants/Applications.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { cacheLifetime } from "../tenants/KeyCallers.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, printed, tenantOption } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const keysOf = (facts: EnvironmentFacts) =>
  Applications.layer.pipe(
    Layer.provide(Belonging.layer),
    // To list and revoke keys nothing is hashed: it works where the secret is lost, too.
    Layer.provide([DeploymentSecret.layer(randomBytes(32)), serviceInfo(facts, {})]),
    Layer.provideMerge(database(facts))
  )

const keyList = Command.make("list", { tenant: tenantOption, json }, ({ json, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const { records, total_records } = yield* Effect.flatMap(Applications, (keys) =>
      keys.list({ caller: { tenant_id: tenant as TenantId, account_id: null }, page: 1, per_page: 1_000 })
    ).pipe(Effect.provide(keysOf(facts)))
    const found = records.map(({ account_id, created_at, id, key_prefix, last_used_at, name }) => ({
      id,
      name,
      key_prefix,
      account_id,
      created_at: toIso(created_at),
      last_used_at: last_used_at === null ? null : toIso(last_used_at)
    }))
    if (json) return yield* printed({ keys: found, total: total_records })
    if (found.length === 0) return yield* Console.log(`${tenant} has no API keys`)
    const rows = found.map(({ created_at, id, key_prefix, last_used_at, name }) => [
      id,
      `${key_prefix}…`,
      created_at.slice(0, 10),
      last_used_at?.slice(0, 10) ?? "never",
      CommandLine.printable(name)
    ])
    yield* Console.log(CommandLine.table([["ID", "KEY", "MADE", "USED", "NAME"], ...rows]))
    if (total_records > found.length) yield* Console.log(`${found.length} of ${total_records}`)
  })
).pipe(Command.withDescription("List a tenant's API keys"))

const keyRevoke = Command.make("revoke", { tenant: tenantOption, id: Options.text("id") }, ({ id, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    yield* Effect.flatMap(Applications, (keys) =>
      keys.remove({ caller: { tenant_id: tenant as TenantId, account_id: null }, application_id: id as ApplicationId })
    ).pipe(
      Effect.mapError((problem) =>
        refuse(problem._tag === "BooksUnavailable" ? problem.message : `--id ${id}: ${tenant} has no such key`)
      ),
      Effect.provide(keysOf(facts))
    )
    yield* Console.log(`revoked ${id}; ${noticedBy(facts)}`)
  })
).pipe(Command.withDescription("Revoke an API key"))

/** A service on a file looks again when its cache ends. Nodes are told (`sql/Signals`); one that cannot be reached looks then, too. */
const noticedBy = ({ database }: EnvironmentFacts): string => {
  const limit = `${Duration.toMinutes(cacheLifetime)} min`
  return database.engine === "sqlite"
    ? `a running service notices within ${limit}`
    : `nodes that serve are told, and refuse it at once; one that cannot be told notices within ${limit}`
}

export const subcommands = [keyList, keyRevoke] as const

export const command = Command.make("key").pipe(
  Command.withDescription("API keys of tenants"),
  Command.withSubcommands(subcommands)
)
