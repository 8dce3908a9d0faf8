/** The commands of an operator: serve, and what is done beside it. */
import { Command, Options } from "@effect/cli"
import * as ValidationError from "@effect/cli/ValidationError"
import { Cause, Clock, Console, Effect, Layer, Logger, Option } from "effect"
import type { Either } from "effect"
import { Clients, ConfiguredClients, isRedirectAddress } from "./auth/Clients.ts"
import { SigningKeys } from "./auth/SigningKeys.ts"
import { billingAccountOf } from "./kernel/Ids.ts"
import * as Ids from "./kernel/Ids.ts"
import type { ApplicationId, TenantId } from "./kernel/Ids.ts"
import { fromDecimal, toDecimal } from "./kernel/Money.ts"
import { verify } from "./ledger/Invariants.ts"
import { Writer } from "./ledger/Writer.ts"
import { ConfigProblem, describe, environment, readFile } from "./Config.ts"
import type { EnvironmentFacts } from "./Config.ts"
import * as Deployment from "./Deployment.ts"
import { Purchases } from "./payments/Purchases.ts"
import { serve } from "./Serve.ts"
import { Applications } from "./tenants/Applications.ts"
import { Belonging } from "./tenants/Belonging.ts"
import { Tenants } from "./tenants/Tenants.ts"
import * as Backup from "./sql/Backup.ts"
import * as Serving from "./sql/Serving.ts"
import * as Sql from "./sql/Sql.ts"
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
const upgraded = (facts: EnvironmentFacts) =>
  Effect.gen(function* () {
    yield* Deployment.folder(facts)
    if (!(yield* Sql.isCurrent(facts.database))) {
      yield* Effect.mapError(Serving.lock(facts.database), () =>
        refuse(
          `${facts.database} must be brought up to date first, and an earlier version is serving it: stop that, or use its own command`
        )
      )
    }
    return yield* Sql.migrateFile(facts.database)
  }).pipe(Effect.scoped)

/** The database, for a command beside a running service or without one. */
const database = (facts: EnvironmentFacts) =>
  Deployment.database(facts).pipe(Layer.provide(Layer.effectDiscard(upgraded(facts))))

const logging = ({ log_level }: EnvironmentFacts) =>
  Layer.merge(
    Logger.replace(
      Logger.defaultLogger,
      Logger.withConsoleError(process.stderr.isTTY ? Logger.logfmtLogger : Logger.jsonLogger)
    ),
    Logger.minimumLogLevel(log_level)
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
    return yield* Effect.provide(serve(facts, file), logging(facts))
  })
).pipe(Command.withDescription("Run the service until it is told to stop (SIGTERM lets what is under way finish)"))

const either = <A>(value: Either.Either<A, ConfigProblem>): Effect.Effect<A, ConfigProblem> => value

// ---- beside a running service ---------------------------------------------------------------------------------------------

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
      const nano = fromDecimal(amount, 9)
      if (nano === undefined || nano <= 0n) return yield* refuse(`--amount ${amount}: a decimal number above zero`)
      const granted = Effect.gen(function* () {
        const writer = yield* Writer
        const reference = yield* Ids.make("pay")
        const posting = {
          _tag: "Credit",
          account: billingAccountOf(tenant),
          amount: nano,
          source: "admin",
          reference,
          description: note
        } as const
        return yield* writer.submit({ postings: [posting], statements: [] })
      })
      const [result] = yield* granted.pipe(
        Effect.mapError((refusal) =>
          refuse(
            refusal._tag === "BooksUnavailable"
              ? refusal.message
              : refusal._tag === "AccountMissing"
                ? `--tenant ${tenant}: there is no such tenant`
                : `--amount ${amount}: the balance would exceed what the books hold`
          )
        ),
        Effect.provide(database(facts))
      )
      if (result?._tag === "Credited") {
        yield* Console.log(
          `granted ${toDecimal(nano)} credits to ${tenant}; its balance is ${toDecimal(result.balance)}`
        )
      }
    })
).pipe(Command.withDescription("Give a tenant credit that it can spend but not send on (source: admin)"))

/** The rooms of money in, without the outside world, beside a running service. */
const purchases = (facts: EnvironmentFacts) =>
  Purchases.layer.pipe(
    Layer.provide(Tenants.layer),
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
      const nano = fromDecimal(amount, 9)
      if (nano === undefined || nano <= 0n) return yield* refuse(`--amount ${amount}: a decimal number above zero`)
      const booked = yield* Effect.flatMap(Purchases, (rooms) => rooms.bookOffline(tenant, nano, reference)).pipe(
        Effect.provide(purchases(facts))
      )
      if (!booked)
        return yield* refuse(`--tenant ${tenant}: no such tenant; or --reference ${reference} was booked before`)
      yield* Console.log(`booked a purchase of ${toDecimal(nano)} credits for ${tenant} (${reference})`)
    })
).pipe(Command.withDescription("Book a purchase that was paid another way (source: purchase)"))

const owed = Command.make("owed", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const found = yield* Effect.flatMap(Purchases, (rooms) => rooms.owed).pipe(Effect.provide(purchases(facts)))
    if (found.length === 0) return yield* Console.log("nobody owes anything")
    yield* Effect.forEach(
      found,
      ({ owed, payment_id, tenant_id }) =>
        Console.log(`${tenant_id} owes ${toDecimal(owed)} USD of ${payment_id}, which was refunded or disputed`),
      { discard: true }
    )
  })
).pipe(Command.withDescription("Show refunds and disputes that balances could not give back"))

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
      if (kind === "oauth" && redirect.length === 0) return yield* refuse("--redirect-uri: an oauth client needs one")
      if (kind !== "oauth" && trusted) return yield* refuse("--trusted: only an oauth client can be")
      const wrong = redirect.find((uri) => !isRedirectAddress(uri))
      if (wrong !== undefined) {
        return yield* refuse(`--redirect-uri ${wrong}: an address without a fragment, no script and no file`)
      }
      const client = yield* Effect.flatMap(Clients, (clients) =>
        clients.create({ kind, name, redirect_uris: redirect, trusted })
      ).pipe(Effect.provide(clientsOf(facts)))
      yield* Console.log(client.client_id)
    })
).pipe(Command.withDescription("Register an application; prints its client id"))

const clientList = Command.make("list", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const found = yield* Effect.flatMap(Clients, (clients) => clients.list).pipe(Effect.provide(clientsOf(facts)))
    yield* Effect.forEach(
      found,
      ({ client_id, kind, name, redirect_uris, trusted }) =>
        Console.log([client_id, trusted === true ? `${kind}, trusted` : kind, name, ...redirect_uris].join("\t")),
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
).pipe(Command.withDescription("End an application; tokens that it has last until they expire"))

const client = Command.make("client").pipe(
  Command.withDescription("Applications that sign people in, or speak for a website"),
  Command.withSubcommands([clientCreate, clientList, clientRevoke])
)

const tenantOption = Options.text("tenant").pipe(Options.withDescription("the tenant's id (ten_…)"))

const keysOf = (facts: EnvironmentFacts) =>
  Applications.layer.pipe(
    Layer.provide(Belonging.layer),
    Layer.provide(Deployment.secret(facts)),
    Layer.provideMerge(database(facts))
  )

const keyList = Command.make("list", { tenant: tenantOption }, ({ tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const { records } = yield* Effect.flatMap(Applications, (keys) =>
      keys.list(tenant as TenantId, { page: 1, per_page: 10_000 })
    ).pipe(Effect.provide(keysOf(facts)))
    yield* Effect.forEach(records, ({ id, key_prefix, name }) => Console.log([id, `${key_prefix}…`, name].join("\t")), {
      discard: true
    })
  })
).pipe(Command.withDescription("List a tenant's API keys"))

const keyRevoke = Command.make("revoke", { tenant: tenantOption, id: Options.text("id") }, ({ id, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    yield* Effect.flatMap(Applications, (keys) => keys.remove(tenant as TenantId, id as ApplicationId)).pipe(
      Effect.mapError(() => refuse(`--id ${id}: ${tenant} has no such key`)),
      Effect.provide(keysOf(facts))
    )
    yield* Console.log(`revoked ${id}; a running service notices within a minute`)
  })
).pipe(Command.withDescription("Revoke an API key"))

const key = Command.make("key").pipe(
  Command.withDescription("API keys of tenants"),
  Command.withSubcommands([keyList, keyRevoke])
)

const rotateKeys = Command.make("rotate-keys", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const layer = SigningKeys.layer.pipe(Layer.provide(Deployment.secret(facts)), Layer.provideMerge(database(facts)))
    const { kid } = yield* Effect.flatMap(SigningKeys, (keys) => keys.rotate).pipe(Effect.provide(layer))
    yield* Console.log(`${kid} signs from now on; a running service takes it over within an hour, and signs nobody out`)
  })
).pipe(Command.withDescription("Make a new key for access tokens; serve does so by itself every 30 days"))

const verifyCommand = Command.make("verify", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    yield* upgraded(facts)
    const findings = yield* Effect.provide(verify, Sql.layer(facts.database))
    if (findings.length === 0) return yield* Console.log(`${facts.database}: every invariant of the books holds`)
    yield* Effect.forEach(findings, ({ check, message }) => Console.log(`${check}: ${message}`), { discard: true })
    return yield* refuse(`${findings.length} findings: the books of ${facts.database} are not right`)
  })
).pipe(Command.withDescription("Check every invariant of the books on the live database, and name what is off"))

const migrate = Command.make("migrate", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const applied = yield* upgraded(facts)
    yield* Console.log(
      applied.length === 0
        ? `${facts.database} is up to date`
        : `${facts.database}: applied ${applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`).join(", ")}`
    )
  })
).pipe(Command.withDescription("Bring the database up to date without serving it; serve does so by itself"))

const backupCommand = Command.make(
  "backup",
  { to: Options.text("to").pipe(Options.withDescription("the file to write, which must not be there yet")) },
  ({ to }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
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
    Effect.scoped(
      Effect.gen(function* () {
        const facts = yield* fromEnvironment
        yield* Deployment.folder(facts)
        yield* Serving.lock(facts.database)
        const kept = yield* Backup.restore(from, facts.database, yield* Clock.currentTimeMillis)
        yield* Console.log(
          `${facts.database} is now what ${from} was` + (kept === undefined ? "" : `; what it was lies at ${kept}`)
        )
      })
    )
).pipe(Command.withDescription("Put a backup in the place of the database, while nothing serves it"))

const tollgate = Command.make("tollgate").pipe(
  Command.withDescription("Metered access to AI models: who is calling, whether they can pay, what the call cost"),
  Command.withSubcommands([
    serveCommand,
    grant,
    purchase,
    owed,
    client,
    key,
    rotateKeys,
    verifyCommand,
    backupCommand,
    restoreCommand,
    migrate
  ])
)

const cli = Command.run(tollgate, { name: "Tollgate", version })

/** Runs the command line. What the operator can mend is said in a line or two on stderr, and the exit code is 1. */
export const run = (argv: ReadonlyArray<string>) =>
  cli(argv).pipe(
    Effect.catchAllCause((cause) => {
      const failure = Option.getOrUndefined(Cause.failureOption(cause))
      if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
      // The command line has said itself what is wrong with it.
      const said = ValidationError.isValidationError(failure) ? Effect.void : Console.error(wordsOf(failure, cause))
      return Effect.andThen(said, Effect.fail("refused"))
    })
  )

const wordsOf = (failure: unknown, cause: Cause.Cause<unknown>): string =>
  typeof failure === "object" && failure !== null && "message" in failure && "_tag" in failure
    ? `tollgate: ${String(failure.message)}`
    : Cause.pretty(cause, { renderErrorCause: true })
