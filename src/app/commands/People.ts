/** `tollgate people`: makes, lists and suspends people, and imports a class from a file. */
import { Args, Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { closeSync, constants, fchmodSync, fstatSync, openSync, readFileSync, writeSync } from "node:fs"
import { toIso } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Terms } from "../../money/allowances/Allowance.ts"
import type { Operator } from "../../operations/operator/Operator.ts"
import { Provisioning } from "../../operations/provisioning/Provisioning.ts"
import type { ProvisioningContract } from "../../operations/provisioning/Provisioning.ts"
import type { ProvisionedPerson } from "../../operations/provisioning/Provision.ts"
import * as CommandLine from "./CommandLine.ts"
import * as Csv from "./Csv.ts"
import { noticedBy } from "./Database.ts"
import { json, oneLine, printed } from "./Options.ts"
import * as PeopleFile from "./PeopleFile.ts"
import {
  allowanceOptions,
  emailOf,
  externalIdOf,
  externalIdOption,
  givenAmount,
  termsOf,
  worded
} from "./ProvisionOptions.ts"
import { commander, provisioningOf } from "./Provisions.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const emailOption = Options.text("email").pipe(Options.withDescription("the person's address"))

const shown = ({ created, email, external_id, home_tenant_id, id, name, status }: ProvisionedPerson) => ({
  account_id: id,
  tenant_id: home_tenant_id,
  email,
  name,
  external_id,
  status,
  created
})

/** Makes or changes a person, by external id if there is one. */
const put = (
  { people }: ProvisioningContract,
  by: Operator,
  external_id: string | undefined,
  wanted: Parameters<ProvisioningContract["people"]["create"]>[1]
) => (external_id === undefined ? people.create(by, wanted) : people.put(by, external_id, wanted))

const peopleCreate = Command.make(
  "create",
  {
    email: emailOption,
    name: Options.text("name").pipe(Options.withDescription("the person's name"), Options.optional),
    externalId: externalIdOption,
    ...allowanceOptions,
    json
  },
  ({ allowance, email, externalId, json, name, period }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const by = yield* commander
      const wanted = {
        email: yield* emailOf(email),
        name: Option.isNone(name) ? undefined : yield* oneLine("--name", name.value),
        allowance: termsOf(yield* givenAmount(allowance, "--allowance"), period)
      }
      const external_id = yield* externalIdOf(externalId)
      const made = yield* Effect.flatMap(Provisioning, (service) => put(service, by, external_id, wanted)).pipe(
        Effect.mapError(worded),
        Effect.provide(provisioningOf(facts))
      )
      if (json) return yield* printed(shown(made))
      yield* Console.log(`${made.id} ${made.home_tenant_id}`)
      yield* Console.error(`${made.created ? "made" : "found"} ${made.email}`)
    })
).pipe(Command.withDescription("Make a person with a home tenant; an address that has an account makes nothing"))

const peopleList = Command.make(
  "list",
  {
    limit: Options.integer("limit").pipe(Options.withDescription("the most people to show"), Options.withDefault(50)),
    before: Options.text("before").pipe(
      Options.withDescription("continue after this account id (the last one shown)"),
      Options.optional
    ),
    json
  },
  ({ before, json, limit }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      if (limit < 1 || limit > 1_000) return yield* refuse("--limit: from 1 to 1000")
      const found = yield* Effect.flatMap(Provisioning, ({ people }) =>
        people.list(Option.getOrUndefined(before), limit)
      ).pipe(Effect.provide(provisioningOf(facts)))
      const people = found.map(({ created_at, suspended_at, ...person }) => ({
        ...person,
        created_at: toIso(created_at),
        status: suspended_at === null ? "active" : "suspended"
      }))
      if (json) return yield* printed({ people })
      if (people.length === 0) return yield* Console.log("there are no people")
      const rows = people.map((person) => [
        person.id,
        person.status,
        person.created_at.slice(0, 10),
        CommandLine.printable(person.email),
        CommandLine.printable(person.name)
      ])
      yield* Console.log(CommandLine.table([["ACCOUNT", "STATUS", "SINCE", "ADDRESS", "NAME"], ...rows]))
    })
).pipe(Command.withDescription("List people, newest first"))

const peopleSuspend = Command.make("suspend", { email: emailOption }, ({ email }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const by = yield* commander
    const address = yield* emailOf(email)
    const person = yield* Effect.gen(function* () {
      const { people } = yield* Provisioning
      if (!(yield* people.isKnown(address))) return yield* refuse(`--email ${address}: no person has this address`)
      return yield* people.create(by, { email: address, suspended: true })
    }).pipe(Effect.mapError(worded), Effect.provide(provisioningOf(facts)))
    yield* Console.log(`${person.id} is suspended, and their sign-ins have ended; ${noticedBy(facts)}`)
  })
).pipe(Command.withDescription("Suspend a person: their sign-ins end, and their keys are refused"))

interface Import {
  readonly by: Operator
  readonly people: ReadonlyArray<PeopleFile.Listed>
  readonly allowance: Nano | undefined
  readonly period: Terms["period"]
  /** The file for keys, open for writing. */
  readonly keys: number | undefined
}

/** The external id of the key that an import makes for a person. */
const keyIdOf = (email: string): string => `people import ${email}`

/** Makes the people one by one. A key is in the file before the next person is made, since no later import can show it. */
const importAll = Effect.fnUntraced(function* ({ allowance, by, keys, people, period }: Import) {
  const service = yield* Provisioning
  let [made, keyed] = [0, 0]
  for (const { allowance_usd, email, external_id, name } of people) {
    const terms = termsOf(allowance_usd ?? allowance, period)
    const person = yield* put(service, by, external_id, { email, name, allowance: terms })
    if (person.created) made += 1
    if (keys === undefined) continue
    const wanted = { tenant_id: person.home_tenant_id, name: "import" }
    const key = yield* service.keys.put(by, keyIdOf(email), wanted)
    if (key.api_key === undefined) continue
    keyed += 1
    const line = Csv.line([email, name, person.home_tenant_id, key.api_key])
    yield* Effect.sync(() => writeSync(keys, line))
  }
  return { made, keyed }
})

/** Opens a file that only its owner reads. What an earlier import wrote stays in it. */
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
      catch: () => refuse(`--keys ${path}: cannot be written (it must be a file of yours, and no link)`)
    }),
    (file) => Effect.sync(() => closeSync(file))
  )

const peopleImport = Command.make(
  "import",
  {
    file: Args.text({ name: "FILE.csv" }),
    ...allowanceOptions,
    keys: Options.text("keys").pipe(
      Options.withDescription("make each person a key, and write the new keys to this file"),
      Options.optional
    ),
    json
  },
  ({ allowance, file, json, keys, period }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const by = yield* commander
      const text = yield* Effect.try({
        try: () => readFileSync(file, "utf8"),
        catch: () => refuse(`${file}: cannot be read`)
      })
      const people = yield* PeopleFile.read(file, text)
      const amount = yield* givenAmount(allowance, "--allowance")
      const out = Option.isNone(keys) ? undefined : yield* keysFile(keys.value)
      const { keyed, made } = yield* importAll({ by, people, allowance: amount, period, keys: out }).pipe(
        Effect.mapError(worded),
        Effect.provide(provisioningOf(facts))
      )
      if (json) return yield* printed({ people: people.length, made, keys: keyed })
      yield* Console.log(`${people.length} people: ${made} made, ${people.length - made} known, ${keyed} new keys`)
    }).pipe(Effect.scoped)
).pipe(Command.withDescription("Make the people of a CSV file (email,name and optional external_id,allowance_usd)"))

export const subcommands = [peopleCreate, peopleList, peopleSuspend, peopleImport] as const

export const command = Command.make("people").pipe(
  Command.withDescription("People: make, list, suspend, import"),
  Command.withSubcommands(subcommands)
)
