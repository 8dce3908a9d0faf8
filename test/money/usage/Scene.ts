/** Tenants that spend, over a fresh database: what they did goes through the writer, as it does in the service. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Layer, TestClock, Tracer } from "effect"
import * as Ids from "../../../src/kernel/Ids.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { parse } from "../../../src/kernel/Moment.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { Nano } from "../../../src/kernel/Money.ts"
import { offsetEvery } from "../../../src/books/ledger/rows/RowLinks.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { RollupLagMax } from "../../../src/books/ledger/rows/RollupLag.ts"
import type { CallFacts, CallOutcome, CreditSource, Source } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import * as TestDatabase from "../../support/database.ts"

/** The books over a database in memory: each time it is provided, a fresh one. RollupLag of so many records are folded into the rollups. */
export const layerOf = (tailMax: number) =>
  Layer.merge(Ledger.layer, Tenants.layer).pipe(
    Layer.provide(PriceList.layerNone),
    Layer.provideMerge(Belonging.layer),
    Layer.provideMerge(Layer.provide(TestDatabase.writer, Layer.succeed(RollupLagMax, tailMax))),
    Layer.provideMerge(TestDatabase.sql)
  )

export const layer = layerOf(2)

export const acme = "ten_acme" as TenantId
export const other = "ten_other" as TenantId
export const ada = "acc_ada" as AccountId
export const bob = "acc_bob" as AccountId

/** Makes it this instant. */
export const now = (text: string) => TestClock.setTime(parse(text)!)

export const open = (tenant: TenantId) =>
  Effect.flatMap(Writer, ({ submit }) =>
    submit({ postings: [{ _tag: "Open", account: Ids.billingAccountOf(tenant), tenant }], statements: [] })
  )

export const credit = (tenant: TenantId, amount: Nano, source: CreditSource = "purchase", reference = "pay_1") =>
  Effect.flatMap(Writer, ({ submit }) =>
    submit({
      postings: [
        { _tag: "Credit", account: Ids.billingAccountOf(tenant), amount, source, reference, description: source }
      ],
      statements: []
    })
  )

/** A tenant with an account and so much credit. */
export const tenant = (id: TenantId, amount: Nano = 1_000n * usd) => Effect.zipRight(open(id), credit(id, amount))

export interface Call extends Partial<CallOutcome>, Partial<Omit<CallFacts, "provider">> {
  /** The tenant that pays, where another's credential called. */
  readonly payer?: TenantId
}

/** Sets credit aside for a call, and answers its id. */
export const reserve = (call: Call = {}) =>
  Effect.gen(function* () {
    const { submit } = yield* Writer
    const id = Ids.at("call", yield* Clock.currentTimeMillis)
    const tenant_id = call.tenant_id ?? acme
    const payer = call.payer ?? (tenant_id as TenantId)
    const source: Source = {
      billing_account_id: Ids.billingAccountOf(payer),
      tenant_id: payer,
      kind: payer === tenant_id ? "own" : "team",
      why: payer === tenant_id ? "own" : "fall_through"
    }
    const facts: CallFacts = {
      account_id: call.account_id ?? ada,
      tenant_id,
      application_id: call.application_id ?? null,
      usage_type: call.usage_type ?? "inference",
      endpoint: call.endpoint ?? "chat/completions",
      model: call.model ?? "small",
      provider: call.provider ?? "here",
      ...(call.tags !== undefined && { tags: call.tags }),
      ...(call.end_user !== undefined && { end_user: call.end_user }),
      ...(call.run_id !== undefined && { run_id: call.run_id })
    }
    const most = call.cost ?? usd
    yield* submit({
      postings: [{ _tag: "Reserve", call: id, sources: [source], least: 0n, most, run: "run", facts }],
      statements: []
    })
    return id
  })

export const settle = (call: string, outcome: Partial<CallOutcome> = {}) =>
  Effect.flatMap(Writer, ({ submit }) =>
    submit({
      postings: [
        {
          _tag: "Settle",
          call,
          outcome: {
            cost: outcome.cost ?? usd,
            prompt_tokens: outcome.prompt_tokens ?? 10,
            completion_tokens: outcome.completion_tokens ?? 5,
            units: outcome.units ?? 15,
            success: outcome.success ?? true,
            error_type: outcome.error_type ?? null,
            usage_source: outcome.usage_source ?? "provider",
            latency_ms: outcome.latency_ms ?? 100,
            vendor_request: outcome.vendor_request,
            request_hash: outcome.request_hash,
            answer_hash: outcome.answer_hash
          }
        }
      ],
      statements: []
    })
  )

/** A call from its admission to its end, now; answers the id of its usage record. */
export const call = (one: Call = {}) =>
  Effect.gen(function* () {
    const id = yield* reserve(one)
    yield* settle(id, one)
    return Ids.usageOf(id)
  })

/** Links rows that a test wrote by hand, as the writer would have: pointers, heads and offsets. */
export const linkRecords = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`UPDATE tollgate_usage_records SET previous = l.previous
    FROM (SELECT seq, LAG(seq) OVER (PARTITION BY tenant_id ORDER BY seq) AS previous FROM tollgate_usage_records) l
    WHERE l.seq = tollgate_usage_records.seq`
  yield* sql`INSERT INTO tollgate_usage_tenants (id) SELECT DISTINCT tenant_id FROM tollgate_usage_records WHERE true ON CONFLICT DO NOTHING`
  yield* sql`DELETE FROM tollgate_usage_heads`
  yield* sql`INSERT INTO tollgate_usage_heads SELECT t.number, COUNT(*), MAX(r.seq)
    FROM tollgate_usage_records r JOIN tollgate_usage_tenants t ON t.id = r.tenant_id GROUP BY 1`
  yield* sql`DELETE FROM tollgate_usage_offsets`
  yield* sql`INSERT INTO tollgate_usage_offsets SELECT t.number, r.number, r.seq, r.at
    FROM tollgate_usage_records r JOIN tollgate_usage_tenants t ON t.id = r.tenant_id WHERE r.number % ${offsetEvery} = 0`
})

/** SQLite only: the tables that the statements of an effect read from end to end, or by an index from end to end. */
export const scanned = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const { context, span } = yield* Effect.tracer
    const spans: Array<Tracer.Span> = []
    const watching = Tracer.make({
      context,
      span: (...made) => {
        const one = span(...made)
        spans.push(one)
        return one
      }
    })
    yield* Effect.withTracer(effect, watching)
    const texts = new Set(
      spans.map((one) => one.attributes.get("db.query.text")).filter((text) => typeof text === "string")
    )
    const plans = yield* Effect.forEach(texts, (text) =>
      sql.unsafe<{ readonly detail: string }>(
        `EXPLAIN QUERY PLAN ${text}`,
        Array.from(text.matchAll(/\?/g), () => null)
      )
    )
    const tables = plans.flat().map(({ detail }) => /^SCAN (r|e|(?:usage|ledger)_\w+)\b/.exec(detail)?.[1])
    return {
      statements: texts.size,
      tables: tables.filter((table) => table !== undefined),
      steps: plans.flat().map(({ detail }) => detail)
    }
  })
