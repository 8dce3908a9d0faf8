/** `tollgate take-back`: takes back a mistaken grant. */
import { Command, Options } from "@effect/cli"
import { SqlClient } from "@effect/sql/SqlClient"
import { Console, Effect, Layer, Option } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { TakenBack } from "../../operations/operator/Act.ts"
import { AuditLog } from "../../operations/operator/AuditLog.ts"
import * as Credits from "../../operations/operator/Credits.ts"
import { operator } from "./Audited.ts"
import { database } from "./Database.ts"
import { amountOf, json, noTenant, oneLine, printed, tenantOption } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const sentenceOf = ({ amount, balance, done, taken, tenant_id }: TakenBack): string => {
  const rest = amount - taken
  return (
    `${done ? "" : "this reference was already recorded: "}took ${toDecimal(taken)} of ${toDecimal(amount)} credits back from ${tenant_id}; ` +
    `its balance is ${toDecimal(balance)}` +
    (rest === 0n ? "" : `. The other ${toDecimal(rest)} credits were spent, reserved by open calls or never granted`)
  )
}

export const command = Command.make(
  "take-back",
  {
    tenant: tenantOption,
    amount: Options.text("amount").pipe(Options.withDescription("in credits (1 credit is 1 USD)")),
    note: Options.text("note").pipe(
      Options.withDescription("the description in the ledger"),
      Options.withDefault("a grant taken back by the operator")
    ),
    reference: Options.text("reference").pipe(
      Options.withDescription(
        "an id that makes the command safe to repeat: a second run with the same id takes back nothing"
      ),
      Options.optional
    ),
    json
  },
  ({ amount, json, note, reference, tenant }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const credit = {
        amount: yield* amountOf(amount),
        description: yield* oneLine("--note", note),
        reference: Option.isSome(reference) ? yield* oneLine("--reference", reference.value) : yield* Ids.make("pay")
      }
      const by = yield* operator
      const taken = yield* Effect.gen(function* () {
        const parts = { sql: yield* SqlClient, ledger: yield* Ledger, log: yield* AuditLog }
        return yield* Credits.takeBack(parts)(by, tenant as TenantId, credit)
      }).pipe(
        Effect.mapError((problem) =>
          refuse(
            problem._tag === "TenantNotFound"
              ? noTenant(tenant)
              : problem._tag === "ReferenceUsed"
                ? `--reference ${credit.reference}: this reference was already used with another tenant or amount`
                : problem.message
          )
        ),
        Effect.provide(Layer.mergeAll(Ledger.layer, AuditLog.layer).pipe(Layer.provideMerge(database(facts))))
      )
      if (!json) return yield* Console.log(sentenceOf(taken))
      const { amount: asked, balance, taken: took, ...rest } = taken
      yield* printed({ ...rest, amount: toDecimal(asked), taken: toDecimal(took), balance: toDecimal(balance) })
    })
).pipe(Command.withDescription("Take back the part of a mistaken grant that is neither spent nor reserved"))
