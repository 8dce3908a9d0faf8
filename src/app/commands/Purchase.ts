/** `tollgate purchase`: records a purchase that was paid outside the service. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer } from "effect"
import type { EnvironmentFacts } from "../Environment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import { PriceList } from "../../books/prices/PriceList.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Payments } from "../../upstream/payments/Payments.ts"
import { audited } from "./Audited.ts"
import { database } from "./Database.ts"
import { amountOf, oneLine, tooLarge } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

/** Provides `Purchases` without a payment processor. A command can use the layer while the service is running. */
export const purchases = (facts: EnvironmentFacts) =>
  Purchases.layer.pipe(
    Layer.provide([Tenants.layer, Ledger.layer]),
    Layer.provide([PriceList.layerNone, Payments.layerNone]),
    Layer.provide(Belonging.layer),
    Layer.provideMerge(database(facts))
  )

export const command = Command.make(
  "purchase",
  {
    tenant: Options.text("tenant").pipe(Options.withDescription("the tenant's id (ten_…)")),
    amount: Options.text("amount").pipe(Options.withDescription("in credits (1 credit is 1 USD)")),
    reference: Options.text("reference").pipe(
      Options.withDescription("the invoice or receipt; each reference is recorded only once")
    )
  },
  ({ amount, reference, tenant }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const nano = yield* amountOf(amount)
      const invoice = yield* oneLine("--reference", reference)
      const details = { amount_usd: nano, reference: invoice }
      const entry = yield* audited({ action: "purchase", tenant_id: tenant, details })
      const booked = yield* Effect.flatMap(Purchases, (rooms) =>
        rooms.bookOffline({ tenant_id: tenant, amount: nano, reference: invoice }, [entry])
      ).pipe(
        Effect.mapError((problem) => refuse(problem._tag === "BalanceTooLarge" ? tooLarge(amount) : problem.message)),
        Effect.provide(purchases(facts))
      )
      if (!booked)
        return yield* refuse(
          `--tenant ${tenant}: there is no such tenant, or --reference ${reference} is already recorded`
        )
      yield* Console.log(`recorded a purchase of ${toDecimal(nano)} credits for ${tenant} (${reference})`)
    })
).pipe(Command.withDescription("Record a purchase that was paid outside the service (source: purchase)"))
