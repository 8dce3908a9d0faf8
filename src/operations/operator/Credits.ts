/** Books the operator's grants, take-backs, and purchases paid outside the service. Each reference is booked once. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Option } from "effect"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import { balanceOf, statement } from "../../books/ledger/rules/Transaction.ts"
import type { Account } from "../../books/ledger/rules/Transaction.ts"
import { amountUnder } from "../../books/ledger/rows/EntriesBySource.ts"
import type { PurchasesContract } from "../../money/payments/Purchases.ts"
import type { NewCredit } from "./Act.ts"
import type { OperatorActsContract } from "./Acts.ts"
import * as Audit from "./Audit.ts"
import type { AuditLogContract } from "./AuditLog.ts"
import type { Operator } from "./Operator.ts"
import { BalanceBeyondBooks, ReferenceUsed, TenantNotFound } from "./Problems.ts"

interface Parts {
  readonly sql: SqlClient
  readonly ledger: LedgerContract
  readonly purchases: PurchasesContract
  readonly log: AuditLogContract
}

/** The booking of an earlier request with this reference. */
interface Booked {
  readonly tenant_id: TenantId
  readonly amount: bigint
}

export const accountOf = (ledger: LedgerContract, tenant: TenantId): Effect.Effect<Account, TenantNotFound> =>
  Effect.flatMap(
    ledger.accountOfTenant(tenant),
    Option.match({ onNone: () => new TenantNotFound({ tenant_id: tenant }), onSome: Effect.succeed })
  )

export const grant = ({ ledger, log, sql }: Parts): OperatorActsContract["grant"] =>
  Effect.fn("OperatorActs.grant")(function* (by, tenant_id, credit) {
    const { amount, description = "granted by the operator", reference } = credit
    const now = yield* Clock.currentTimeMillis
    const act = actOf("grant", tenant_id, credit)
    const once = statement(
      sql`INSERT INTO tollgate_operator_grants (reference, tenant_id, amount, created_at)
        VALUES (${reference}, ${tenant_id}, ${amount}, ${now}) ON CONFLICT DO NOTHING RETURNING reference`,
      1
    )
    const posting = {
      account: billingAccountOf(tenant_id),
      amount,
      source: "admin",
      reference: `grant_${reference}`,
      description
    } as const
    return yield* ledger.credit(posting, [once, Audit.entry(by, act, now)]).pipe(
      Effect.map(({ balance }) => ({ tenant_id, amount, reference, balance, done: true })),
      Effect.catchTags({
        AccountMissing: () => new TenantNotFound({ tenant_id }),
        BalanceTooLarge: () => refuse(log, by, act, new BalanceBeyondBooks()),
        Conflict: () =>
          Effect.flatMap(grantOf(sql, reference), (booked) =>
            answerAgain({ ledger, log }, by, tenant_id, credit, act, booked)
          )
      })
    )
  })

/** Returns the reference of a take-back in the table of grants. A grant's reference contains no newline, so the two cannot collide. */
const bookedAs = (reference: string): string => `take-back\n${reference}`
const entryOf = (reference: string): string => `take_back_${reference}`

export const takeBack = ({ ledger, log, sql }: Omit<Parts, "purchases">): OperatorActsContract["takeBack"] =>
  Effect.fn("OperatorActs.takeBack")(function* (by, tenant_id, credit) {
    const { amount, description = "a grant taken back by the operator", reference } = credit
    const now = yield* Clock.currentTimeMillis
    const act = actOf("grant.take_back", tenant_id, credit)
    const once = statement(
      sql`INSERT INTO tollgate_operator_grants (reference, tenant_id, amount, created_at)
        VALUES (${bookedAs(reference)}, ${tenant_id}, ${amount}, ${now}) ON CONFLICT DO NOTHING RETURNING reference`,
      1
    )
    const account = billingAccountOf(tenant_id)
    const posting = { account, amount, source: "admin", reference: entryOf(reference), description } as const
    return yield* ledger.takeBack(posting, [once, Audit.entry(by, act, now)]).pipe(
      Effect.map(({ balance, taken }) => ({ tenant_id, amount, reference, balance, taken, done: true })),
      Effect.catchTags({
        AccountMissing: () => new TenantNotFound({ tenant_id }),
        Conflict: () =>
          Effect.flatMap(grantOf(sql, bookedAs(reference)), (booked) =>
            Effect.zipWith(
              answerAgain({ ledger, log }, by, tenant_id, credit, act, booked),
              // Without an entry, there was nothing to take.
              amountUnder(sql, account, "admin", entryOf(reference)),
              (answer, taken = 0n) => ({ ...answer, taken })
            )
          )
      })
    )
  })

export const purchase = ({ ledger, log, purchases }: Parts): OperatorActsContract["purchase"] =>
  Effect.fn("OperatorActs.purchase")(function* (by, tenant_id, credit) {
    const { amount, description, reference } = credit
    const now = yield* Clock.currentTimeMillis
    const act = actOf("purchase", tenant_id, credit)
    yield* accountOf(ledger, tenant_id)
    const isNew = yield* purchases
      .bookOffline({ tenant_id, amount, reference, description }, [Audit.entry(by, act, now)])
      .pipe(Effect.catchTag("BalanceTooLarge", () => refuse(log, by, act, new BalanceBeyondBooks())))
    if (isNew) {
      return { tenant_id, amount, reference, balance: balanceOf(yield* accountOf(ledger, tenant_id)), done: true }
    }
    const booked = (yield* purchases.payments([reference])).find(({ kind }) => kind === "offline")
    return yield* answerAgain({ ledger, log }, by, tenant_id, credit, act, booked)
  })

const actOf = (
  action: string,
  tenant_id: TenantId,
  { amount, description, reason, reference }: NewCredit
): Audit.Act => ({
  action,
  tenant_id,
  subject: reference,
  details: { amount_usd: amount, description, reason }
})

const refuse = <E>(
  log: AuditLogContract,
  by: Operator,
  act: Audit.Act,
  problem: E & { readonly code: string | undefined }
) => Effect.zipRight(log.refused(by, act, problem.code ?? ""), Effect.fail(problem))

const grantOf = (sql: SqlClient, reference: string): Effect.Effect<Booked | undefined> =>
  Effect.map(
    Effect.orDie(
      sql<{ tenant_id: TenantId; amount: string }>`SELECT tenant_id, CAST(amount AS TEXT) AS amount
        FROM tollgate_operator_grants WHERE reference = ${reference}`
    ),
    ([row]) => row && { tenant_id: row.tenant_id, amount: fromRow(row.amount) }
  )

/** Handles a reference that is already recorded: returns `done: false` for the same tenant and amount, and otherwise refuses the request. */
const answerAgain = Effect.fnUntraced(function* (
  { ledger, log }: Pick<Parts, "ledger" | "log">,
  by: Operator,
  tenant_id: TenantId,
  { amount, reference }: NewCredit,
  act: Audit.Act,
  booked: Booked | undefined
) {
  const account = yield* accountOf(ledger, tenant_id)
  if (booked === undefined || booked.tenant_id !== tenant_id || booked.amount !== amount) {
    return yield* refuse(log, by, act, new ReferenceUsed({ reference }))
  }
  return { tenant_id, amount, reference, balance: balanceOf(account), done: false }
})
