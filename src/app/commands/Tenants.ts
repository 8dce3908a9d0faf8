/** `tollgate tenants`: lists tenants with owner and balance. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer, Option } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import { tenantsLike } from "../../people/tenants/Directory.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

export const command = Command.make(
  "tenants",
  {
    search: Options.text("search").pipe(
      Options.withDescription("part of an id, a name or an owner's address"),
      Options.withDefault("")
    ),
    limit: Options.integer("limit").pipe(Options.withDescription("the most tenants to show"), Options.withDefault(50)),
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
        yield* Console.log(`${found.length} of ${total}: narrow with --search, or raise --limit (up to 1000)`)
    })
).pipe(Command.withDescription("List tenants with owner and balance"))
