/** `tollgate people import`: creates the people in a CSV file, with their teams, allowances, keys and emails. */
import { Args, Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { closeSync, constants, fchmodSync, fstatSync, openSync, readFileSync, writeSync } from "node:fs"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Terms } from "../../money/allowances/Allowance.ts"
import type { Operator } from "../../operations/operator/Operator.ts"
import { Provisioning } from "../../operations/provisioning/Provisioning.ts"
import * as CommandLine from "./CommandLine.ts"
import * as Csv from "./Csv.ts"
import { json, printed } from "./Options.ts"
import * as PeopleFile from "./PeopleFile.ts"
import { allowanceOptions, emailOf, givenAmount, termsOf, worded } from "./ProvisionOptions.ts"
import { commander, mailingConfig, provisioningOf, put } from "./Provisions.ts"
import { fromEnvironment, refuse } from "./Report.ts"

interface Import {
  readonly by: Operator
  readonly people: ReadonlyArray<PeopleFile.Listed>
  readonly allowance: Nano | undefined
  readonly period: Terms["period"]
  /** The email address of the owner of new teams. */
  readonly owner: string | undefined
  /** The descriptor of the file for new keys. */
  readonly keys: number | undefined
  readonly letters: boolean
}

const keyIdOf = (email: string): string => `people import ${email}`

/** Creates the teams that do not exist yet. If they need an owner and none was given, fails before it creates any team. */
const teamsOf = Effect.fnUntraced(function* ({ by, owner, people }: Import) {
  const { tenants } = yield* Provisioning
  const named = [...new Set(people.flatMap(({ team }) => team ?? []))]
  const isMissing = (name: string) =>
    tenants.find(name).pipe(
      Effect.as(false),
      Effect.catchTag("ExternalIdNotFound", () => Effect.succeed(true))
    )
  const missing = yield* Effect.filter(named, isMissing)
  if (missing.length > 0 && owner === undefined)
    return yield* refuse(
      `--owner: required for new teams (${CommandLine.printable(missing.join(", "))}); pass the address of the person who will own them`
    )
  for (const name of missing) yield* tenants.put(by, name, { name, owner_email: owner! })
  return missing.length
})

/** Creates a person's key and returns its line for the key file, or `undefined` if an earlier import created the key. */
const keyLine = Effect.fnUntraced(function* (by: Operator, name: string, email: string, tenant_id: TenantId) {
  const service = yield* Provisioning
  const { api_key } = yield* service.keys.put(by, keyIdOf(email), { tenant_id, name: "import" })
  return api_key === undefined ? undefined : Csv.line([email, name, tenant_id, api_key])
})

/** Creates a person with their team, email and key, and returns which of them are new. */
const importOne = Effect.fnUntraced(function* (asked: Import, listed: PeopleFile.Listed) {
  const service = yield* Provisioning
  const { allowance_usd, email, external_id, name, team } = listed
  const allowance = termsOf(allowance_usd ?? asked.allowance, asked.period)
  const person = yield* put(service, asked.by, external_id, { email, name, allowance, team_external_id: team })
  const lettered = asked.letters && (yield* service.letters.welcome(asked.by, person))
  const { keys } = asked
  const line = keys === undefined ? undefined : yield* keyLine(asked.by, name, email, person.home_tenant_id)
  if (keys !== undefined && line !== undefined) yield* Effect.sync(() => writeSync(keys, line))
  return { made: person.created, keyed: line !== undefined, lettered }
})

/** Creates people one at a time. Writes each key to the file before creating the next person, because no later import could show that key. */
const importAll = Effect.fnUntraced(function* (asked: Import) {
  const teams = yield* teamsOf(asked)
  const done = yield* Effect.forEach(asked.people, (listed) =>
    Effect.mapError(importOne(asked, listed), ({ message }) =>
      refuse(
        `line ${listed.line}: ${message}. The lines above it were imported; correct this line and import the file again`
      )
    )
  )
  const count = (is: (one: (typeof done)[number]) => boolean) => done.filter(is).length
  return {
    people: done.length,
    made: count(({ made }) => made),
    teams,
    keys: count(({ keyed }) => keyed),
    letters: count(({ lettered }) => lettered)
  }
})

/** Opens a file that only its owner can read, and appends to it. Keys of earlier imports remain in the file. */
const keysFile = (path: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants
        const file = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
        fchmodSync(file, 0o600)
        if (fstatSync(file).size === 0) writeSync(file, Csv.line(["email", "name", "tenant_id", "api_key"]))
        return file
      },
      catch: () =>
        refuse(`--keys ${path}: cannot write to this file; it must belong to you and must not be a symbolic link`)
    }),
    (file) => Effect.sync(() => closeSync(file))
  )

const options = {
  file: Args.text({ name: "FILE.csv" }).pipe(
    Args.withDescription("a CSV file with column names on the first line and one person on each line after it")
  ),
  ...allowanceOptions,
  keys: Options.text("keys").pipe(
    Options.withDescription("create a key for each person, and write the new keys to this file"),
    Options.optional
  ),
  letters: Options.boolean("letters").pipe(
    Options.withDescription("email a single-use link to the console to each new person (requires --config)")
  ),
  owner: Options.text("owner").pipe(
    Options.withDescription("the email address of the owner of new teams"),
    Options.optional
  ),
  config: Options.text("config").pipe(
    Options.withDescription("the service's configuration file, which sets the mail server and public_url"),
    Options.optional
  ),
  json
}

const configOf = (letters: boolean, config: Option.Option<string>) =>
  !letters
    ? Effect.succeed(undefined)
    : Option.isNone(config)
      ? refuse("--letters: requires --config, the service's configuration file with its mail server")
      : mailingConfig(config.value, "--letters")

export const peopleImport = Command.make("import", options, ({ config, file, json, letters, ...asked }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const by = yield* commander
    const text = yield* Effect.try({
      try: () => readFileSync(file, "utf8"),
      catch: () => refuse(`${file}: cannot be read`)
    })
    const people = yield* PeopleFile.read(file, text)
    const allowance = yield* givenAmount(asked.allowance, "--allowance")
    const owner = Option.isNone(asked.owner) ? undefined : yield* emailOf(asked.owner.value, "--owner")
    const mailing = yield* configOf(letters, config)
    const keys = Option.isNone(asked.keys) ? undefined : yield* keysFile(asked.keys.value)
    const { period } = asked
    const done = yield* importAll({ by, people, allowance, period, owner, keys, letters }).pipe(
      Effect.mapError(worded),
      Effect.provide(provisioningOf(facts, mailing))
    )
    if (json) return yield* printed(done)
    const counts = [`${done.made} created`, `${done.people - done.made} already known`, `${done.keys} new keys`]
    if (done.teams > 0) counts.push(`${done.teams} new teams`)
    if (letters) counts.push(`${done.letters} emails queued (the running service sends them within a minute)`)
    yield* Console.log(`${done.people} people: ${counts.join(", ")}`)
  }).pipe(Effect.scoped)
).pipe(
  Command.withDescription(
    "Create the people in a CSV file (columns email,name and optionally external_id,team,allowance_usd)"
  )
)
