/** `tollgate people`: creates, lists, imports and suspends people. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { Provisioning } from "../../operations/provisioning/Provisioning.ts"
import type { ProvisionedPerson } from "../../operations/provisioning/Provision.ts"
import * as CommandLine from "./CommandLine.ts"
import { noticedBy } from "./Database.ts"
import { json, oneLine, printed } from "./Options.ts"
import { peopleImport } from "./PeopleImport.ts"
import {
  allowanceOptions,
  emailOf,
  externalIdOf,
  externalIdOption,
  givenAmount,
  termsOf,
  worded
} from "./ProvisionOptions.ts"
import { commander, provisioningOf, put } from "./Provisions.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const emailOption = Options.text("email").pipe(Options.withDescription("the person's email address"))

const shown = ({ created, email, external_id, home_tenant_id, id, name, status }: ProvisionedPerson) => ({
  account_id: id,
  tenant_id: home_tenant_id,
  email,
  name,
  external_id,
  status,
  created
})

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
      const input = {
        email: yield* emailOf(email),
        name: Option.isNone(name) ? undefined : yield* oneLine("--name", name.value),
        allowance: termsOf(yield* givenAmount(allowance, "--allowance"), period)
      }
      const external_id = yield* externalIdOf(externalId)
      const made = yield* Effect.flatMap(Provisioning, (service) => put(service, by, external_id, input)).pipe(
        Effect.mapError(worded),
        Effect.provide(provisioningOf(facts))
      )
      if (json) return yield* printed(shown(made))
      yield* Console.log(`${made.id} ${made.home_tenant_id}`)
      yield* Console.error(made.created ? `created ${made.email}` : `${made.email} already exists`)
    })
).pipe(Command.withDescription("Create a person with a home tenant, unless the address already has an account"))

const peopleList = Command.make(
  "list",
  {
    limit: Options.integer("limit").pipe(
      Options.withDescription("the maximum number of people to show"),
      Options.withDefault(50)
    ),
    before: Options.text("before").pipe(
      Options.withDescription("continue after this account id (the last one in the previous list)"),
      Options.optional
    ),
    json
  },
  ({ before, json, limit }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      if (limit < 1 || limit > 1_000) return yield* refuse("--limit: must be between 1 and 1000")
      const found = yield* Effect.flatMap(Provisioning, ({ people }) =>
        people.list(Option.getOrUndefined(before), limit)
      ).pipe(Effect.provide(provisioningOf(facts)))
      const people = found.map(({ created_at, suspended_at, ...person }) => ({
        ...person,
        created_at: toIso(created_at),
        status: suspended_at === null ? "active" : "suspended"
      }))
      if (json) return yield* printed({ people })
      if (people.length === 0) return yield* Console.log("no people found")
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
    yield* Console.log(`suspended ${person.id} and signed them out; ${noticedBy(facts)}`)
  })
).pipe(Command.withDescription("Suspend a person: sign them out and refuse their keys"))

export const subcommands = [peopleCreate, peopleList, peopleSuspend, peopleImport] as const

export const command = Command.make("people").pipe(
  Command.withDescription("Create, list, suspend and import people"),
  Command.withSubcommands(subcommands)
)
