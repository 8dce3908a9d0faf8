/** Tenants as customers of the payment processor: they pay there, and store payment methods. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { cent } from "../../kernel/Money.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { WriterContract } from "../../books/ledger/Writer.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import type { PaymentsContract, ProcessorSilent } from "../../upstream/payments/Payments.ts"
import { creditRule, isCreditAmount } from "./Payment.ts"
import { PaymentsUnconfigured, ProcessorUnavailable } from "./Problems.ts"
import type { PurchasesContract } from "./Purchases.ts"

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly tenants: TenantsContract
  /** `undefined` where there is none. */
  readonly processor: PaymentsContract | undefined
}

export const make = ({ processor, sql, tenants, writer }: Parts) => {
  const port = processor === undefined ? new PaymentsUnconfigured() : Effect.succeed(processor)

  const customerOf: PurchasesContract["customerOf"] = Effect.fnUntraced(function* (tenant) {
    const payments = yield* port
    const stored = Effect.map(
      Effect.orDie(
        sql<{ customer_id: string }>`SELECT customer_id FROM tollgate_payments_customers WHERE tenant_id = ${tenant}`
      ),
      ([row]) => row?.customer_id
    )
    const known = yield* stored
    if (known !== undefined) return known
    const name = (yield* tenants.nameOf(tenant)) ?? tenant
    const made = yield* Effect.catchAll(payments.customer(tenant, name), unavailable)
    const insert =
      statement(sql`INSERT INTO tollgate_payments_customers (tenant_id, customer_id) VALUES (${tenant}, ${made})
      ON CONFLICT DO NOTHING`)
    yield* Statements.write(writer, insert)
    return (yield* stored) ?? made
  })

  const checkout: PurchasesContract["checkout"] = Effect.fn("Purchases.checkout")(function* ({ amount, caller }) {
    yield* tenants.mayManage(caller)
    if (!isCreditAmount(amount)) return yield* InvalidRequest.of("amount_credits", creditRule)
    const payments = yield* port
    const { tenant_id } = caller
    const customer = yield* customerOf(tenant_id)
    return yield* Effect.catchAll(payments.checkout({ customer, tenant_id, cents: Number(amount / cent) }), unavailable)
  })

  const setup: PurchasesContract["setup"] = Effect.fn("Purchases.setup")(function* ({ caller }) {
    yield* tenants.mayManage(caller)
    const payments = yield* port
    const customer = yield* customerOf(caller.tenant_id)
    return yield* Effect.catchAll(payments.setup(customer, caller.tenant_id), unavailable)
  })

  const methods: PurchasesContract["methods"] = Effect.fn("Purchases.methods")(function* (tenant) {
    const payments = yield* port
    return yield* Effect.catchAll(payments.methods(yield* customerOf(tenant)), unavailable)
  })

  return { port, customerOf, checkout, setup, methods }
}

const unavailable = (silent: ProcessorSilent) =>
  Effect.andThen(
    Effect.annotateLogs(Effect.logWarning("the payment processor does not answer"), "reason", silent.reason),
    new ProcessorUnavailable()
  )
