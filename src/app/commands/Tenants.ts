/** `tollgate tenants`: lists tenants with their owners and balances, and creates tenants. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer, Option } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import { Provisioning } from "../../operations/provisioning/Provisioning.ts"
import { tenantsLike } from "../../people/tenants/Directory.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, oneLine, printed } from "./Options.ts"
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

const nameMax = 100

const tenantsCreate = Command.make(
  "create",
  {
    name: Options.text("name").pipe(Options.withDescription("the tenant's name")),
    owner: Options.text("owner").pipe(
      Options.withDescription("the first owner's email address; the command creates this person if necessary")
    ),
    externalId: externalIdOption,
    ...allowanceOptions,
    json
  },
  ({ allowance, externalId, json, name, owner, period }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const by = yield* commander
      const input = {
        name: yield* oneLine("--name", name),
        owner_email: yield* emailOf(owner, "--owner"),
        allowance: termsOf(yield* givenAmount(allowance, "--allowance"), period)
      }
      if (input.name.length > nameMax) return yield* refuse(`--name: must be at most ${nameMax} characters`)
      const external_id = yield* externalIdOf(externalId)
      const made = yield* Effect.flatMap(Provisioning, ({ tenants }) =>
        external_id === undefined ? tenants.create(by, input) : tenants.put(by, external_id, input)
      ).pipe(Effect.mapError(worded), Effect.provide(provisioningOf(facts)))
      const { balance, id, ...rest } = made
      if (json) return yield* printed({ tenant_id: id, ...rest, balance: toDecimal(balance) })
      yield* Console.log(id)
      yield* Console.error(`${made.created ? "made" : "found"} ${CommandLine.printable(made.name)}`)
    })
).pipe(
  Command.withDescription(
    "Create a tenant with its first owner; without an external id, each run creates another tenant"
  )
)

export const subcommands = [tenantsCreate] as const

export const command = Command.make(
  "tenants",
  {
    search: Options.text("search").pipe(
      Options.withDescription("part of a tenant's id or name, or of an owner's address"),
      Options.withDefault("")
    ),
    limit: Options.integer("limit").pipe(
      Options.withDescription("the maximum number of tenants to show"),
      Options.withDefault(50)
    ),
    json
  },
  ({ json, limit, search }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      if (limit < 1 || limit > 1_000) return yield* refuse("--limit: must be between 1 and 1000")
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
        return yield* Console.log(search === "" ? "there are no tenants yet" : "no tenant matches")
      const rows = found.map(({ balance, created_at, id, name, owner_email, status }) => [
        id,
        `${balance} USD${status === "active" ? "" : ` (${status})`}`,
        created_at.slice(0, 10),
        CommandLine.printable(owner_email ?? "no owner"),
        CommandLine.printable(name)
      ])
      yield* Console.log(CommandLine.table([["TENANT", "BALANCE", "SINCE", "OWNER", "NAME"], ...rows]))
      if (total > found.length)
        yield* Console.log(
          `showing ${found.length} of ${total} tenants; narrow the list with --search or raise --limit (up to 1000)`
        )
    })
).pipe(Command.withDescription("List tenants with their owners and balances"), Command.withSubcommands(subcommands))
