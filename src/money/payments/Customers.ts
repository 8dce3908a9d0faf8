/**
 * Registers tenants as customers of the payment processor, for checkout pages and saved payment methods.
 *
 * Where the specification is silent:
 * - An account may cause 60 requests per minute to the processor for pages and saved payment methods. Further requests are rejected with 429
 *   `rate_limited`. The processor limits the requests of the whole deployment, and one account must not use all of them.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import type { Actor } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as MinuteLimit from "../../kernel/MinuteLimit.ts"
import { cent } from "../../kernel/Money.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import type { PaymentsContract, ProcessorSilent } from "../../upstream/payments/Payments.ts"
import { creditRule, isCreditAmount } from "./Payment.ts"
import { PaymentsUnconfigured, ProcessorTooOften, ProcessorUnavailable } from "./Problems.ts"
import type { PurchasesContract } from "./Purchases.ts"

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly tenants: TenantsContract
  /** `undefined` if no payment processor is configured. */
  readonly processor: PaymentsContract | undefined
}

const requestsAMinute = 60

export const make = Effect.fnUntraced(function* ({ processor, sql, tenants, writer }: Parts) {
  const port = processor === undefined ? new PaymentsUnconfigured() : Effect.succeed(processor)
  const requests = yield* MinuteLimit.make("processor", requestsAMinute)

  /** Returns the processor for a request by the caller. The request counts against the caller's limit. */
  const portFor = Effect.fnUntraced(function* ({ account_id }: Actor) {
    const payments = yield* port
    const retry_after = yield* requests.take(account_id, yield* Clock.currentTimeMillis)
    return retry_after === undefined ? payments : yield* new ProcessorTooOften({ retry_after })
  })

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
    const payments = yield* portFor(caller)
    const { tenant_id } = caller
    const customer = yield* customerOf(tenant_id)
    return yield* Effect.catchAll(payments.checkout({ customer, tenant_id, cents: Number(amount / cent) }), unavailable)
  })

  const setup: PurchasesContract["setup"] = Effect.fn("Purchases.setup")(function* ({ caller }) {
    yield* tenants.mayManage(caller)
    const payments = yield* portFor(caller)
    const customer = yield* customerOf(caller.tenant_id)
    return yield* Effect.catchAll(payments.setup(customer, caller.tenant_id), unavailable)
  })

  const methods: PurchasesContract["methods"] = Effect.fn("Purchases.methods")(function* ({ caller }) {
    const payments = yield* portFor(caller)
    return yield* Effect.catchAll(payments.methods(yield* customerOf(caller.tenant_id)), unavailable)
  })

  return { port, customerOf, checkout, setup, methods }
})

const unavailable = (silent: ProcessorSilent) =>
  Effect.andThen(
    Effect.annotateLogs(Effect.logWarning("the payment processor did not respond"), "reason", silent.reason),
    new ProcessorUnavailable()
  )
