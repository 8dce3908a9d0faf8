/** The commands of an operator: serve, and what is done beside it. */
import { CliConfig, Command, HelpDoc, Options } from "@effect/cli"
import * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import * as ValidationError from "@effect/cli/ValidationError"
import { Cause, Clock, Console, Effect, Layer, Logger, LogLevel, Option } from "effect"
import type { Either } from "effect"
import { randomBytes } from "node:crypto"
import { Clients, ConfiguredClients, isRedirectAddress } from "./auth/Clients.ts"
import * as DeploymentSecret from "./auth/DeploymentSecret.ts"
import { SigningKeys } from "./auth/SigningKeys.ts"
import { billingAccountOf } from "./kernel/Ids.ts"
import * as Ids from "./kernel/Ids.ts"
import type { ApplicationId, TenantId } from "./kernel/Ids.ts"
import { toIso } from "./kernel/Moment.ts"
import { amountMax, fromDecimal, toDecimal } from "./kernel/Money.ts"
import type { Nano } from "./kernel/Money.ts"
import { Ledger } from "./ledger/Ledger.ts"
import { balanceOf } from "./ledger/Transaction.ts"
import * as CommandLine from "./CommandLine.ts"
import { readFile, serviceInfo } from "./Config.ts"
import * as DataFolder from "./DataFolder.ts"
import * as Database from "./entry/database.ts"
import { describe, environment, hostOf, variables } from "./Environment.ts"
import type { EnvironmentFacts } from "./Environment.ts"
import { ConfigProblem } from "./kernel/Setting.ts"
import * as Secret from "./Secret.ts"
import { Purchases } from "./payments/Purchases.ts"
import { PriceList } from "./prices/PriceList.ts"
import * as Reseal from "./Reseal.ts"
import { serve } from "./commands/Serve.ts"
import { Applications } from "./tenants/Applications.ts"
import { Belonging } from "./tenants/Belonging.ts"
import { tenantsLike } from "./tenants/Directory.ts"
import { Tenants } from "./tenants/Tenants.ts"
import * as Backup from "./sql/Backup.ts"
import * as Opening from "./sql/Opening.ts"
import * as ServiceLock from "./sql/ServiceLock.ts"
import * as Sql from "./sql/Sql.ts"
import { Payments } from "./upstream/Payments.ts"
import { version } from "./Version.ts"

/** Something that the operator can mend; its message says how. */
const refuse = (message: string) => new ConfigProblem({ message })

const fromEnvironment: Effect.Effect<EnvironmentFacts, ConfigProblem> = Effect.mapError(environment, (error) =>
  refuse(`the environment does not fit:\n${describe(error)}`)
)

/**
 * Brings the database up to date, if it is not: alone, since an upgrade changes tables that a service of an earlier version goes on
 * writing to. Answers what was applied.
 */
const upgraded = (facts: EnvironmentFacts, applied: number) =>
  Effect.gen(function* () {
    if (applied < Sql.newest) {
      yield* Effect.catchTag(ServiceLock.lock(facts.database), "AlreadyServed", () =>
        refuse(
          `${facts.database} must be brought up to date first, and an earlier version is serving it: stop that, or use its own command`
        )
      )
    }
    return yield* Sql.migrateFile(facts.database)
  }).pipe(Effect.scoped)

/** The database that there is, up to date: for a command beside a running service or without one. No command but `migrate` makes one. */
const present = (facts: EnvironmentFacts) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const applied = yield* DataFolder.appliedMigration(facts)
      yield* DataFolder.keepPrivate(facts)
      yield* upgraded(facts, applied)
    })
  )

const database = (facts: EnvironmentFacts) => Database.layer(facts.database).pipe(Layer.provide(present(facts)))

/** For scripts: the same as one JSON document. */
const json = Options.boolean("json").pipe(Options.withDescription("print JSON"))

const printed = (document: object) => Console.log(JSON.stringify(document))

const logging = (level: LogLevel.LogLevel) =>
  Layer.merge(
    Logger.replace(
      Logger.defaultLogger,
      Logger.withConsoleError(process.stderr.isTTY ? Logger.logfmtLogger : Logger.jsonLogger)
    ),
    Logger.minimumLogLevel(level)
  )

// ---- serve ----------------------------------------------------------------------------------------------------------------

const config = Options.text("config").pipe(
  Options.withDescription("models, upstreams, identity providers and prices; without it, a sandbox is served"),
  Options.optional
)

const serveCommand = Command.make("serve", { config }, ({ config }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const file = Option.isNone(config) ? undefined : yield* either(readFile(config.value))
    return yield* serve(facts, file)
  })
).pipe(Command.withDescription("Run the service until it is told to stop (SIGTERM lets what is under way finish)"))

const either = <A>(value: Either.Either<A, ConfigProblem>): Effect.Effect<A, ConfigProblem> => value

// ---- beside a running service ---------------------------------------------------------------------------------------------

/** Credit to book: what would be rounded away, or is more than the books hold, is not meant. */
const amountOf = (text: string): Effect.Effect<Nano, ConfigProblem> => {
  const nano = text.length > 40 ? undefined : fromDecimal(text, 9)
  return nano === undefined || nano <= 0n || nano > amountMax || fromDecimal(text, 18) !== nano * 1_000_000_000n
    ? refuse(
        `--amount ${text.slice(0, 40)}: a decimal number above 0 and up to ${toDecimal(amountMax)}, with at most 9 places`
      )
    : Effect.succeed(nano)
}

const noTenant = (tenant: string) => `--tenant ${tenant}: there is no such tenant ("tollgate tenants" lists them)`

const tooLarge = (amount: string) => `--amount ${amount}: the balance would exceed what the books hold`

const textMax = 200

/** A text for the ledger or for people, on one line. */
const oneLine = (flag: string, text: string): Effect.Effect<string, ConfigProblem> => {
  const trimmed = text.trim()
  return trimmed === "" || trimmed.length > textMax || CommandLine.shown(trimmed) !== trimmed
    ? refuse(`${flag}: 1 to ${textMax} characters on one line`)
    : Effect.succeed(trimmed)
}

const grant = Command.make(
  "grant",
  {
    tenant: Options.text("tenant").pipe(Options.withDescription("the tenant's id (ten_…)")),
    amount: Options.text("amount").pipe(Options.withDescription("in credits: 1 credit is 1 USD; down to 0.000000001")),
    note: Options.text("note").pipe(
      Options.withDescription("shown in the ledger"),
      Options.withDefault("granted by the operator")
    )
  },
  ({ amount, note, tenant }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const nano = yield* amountOf(amount)
      const description = yield* oneLine("--note", note)
      const granted = Effect.gen(function* () {
        const ledger = yield* Ledger
        const account = billingAccountOf(tenant)
        const reference = yield* Ids.make("pay")
        yield* ledger.credit({ account, amount: nano, source: "admin", reference, description })
        return yield* ledger.account(account)
      })
      const account = yield* granted.pipe(
        Effect.mapError((refusal) =>
          refuse(
            refusal._tag === "BooksUnavailable"
              ? refusal.message
              : refusal._tag === "AccountMissing"
                ? noTenant(tenant)
                : tooLarge(amount)
          )
        ),
        Effect.provide(Layer.provideMerge(Ledger.layer, database(facts)))
      )
      if (Option.isNone(account)) return
      const { status } = account.value
      yield* Console.log(
        `granted ${toDecimal(nano)} credits to ${tenant}; its balance is ${toDecimal(balanceOf(account.value))}` +
          (status === "active" ? "" : `. It is ${status}: it cannot spend while it is`)
      )
    })
).pipe(Command.withDescription("Give a tenant credit that it can spend but not send on (source: admin)"))

/** The rooms of money in, without the outside world, beside a running service. */
const purchases = (facts: EnvironmentFacts) =>
  Purchases.layer.pipe(
    Layer.provide([Tenants.layer, Ledger.layer]),
    Layer.provide([PriceList.layerNone, Payments.layerNone]),
    Layer.provide(Belonging.layer),
    Layer.provideMerge(database(facts))
  )

const purchase = Command.make(
  "purchase",
  {
    tenant: Options.text("tenant").pipe(Options.withDescription("the tenant's id (ten_…)")),
    amount: Options.text("amount").pipe(Options.withDescription("in credits: 1 credit is 1 USD")),
    reference: Options.text("reference").pipe(
      Options.withDescription("the invoice or receipt; booked once, however often this is run")
    )
  },
  ({ amount, reference, tenant }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const nano = yield* amountOf(amount)
      const invoice = yield* oneLine("--reference", reference)
      const booked = yield* Effect.flatMap(Purchases, (rooms) =>
        rooms.bookOffline({ tenant_id: tenant, amount: nano, reference: invoice })
      ).pipe(
        Effect.mapError((problem) => refuse(problem._tag === "BalanceTooLarge" ? tooLarge(amount) : problem.message)),
        Effect.provide(purchases(facts))
      )
      if (!booked)
        return yield* refuse(`--tenant ${tenant}: no such tenant; or --reference ${reference} was booked before`)
      yield* Console.log(`booked a purchase of ${toDecimal(nano)} credits for ${tenant} (${reference})`)
    })
).pipe(Command.withDescription("Book a purchase that was paid another way (source: purchase)"))

const owed = Command.make("owed", { json }, ({ json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const [found, waiting] = yield* Effect.flatMap(Purchases, (rooms) => Effect.all([rooms.owed, rooms.waiting])).pipe(
      Effect.provide(purchases(facts))
    )
    if (json) {
      return yield* printed({
        owed: found.map((one) => ({ ...one, owed: toDecimal(one.owed) })),
        waiting: waiting.map((one) => ({ ...one, since: toIso(one.since) }))
      })
    }
    yield* Effect.forEach(
      waiting,
      ({ movements, payment_id, since }) =>
        Console.log(
          `${payment_id} was refunded or disputed (${movements} times, first told ${toIso(since)}), but was never booked here`
        ),
      { discard: true }
    )
    if (found.length === 0) return yield* Console.log("nobody owes anything")
    yield* Effect.forEach(
      found,
      ({ owed, payment_id, tenant_id }) =>
        Console.log(`${tenant_id} owes ${toDecimal(owed)} USD of ${payment_id}, which was refunded or disputed`),
      { discard: true }
    )
  })
).pipe(Command.withDescription("Show refunds and disputes that balances could not give back"))

const tenantsCommand = Command.make(
  "tenants",
  {
    search: Options.text("search").pipe(
      Options.withDescription("a part of an id, a name or an owner's address"),
      Options.withDefault("")
    ),
    limit: Options.integer("limit").pipe(
      Options.withDescription("how many are shown at most"),
      Options.withDefault(50)
    ),
    json
  },
  ({ json, limit, search }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      if (limit < 1 || limit > 1_000) return yield* refuse("--limit: from 1 to 1000")
      const { found, total } = yield* Effect.gen(function* () {
        const ledger = yield* Ledger
        const { found, total } = yield* tenantsLike(search, limit)
        const tenants = yield* Effect.forEach(found, (tenant) =>
          Effect.map(ledger.accountOfTenant(tenant.id), (account) => ({
            ...tenant,
            created_at: toIso(tenant.created_at),
            balance: toDecimal(Option.match(account, { onNone: () => 0n, onSome: balanceOf })),
            status: Option.match(account, { onNone: () => "active" as const, onSome: ({ status }) => status })
          }))
        )
        return { found: tenants, total }
      }).pipe(Effect.provide(Layer.provideMerge(Ledger.layer, database(facts))))
      if (json) return yield* printed({ tenants: found, total })
      if (found.length === 0)
        return yield* Console.log(search === "" ? "there are no tenants yet" : "no tenant is like that")
      const rows = found.map(({ balance, created_at, id, name, owner_email, status }) => [
        id,
        `${balance} USD${status === "active" ? "" : ` (${status})`}`,
        created_at.slice(0, 10),
        CommandLine.shown(owner_email ?? "no owner"),
        CommandLine.shown(name)
      ])
      yield* Console.log(CommandLine.table([["TENANT", "BALANCE", "SINCE", "OWNER", "NAME"], ...rows]))
      if (total > found.length)
        yield* Console.log(`${found.length} of ${total}: narrow it by --search, or raise --limit (up to 1000)`)
    })
).pipe(Command.withDescription("Find tenants, with owner and balance: whom to grant"))

// ---- applications and keys ------------------------------------------------------------------------------------------------

const clientsOf = (facts: EnvironmentFacts) =>
  Clients.layer.pipe(Layer.provide(Layer.succeed(ConfiguredClients, [])), Layer.provideMerge(database(facts)))

const clientCreate = Command.make(
  "create",
  {
    kind: Options.choice("kind", ["app", "oauth", "web"]).pipe(
      Options.withDescription("app: signs in by a provider's token; oauth: by the code flow; web: a contact form")
    ),
    name: Options.text("name").pipe(Options.withDescription("shown to people")),
    redirect: Options.text("redirect-uri").pipe(
      Options.withDescription("oauth only: where the code flow may lead back to; may be given several times"),
      Options.repeated
    ),
    trusted: Options.boolean("trusted").pipe(
      Options.withDescription("oauth only: an application of your own, which may do all that the person may")
    )
  },
  ({ kind, name, redirect, trusted }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const title = yield* oneLine("--name", name)
      if (kind === "oauth" && redirect.length === 0) return yield* refuse("--redirect-uri: an oauth client needs one")
      if (kind !== "oauth" && trusted) return yield* refuse("--trusted: only an oauth client can be")
      if (kind !== "oauth" && redirect.length > 0) return yield* refuse("--redirect-uri: only an oauth client has one")
      const wrong = redirect.find((uri) => !isRedirectAddress(uri))
      if (wrong !== undefined) {
        return yield* refuse(`--redirect-uri ${wrong}: an address without a fragment, no script and no file`)
      }
      const client = yield* Effect.gen(function* () {
        const clients = yield* Clients
        const same = (yield* clients.list).find((one) => one.kind === kind && one.name === title)
        if (same !== undefined)
          return yield* refuse(
            `--name ${title}: ${same.client_id} is called that; take another name, or revoke it first`
          )
        return yield* clients.create({ kind, name: title, redirect_uris: redirect, trusted })
      }).pipe(Effect.provide(clientsOf(facts)))
      yield* Console.log(client.client_id)
    })
).pipe(Command.withDescription("Register an application; prints its client id"))

const clientList = Command.make("list", { json }, ({ json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const found = yield* Effect.flatMap(Clients, (clients) => clients.list).pipe(Effect.provide(clientsOf(facts)))
    if (json) return yield* printed({ clients: found })
    yield* Effect.forEach(
      found,
      ({ client_id, kind, name, redirect_uris, trusted }) =>
        Console.log(
          [client_id, trusted === true ? `${kind}, trusted` : kind, CommandLine.shown(name), ...redirect_uris].join(
            "\t"
          )
        ),
      { discard: true }
    )
  })
).pipe(Command.withDescription("List the applications that were registered by a command"))

const clientRevoke = Command.make("revoke", { id: Options.text("id") }, ({ id }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const done = yield* Effect.flatMap(Clients, (clients) => clients.revoke(id)).pipe(Effect.provide(clientsOf(facts)))
    if (!done) return yield* refuse(`--id ${id}: no such client, or it stands in the configuration file`)
    yield* Console.log(`revoked ${id}`)
  })
).pipe(
  Command.withDescription(
    "End an application and the sign-ins that came through it; a running service notices within a minute"
  )
)

const clientCommands = [clientCreate, clientList, clientRevoke] as const

const client = Command.make("client").pipe(
  Command.withDescription("Applications that sign people in, or speak for a website"),
  Command.withSubcommands(clientCommands)
)

const tenantOption = Options.text("tenant").pipe(Options.withDescription("the tenant's id (ten_…)"))

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
      keys.list({ tenant_id: tenant as TenantId, account_id: null }, { page: 1, per_page: 1_000 })
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
      CommandLine.shown(name)
    ])
    yield* Console.log(CommandLine.table([["ID", "KEY", "MADE", "USED", "NAME"], ...rows]))
    if (total_records > found.length) yield* Console.log(`${found.length} of ${total_records}`)
  })
).pipe(Command.withDescription("List a tenant's API keys"))

const keyRevoke = Command.make("revoke", { tenant: tenantOption, id: Options.text("id") }, ({ id, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    yield* Effect.flatMap(Applications, (keys) =>
      keys.remove({ tenant_id: tenant as TenantId, account_id: null }, id as ApplicationId)
    ).pipe(
      Effect.mapError(() => refuse(`--id ${id}: ${tenant} has no such key`)),
      Effect.provide(keysOf(facts))
    )
    yield* Console.log(`revoked ${id}; a running service notices within a minute`)
  })
).pipe(Command.withDescription("Revoke an API key"))

const keyCommands = [keyList, keyRevoke] as const

const key = Command.make("key").pipe(
  Command.withDescription("API keys of tenants"),
  Command.withSubcommands(keyCommands)
)

const rotateKeys = Command.make("rotate-keys", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const layer = SigningKeys.layer.pipe(Layer.provide(Secret.layer(facts)), Layer.provideMerge(database(facts)))
    const { kid } = yield* Effect.flatMap(SigningKeys, (keys) => keys.rotate).pipe(Effect.provide(layer))
    yield* Console.log(`${kid} signs from now on; a running service takes it over within an hour, and signs nobody out`)
  })
).pipe(Command.withDescription("Make a new key for access tokens; serve does so by itself every 30 days"))

const verifyCommand = Command.make("verify", { json }, ({ json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const findings = yield* Effect.provide(Backup.check, Sql.layer(facts.database).pipe(Layer.provide(present(facts))))
    yield* json
      ? printed({ database: facts.database, whole: findings.length === 0, findings })
      : Effect.forEach(findings, ({ check, message }) => Console.log(`${check}: ${message}`), { discard: true })
    if (findings.length > 0)
      return yield* refuse(`${findings.length} findings: the books of ${facts.database} are not right`)
    if (!json) yield* Console.log(`${facts.database}: every invariant of the books holds`)
  })
).pipe(Command.withDescription("Check every invariant of the books on the live database, and name what is off"))

const migrate = Command.make("migrate", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    yield* DataFolder.make(facts)
    const found = yield* Opening.look(facts.database, { writing: true })
    yield* DataFolder.keepPrivate(facts)
    const applied = yield* upgraded(facts, found ?? 0)
    yield* Console.log(
      applied.length === 0
        ? `${facts.database} is up to date`
        : `${facts.database}: applied ${applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`).join(", ")}`
    )
  }).pipe(Effect.scoped)
).pipe(Command.withDescription("Bring the database up to date without serving it; serve does so by itself"))

const backupCommand = Command.make(
  "backup",
  { to: Options.text("to").pipe(Options.withDescription("the file to write, which must not be there yet")) },
  ({ to }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      yield* DataFolder.appliedMigration(facts)
      yield* Backup.backup(facts.database, to)
      yield* Console.log(
        `${facts.database} was copied to ${to}. Keys and tokens in it are worth nothing without the deployment's secret: ` +
          (facts.secret === undefined ? `keep ${facts.data_dir}/secret with it.` : "keep TOLLGATE_SECRET too.")
      )
    })
).pipe(Command.withDescription("Copy the database while it is served"))

const restoreCommand = Command.make(
  "restore",
  { from: Options.text("from").pipe(Options.withDescription("a file that backup wrote")) },
  ({ from }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      yield* DataFolder.make(facts)
      yield* ServiceLock.lock(facts.database)
      const kept = yield* Backup.restore(from, facts.database, yield* Clock.currentTimeMillis)
      yield* DataFolder.keepPrivate(facts)
      yield* Console.log(
        `${facts.database} is now what ${from} was` + (kept === undefined ? "" : `; what it was lies at ${kept}`)
      )
    }).pipe(Effect.scoped)
).pipe(Command.withDescription("Put a backup in the place of the database, while nothing serves it"))

const reseal = Command.make(
  "reseal",
  {
    confirm: Options.boolean("confirm").pipe(
      Options.withDescription("do it; without this flag, say what would be done")
    )
  },
  ({ confirm }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      yield* DataFolder.appliedMigration(facts)
      yield* DataFolder.keepPrivate(facts)
      yield* ServiceLock.lock(facts.database)
      yield* Sql.migrateFile(facts.database)
      const { fits, lines } = yield* Effect.all({ fits: Secret.fits(facts), lines: Reseal.plan }).pipe(
        Effect.provide(Sql.layer(facts.database))
      )
      if (fits) {
        return yield* refuse(
          `the secret fits ${facts.database}: nothing is lost. To go on under another one all the same, move ` +
            `${facts.data_dir}/secret away, or set another TOLLGATE_SECRET`
        )
      }
      const stays = "Balances, ledgers, usage, transfers, organisations and clients stay."
      const told = lines.map((line) => `  ${line}`)
      if (!confirm) {
        yield* Console.log([`${stays} Under another secret:`, ...told].join("\n"))
        return yield* refuse("nothing was done; add --confirm to do it")
      }
      const snapshot = `${facts.database}.before-reseal-${yield* Clock.currentTimeMillis}`
      yield* Backup.backup(facts.database, snapshot)
      yield* Effect.provide(Reseal.run, Database.layer(facts.database))
      const keys = SigningKeys.layer.pipe(
        Layer.provide(Secret.layer(facts)),
        Layer.provide(Database.layer(facts.database))
      )
      yield* Effect.asVoid(Effect.provide(SigningKeys, keys))
      const now = facts.secret === undefined ? `the secret in ${facts.data_dir}/secret: back it up` : "TOLLGATE_SECRET"
      yield* Console.log(
        [`${facts.database} goes on under ${now}. ${stays}`, ...told, `What it was lies at ${snapshot}`].join("\n")
      )
    }).pipe(Effect.scoped)
).pipe(
  Command.withDescription("Go on without the deployment's lost secret: keeps the books, starts keys and sign-ins over")
)

const health = Command.make("health", {}, () =>
  Effect.gen(function* () {
    const { host, port } = yield* fromEnvironment
    const url = `http://${hostOf(anyAddress[host] ?? host)}:${port}/readyz`
    const status = yield* Effect.tryPromise({
      try: async (signal) => (await fetch(url, { signal })).status,
      catch: () => refuse(`nothing answers at ${url}`)
    }).pipe(Effect.timeoutFail({ duration: "5 seconds", onTimeout: () => refuse(`${url} does not answer`) }))
    if (status !== 200) return yield* refuse(`${url} answers ${status}`)
    yield* Console.log(`${url} answers 200`)
  })
).pipe(Command.withDescription("Ask the service at HOST and PORT whether it is ready; exits with 1 if it is not"))

/** Where one listens everywhere, it is asked here. */
const anyAddress: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "::1" }

const commands = [
  serveCommand,
  grant,
  purchase,
  owed,
  tenantsCommand,
  client,
  key,
  rotateKeys,
  verifyCommand,
  backupCommand,
  restoreCommand,
  reseal,
  migrate,
  health
] as const

const tollgate = Command.make("tollgate").pipe(
  Command.withDescription("Metered access to AI models: who is calling, whether they can pay, what the call cost"),
  Command.withSubcommands(commands)
)

const namesOf = (
  some: ReadonlyArray<{ readonly descriptor: CommandDescriptor.Command<unknown> }>,
  below: CommandLine.Commands = {}
): CommandLine.Commands =>
  Object.fromEntries(
    some.flatMap(({ descriptor }) =>
      [...CommandDescriptor.getNames(descriptor)].map((name) => [name, below[name] ?? {}])
    )
  )

const allNames = namesOf(commands, { client: namesOf(clientCommands), key: namesOf(keyCommands) })

/** What is said below every help. */
const environmentHelp = HelpDoc.blocks([
  HelpDoc.h1("ENVIRONMENT"),
  HelpDoc.p(
    CommandLine.table(
      variables.map(([name, preset, meaning]) => [name, preset === "" ? meaning : `${meaning} (${preset})`])
    )
  ),
  HelpDoc.p("tollgate COMMAND --help says what a command takes.")
])

const cli = Command.run(tollgate, { name: "Tollgate", version, footer: environmentHelp })

/**
 * Runs the command line. What the operator can mend is said in a line or two on stderr, and the exit code is 1. Logs go to stderr;
 * what is printed is plain where nobody sees colors.
 */
export const run = (argv: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const words = argv.slice(2)
    const twice = CommandLine.flags(words).find((flag, i, all) => all.indexOf(flag) !== i && flag !== "--redirect-uri")
    if (twice !== undefined) return yield* refuse(`${twice} is given twice`)
    const { known, name, unknown } = CommandLine.meant(allNames, words)
    if (unknown !== undefined) return yield* refuse(`${name} has no command ${unknown}, it has ${known.join(", ")}`)
    // A command that needs the environment says itself what is wrong with it.
    const facts = Option.getOrUndefined(yield* Effect.option(environment))
    yield* cli(argv).pipe(
      Effect.catchAllCause((cause) => {
        if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
        const failure = Option.getOrUndefined(Cause.failureOption(cause))
        // The command line has said itself what is wrong with it.
        if (ValidationError.isValidationError(failure)) return refuse(`${name} --help says what it takes`)
        return Effect.zipRight(
          Effect.logDebug("the command failed", cause),
          refuse(wordsOf(failure ?? Cause.squash(cause), facts?.database ?? "the database"))
        )
      }),
      Effect.provide(Layer.merge(logging(facts?.log_level ?? LogLevel.Info), CliConfig.layer({ showBuiltIns: false })))
    )
  }).pipe(
    Effect.catchAll(({ message }) => Effect.zipRight(Console.error(`tollgate: ${message}`), Effect.fail("refused"))),
    CommandLine.plainly
  )

/** One sentence for what went wrong: its own, or what the database's error means. (`LOG_LEVEL=debug` shows where it was.) */
const wordsOf = (error: unknown, database: string): string => {
  const code = Opening.faultOf(error)?.code ?? ""
  if (code.startsWith("SQLITE_") && !isWorded(error)) return Opening.wordsOf(database, error)
  return error instanceof Error || isWorded(error) ? error.message : String(error)
}

/** An error that was made for whoever runs the command. */
const isWorded = (error: unknown): error is { readonly message: string } =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag !== "SqlError" && "message" in error
