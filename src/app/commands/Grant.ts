/** `tollgate grant`: grants credit to a tenant. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer, Option } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { balanceOf } from "../../books/ledger/rules/Transaction.ts"
import { audited } from "./Audited.ts"
import { database } from "./Database.ts"
import { amountOf, noTenant, oneLine, tooLarge } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

export const command = Command.make(
  "grant",
  {
    tenant: Options.text("tenant").pipe(Options.withDescription("the tenant's id (ten_…)")),
    amount: Options.text("amount").pipe(
      Options.withDescription("in credits (1 credit is 1 USD), at least 0.000000001")
    ),
    note: Options.text("note").pipe(
      Options.withDescription("the description in the ledger"),
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
        const details = { amount_usd: nano, reference, description }
        const entry = yield* audited({ action: "grant", tenant_id: tenant, details })
        yield* ledger
          .credit({ account, amount: nano, source: "admin", reference, description }, [entry])
          .pipe(Effect.catchTag("Conflict", Effect.die))
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
          (status === "active" ? "" : `. The tenant is ${status} and cannot spend until it is active`)
      )
    })
).pipe(Command.withDescription("Give a tenant credit that it can spend but not transfer (source: admin)"))
