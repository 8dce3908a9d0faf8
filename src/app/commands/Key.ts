/** `tollgate key`: manages the API keys of tenants. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Either, Layer, Option, Schema } from "effect"
import { randomBytes } from "node:crypto"
import { knownModels } from "../CallNames.ts"
import { calls, readFile, serviceInfo } from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as DeploymentSecret from "../../storage/secret/DeploymentSecret.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { KeyTags } from "../../kernel/Labels.ts"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Application } from "../../people/tenants/Application.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { PriceList } from "../../books/prices/PriceList.ts"
import * as Secret from "../Secret.ts"
import { audited, auditedAt } from "./Audited.ts"
import * as CommandLine from "./CommandLine.ts"
import { database, noticedBy } from "./Database.ts"
import { amountOf, endOf, json, noTenant, oneLine, printed, tenantOption } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const keysOf = (facts: EnvironmentFacts) =>
  Applications.layer.pipe(
    Layer.provide(Belonging.layer),
    // Listing and revoking hash nothing, so they do not need the deployment's secret.
    Layer.provide([DeploymentSecret.layer(randomBytes(32)), serviceInfo(facts, {})]),
    Layer.provideMerge(database(facts))
  )

/** Formats a key for `--json`, with amounts in USD. Only a key with a limit contains the limit fields. */
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
  ...(key.allowed_models !== undefined && { allowed_models: key.allowed_models }),
  ...(key.tags !== undefined && { tags: key.tags })
})
type Key = ReturnType<typeof keyOf>

const columns = ["ID", "KEY", "CREATED", "USED", "SPENT", "LIMIT", "EXPIRES", "MODELS", "TAGS", "NAME"]

const rowOf = (key: Key): ReadonlyArray<string> => [
  key.id,
  `${key.key_prefix}…`,
  key.created_at.slice(0, 10),
  key.last_used_at?.slice(0, 10) ?? "never",
  key.spent_usd ?? "",
  key.spending_limit_usd === undefined ? "" : `${key.spending_limit_usd} ${periods[key.spending_limit_period!]}`,
  key.expires_at?.slice(0, 16) ?? "",
  CommandLine.printable(key.allowed_models?.join(",") ?? ""),
  CommandLine.printable(pairsOf(key.tags ?? {}).join(",")),
  CommandLine.printable(key.name)
]

const pairsOf = (tags: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(tags).map(([name, value]) => `${name}=${value}`)

const periods = { month: "per month", total: "in total" } as const

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

/** Provides the services that create a key, including the deployment's secret for its hash. */
const makersOf = (facts: EnvironmentFacts, config: Option.Option<string>) =>
  Layer.merge(Applications.layer, Tenants.layer).pipe(
    Layer.provide(
      Option.match(config, {
        onNone: () => Layer.empty,
        onSome: (path) =>
          Layer.unwrapEffect(Effect.map(readFile(path), (file) => Layer.provide(knownModels, calls(file))))
      })
    ),
    Layer.provide(Belonging.layer),
    Layer.provide([Secret.layer(facts), serviceInfo(facts, {}), PriceList.layerNone]),
    Layer.provideMerge(database(facts))
  )

const limits = {
  limit: Options.text("limit").pipe(Options.withDescription("the key's spending limit, in USD"), Options.optional),
  period: Options.choice("period", ["month", "total"]).pipe(
    Options.withDescription(
      "the period of --limit: each calendar month (UTC), or the key's lifetime (total, the default)"
    ),
    Options.optional
  ),
  models: Options.text("models").pipe(
    Options.withDescription(
      "the models that the key may call, separated by commas (all by default); with --config, the command checks the names"
    ),
    Options.optional
  ),
  tags: Options.text("tag").pipe(
    Options.withDescription("a tag for all calls of the key, as name=value; may be repeated"),
    Options.repeated
  ),
  expires: Options.text("expires").pipe(
    Options.withDescription(
      "the key's last valid day (2027-01-31, to the end of that day in UTC), or an RFC 3339 time"
    ),
    Options.optional
  )
}

interface Limits {
  readonly limit: Option.Option<string>
  readonly period: Option.Option<"month" | "total">
  readonly models: Option.Option<string>
  readonly expires: Option.Option<string>
  readonly tags: ReadonlyArray<string>
}

const tagsOf = Effect.fnUntraced(function* (pairs: ReadonlyArray<string>) {
  const tags = new Map<string, string>()
  for (const pair of pairs) {
    const shown = `--tag ${CommandLine.printable(pair.slice(0, 200))}`
    const end = pair.indexOf("=")
    if (end < 0) return yield* refuse(`${shown}: must be name=value`)
    const name = pair.slice(0, end)
    if (tags.has(name)) return yield* refuse(`${shown}: the tag ${CommandLine.printable(name)} already has a value`)
    tags.set(name, pair.slice(end + 1))
  }
  const read = Schema.decodeUnknownEither(KeyTags)(Object.fromEntries(tags))
  return Either.isRight(read) ? read.right : yield* refuse(`--tag: ${InvalidRequest.ofDecoding(read.left).rule}`)
})

const limitsOf = Effect.fnUntraced(function* ({ expires, limit, models, period, tags }: Limits) {
  if (Option.isSome(period) && Option.isNone(limit))
    return yield* refuse(`--period ${period.value}: requires --limit, the spending limit for each period`)
  const end = Option.isSome(expires) ? yield* endOf(expires.value) : undefined
  const names = Option.map(models, (text) => text.split(",").map((name) => name.trim()))
  if (Option.isSome(names) && names.value.some((name) => name === ""))
    return yield* refuse(`--models ${Option.getOrThrow(models)}: must be names separated by commas`)
  return {
    ...(Option.isSome(limit) && {
      spending_limit_usd: yield* amountOf(limit.value, "--limit"),
      spending_limit_period: Option.getOrElse(period, () => "total" as const)
    }),
    ...(end !== undefined && { expires_at: end }),
    ...(Option.isSome(names) && { allowed_models: names.value }),
    ...(tags.length > 0 && { tags: yield* tagsOf(tags) })
  }
})

/** The command's option for each field that the service can reject. */
const optionsOf: Readonly<Record<string, string>> = { allowed_models: "--models", expires_at: "--expires" }

/** Rewords a refusal to name the command's option instead of the field. */
const inOptions = (problem: InvalidRequest) => {
  const option = optionsOf[problem.field]
  if (option === undefined) return refuse(problem.message)
  return refuse(`${option}: ${option === "--expires" ? "must be in the future" : problem.rule}`)
}

const keyCreate = Command.make(
  "create",
  {
    tenant: tenantOption,
    name: Options.text("name").pipe(Options.withDescription("the name in the list of keys")),
    ...limits,
    config: Options.text("config").pipe(
      Options.withDescription("the service's configuration file, to check the names of models"),
      Options.optional
    ),
    json
  },
  ({ config, json, name, tenant, ...asked }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const application = {
        name: yield* oneLine("--name", name),
        description: "created by the operator",
        ...(yield* limitsOf(asked))
      }
      const entry = yield* auditedAt
      const key = yield* Effect.gen(function* () {
        const tenant_id = tenant as TenantId
        const members = yield* Effect.flatMap(Tenants, (tenants) => tenants.members(tenant_id))
        const owner = members.find(({ role, status }) => role === "owner" && status === "active")
        if (owner === undefined) return yield* refuse(noTenant(tenant))
        return yield* Effect.flatMap(Applications, (keys) =>
          keys.create({
            caller: { account_id: owner.account_id, tenant_id },
            application,
            beside: (subject) => [entry({ action: "key.create", tenant_id: tenant, subject, details: { name } })]
          })
        )
      }).pipe(Effect.catchTag("InvalidRequest", inOptions), Effect.provide(makersOf(facts, config)))
      if (json) return yield* printed({ ...keyOf(key), api_key: key.api_key })
      yield* Console.log(key.api_key)
      yield* Console.error(`created ${key.id} for ${tenant}; the key will not be shown again`)
      if (Option.isSome(asked.models) && Option.isNone(config))
        yield* Console.error("the models' names were not checked; to check them, pass --config FILE")
    })
).pipe(Command.withDescription("Create an API key for the tenant's owner and print it once"))

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

export const subcommands = [keyList, keyCreate, keyRevoke] as const

export const command = Command.make("key").pipe(
  Command.withDescription("Manage the API keys of tenants"),
  Command.withSubcommands(subcommands)
)
