/** `tollgate owed`: lists refunds and disputes that balances could not cover. */
import { Command } from "@effect/cli"
import { Console, Effect } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import { json, printed } from "./Options.ts"
import { fromEnvironment } from "./Report.ts"
import { purchases } from "./Purchase.ts"

export const command = Command.make("owed", { json }, ({ json }) =>
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
          `${payment_id} was refunded or disputed (events: ${movements}, the first on ${toIso(since)}), but its purchase was never recorded here`
        ),
      { discard: true }
    )
    if (found.length === 0) return yield* Console.log("no tenant owes anything")
    yield* Effect.forEach(
      found,
      ({ owed, payment_id, tenant_id }) =>
        Console.log(`${tenant_id} owes ${toDecimal(owed)} USD for ${payment_id}, which was refunded or disputed`),
      { discard: true }
    )
  })
).pipe(Command.withDescription("List refunds and disputes that balances could not cover"))
