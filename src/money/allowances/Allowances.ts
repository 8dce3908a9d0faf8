/**
 * Allowances: credit that a tenant receives each week or month (UTC), under its own terms or those of a configured plan. A job grants each period
 * exactly once, regardless of the number of nodes that run it.
 *
 * Where the specification is silent:
 * - Calls spend the allowance first, so its unused part is the last grant less all charges since. Purchased credit, other granted credit and the
 *   reservations of open calls are never taken back. A refund, or a grant that the operator takes back, reduces other granted credit first and then
 *   the allowance. The renewal does not take that part back a second time.
 * - A renewal takes back all unused credit. The new grant includes the new amount and the credit that the rollover carries over.
 * - An allowance that begins within a period grants the full amount immediately. A new amount applies from the next period. Switching between weeks
 *   and months grants the current week or month immediately.
 * - If periods were missed because no process ran or the tenant was suspended, only the current period is granted. It includes the rollover of the
 *   last grant. If the clock is set back, no period is granted twice, nor is any period before the allowance began.
 * - If an allowance ends and is set again in the same period, that period is not granted again. Credit that remained with the tenant when the
 *   allowance ended is not taken back later.
 * - If a grant would raise a balance above the ledger's maximum, the job grants it once the balance has room.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { lastAllowance, unmovedSince } from "../../books/ledger/rows/LastAllowance.ts"
import { unusedAt } from "../../books/ledger/rules/Renewing.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { numberOf, startOf } from "../../kernel/Period.ts"
import { BillingAccountNotFound } from "../billing/Problems.ts"
import type { Allowance, AllowanceEnded, NewAllowance, Terms } from "./Allowance.ts"
import { AllowanceNotFound, AllowancePlanUnknown } from "./Problems.ts"
import * as Reading from "./Reading.ts"
import * as Renewal from "./Renewal.ts"
import { Plans } from "./Settings.ts"
import type { PlansByName } from "./Settings.ts"

/** `beside` contains statements that commit with the change, such as an audit log entry. */
export interface AllowancesContract {
  /** Sets the terms of a tenant's allowance and grants the current period if it is due. */
  readonly set: (
    tenant: TenantId,
    terms: NewAllowance,
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<Allowance, BillingAccountNotFound | AllowancePlanUnknown | BooksUnavailable>
  /** Ends an allowance. `take_back` takes back its unused part; otherwise the tenant keeps it. */
  readonly end: (
    tenant: TenantId,
    take_back: boolean,
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<AllowanceEnded, AllowanceNotFound | BooksUnavailable>
  readonly find: (tenant: TenantId) => Effect.Effect<Allowance, AllowanceNotFound>
  /**
   * Lists active allowances by tenant id, starting after `after`. Omits an allowance if its plan is no longer configured, so a page can be shorter
   * than `limit`.
   */
  readonly list: (after: string, limit: number) => Effect.Effect<ReadonlyArray<Allowance>>
  /** Grants all due periods. Returns the number of failed renewals. The job runs this effect. */
  readonly renewDue: Effect.Effect<{ readonly failed: number }>
  readonly job: Loop.Job
}

export class Allowances extends Context.Tag("tollgate/allowances/Allowances")<Allowances, AllowancesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Allowances, make))
  static readonly layerJobs = Loop.layer(Allowances, ({ job }) => [job])
}

interface Parts extends Renewal.Parts {
  readonly writer: Writer["Type"]
  readonly plans: PlansByName
  readonly renewal: Renewal.Renewal
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const ledger = yield* Ledger
  const plans = yield* Plans
  const reading = Reading.make(sql, plans)
  const renewal = Renewal.make({ sql, ledger, reading }, yield* Loop.waker)
  const parts: Parts = { sql, ledger, plans, reading, renewal, writer: yield* Writer }
  return {
    set: set(parts),
    end: end(parts),
    find: find(parts),
    list: list(parts),
    renewDue: renewal.renewDue,
    job: renewal.job
  } satisfies AllowancesContract
})

const none: ReadonlyArray<Statement> = []

const set = (parts: Parts): AllowancesContract["set"] =>
  Effect.fn("Allowances.set")(function* (tenant_id, asked, beside = none) {
    const { ledger, plans, renewal, writer } = parts
    const { plan } = asked
    if (plan !== undefined && (!Object.hasOwn(plans, plan) || plans[plan]!.allowance === undefined))
      return yield* new AllowancePlanUnknown({ plan })
    if (Option.isNone(yield* ledger.accountOfTenant(tenant_id))) return yield* new BillingAccountNotFound({ tenant_id })
    yield* Statements.write(writer, upsert(parts, tenant_id, asked, yield* Clock.currentTimeMillis), ...beside)
    // If the balance has no room, the job grants the period later.
    yield* Effect.catchTag(renewal.renew(tenant_id), "BalanceTooLarge", () => Effect.void)
    // A concurrent request may have ended the allowance.
    return yield* Effect.catchTag(find(parts)(tenant_id), "AllowanceNotFound", Effect.die)
  })

const upsert = ({ sql }: Parts, tenant: TenantId, asked: NewAllowance, now: number): Statement => {
  const { amount_usd, period, plan, rollover = "none" } = asked
  const own = plan === undefined
  const kind = typeof rollover === "string" ? rollover : "up_to"
  const upTo = typeof rollover === "string" ? null : rollover.up_to_usd
  const old = sql.literal("tollgate_allowances_allowances")
  return statement(
    sql`INSERT INTO tollgate_allowances_allowances
        (tenant_id, plan, amount, period, rollover, up_to, revision, era, began_at, changed_at)
      VALUES (${tenant}, ${plan ?? null}, ${amount_usd ?? null}, ${period ?? null}, ${own ? kind : null}, ${own ? upTo : null}, 1, 1, ${now}, ${now})
      ON CONFLICT (tenant_id) DO UPDATE SET plan = excluded.plan, amount = excluded.amount, period = excluded.period,
        rollover = excluded.rollover, up_to = excluded.up_to, revision = ${old}.revision + 1,
        era = CASE WHEN ${old}.ended_at IS NULL THEN ${old}.era ELSE ${old}.era + 1 END,
        began_at = CASE WHEN ${old}.ended_at IS NULL THEN ${old}.began_at ELSE excluded.began_at END,
        changed_at = excluded.changed_at, ended_at = NULL`
  )
}

const end = (parts: Parts): AllowancesContract["end"] => {
  const attempt = (
    tenant_id: TenantId,
    take_back: boolean,
    beside: ReadonlyArray<Statement>
  ): ReturnType<AllowancesContract["end"]> =>
    Effect.gen(function* () {
      const { ledger, reading, sql, writer } = parts
      const row = yield* reading.one(tenant_id)
      if (row === undefined) return yield* new AllowanceNotFound({ tenant_id })
      const now = yield* Clock.currentTimeMillis
      const ended = statement(
        sql`UPDATE tollgate_allowances_allowances SET ended_at = ${now}, revision = revision + 1
          WHERE tenant_id = ${tenant_id} AND revision = ${row.revision} AND ended_at IS NULL RETURNING tenant_id`,
        1
      )
      const grant = yield* reading.lastGrant(tenant_id)
      const account = billingAccountOf(tenant_id)
      const last = take_back && grant?.era === row.era ? yield* lastAllowance(sql, account, grant.reference) : undefined
      if (grant === undefined || last === undefined) {
        yield* writer.submit({ postings: [], statements: [ended, ...beside] })
        return { tenant_id, taken_usd: 0n }
      }
      const posting = { account, amount: 0n, keep: 0n, last, reference: grant.reference }
      const { unused } = yield* ledger.renew(posting, [ended, unmovedSince(sql, account, last), ...beside])
      return { tenant_id, taken_usd: unused }
    }).pipe(
      Effect.catchTags({
        Conflict: () => attempt(tenant_id, take_back, beside),
        AccountMissing: Effect.die,
        BalanceTooLarge: Effect.die
      })
    )
  return Effect.fn("Allowances.end")((tenant_id, take_back, beside = none) => attempt(tenant_id, take_back, beside))
}

const find = (parts: Parts): AllowancesContract["find"] =>
  Effect.fn("Allowances.find")(function* (tenant_id) {
    const row = yield* parts.reading.one(tenant_id)
    if (row?.terms === undefined) return yield* new AllowanceNotFound({ tenant_id })
    return yield* shown(parts, row, row.terms)
  })

const list = (parts: Parts): AllowancesContract["list"] =>
  Effect.fn("Allowances.list")(function* (after, limit) {
    const rows = yield* parts.reading.after(after, limit)
    return yield* Effect.forEach(
      rows.flatMap((row) => (row.terms === undefined ? [] : [[row, row.terms] as const])),
      ([row, terms]) => shown(parts, row, terms)
    )
  })

const shown = Effect.fnUntraced(function* (
  { ledger, reading, sql }: Parts,
  { era, plan, tenant_id }: Reading.Row,
  { amount_usd, period, rollover }: Terms
) {
  const now = yield* Clock.currentTimeMillis
  const found = yield* reading.lastGrant(tenant_id)
  const grant = found?.era === era ? found : undefined
  const account = billingAccountOf(tenant_id)
  const last = grant && (yield* lastAllowance(sql, account, grant.reference))
  const books = yield* ledger.account(account)
  return {
    tenant_id,
    plan,
    amount_usd,
    period,
    rollover,
    granted_usd: last?.amount ?? null,
    granted_at: grant?.at ?? null,
    unused_usd: last === undefined || Option.isNone(books) ? 0n : unusedAt(books.value, last),
    renews_at: startOf(period, numberOf(period, now) + 1)
  } satisfies Allowance
})
