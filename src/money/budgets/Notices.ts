/**
 * Notifies members of raises and of budgets that reach a threshold, once per threshold and period.
 *
 * Where the specification is silent:
 * - At each threshold, the tenant's owners and admins, the budget's member and the owner of its key receive a notification. They also receive an
 *   email, unless the budget is per minute or hour. If a single call passes several thresholds, only the highest is reported.
 * - Emails about a budget count against its creator's email limits. Beyond these limits, only notifications are sent.
 * - For a budget for all tenants, the operator receives a log line and an email to `contact_email`.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { crossedBudgets } from "../../books/ledger/Budgets.ts"
import { renewsAt, usdLimit } from "../../books/ledger/rules/Budget.ts"
import type { Budget } from "../../books/ledger/rules/Budget.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { Actor } from "../../kernel/Caller.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { ContactEmail } from "../../people/contact/Settings.ts"
import { plainName } from "../../people/mail/Letter.ts"
import type { OutboxContract } from "../../people/mail/Outbox.ts"
import { notice } from "../../people/notifications/Notification.ts"
import type { ApplicationsContract } from "../../people/tenants/Applications.ts"
import { manages } from "../../people/tenants/Organisation.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import { keyOf } from "./Budget.ts"
import type { BudgetRaise } from "./Budget.ts"

const name = "budgets"

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly tenants: TenantsContract
  readonly applications: ApplicationsContract
  readonly outbox: OutboxContract
}
interface Parts extends Dependencies {
  readonly operator: string | undefined
}

export const make = Effect.fnUntraced(function* (needs: Dependencies) {
  const parts: Parts = { ...needs, operator: yield* ContactEmail }
  return {
    turn: turn(parts),
    /** Builds statements that notify the other active owners and admins of a raise. */
    ofRaise: (by: Actor, budget: Budget, raise: BudgetRaise, now: number) => ofRaise(parts, by, budget, raise, now)
  }
})

export type Notices = Effect.Effect.Success<ReturnType<typeof make>>

// ---- thresholds ---------------------------------------------------------------------------------------------------------

const minute = Duration.toMillis("1 minute")
const pauseMax = 5_000
/** How long before the end of each minute the job runs, in milliseconds. */
const leadTime = 250

/**
 * Returns the pause after an iteration. Every period ends on a full minute, and the first call of the next period overwrites the reached threshold.
 * Therefore, an iteration always starts shortly before the end of a minute.
 */
export const pauseAt = (now: number): Duration.Duration => {
  const left = minute - (now % minute) - leadTime
  return Duration.millis(left > 0 && left < pauseMax ? left : pauseMax)
}

/** Converts a threshold to its database form, in millionths of the limit. */
const toMillionths = (threshold: number): number => Math.round(threshold * 1_000_000)

/** Returns the highest threshold that a budget has reached, as a fraction of its limit, or `undefined` if there is none. */
const reachedOf = ({ crossed, terms }: Budget): number | undefined =>
  terms.notify_at[Math.min(crossed, terms.notify_at.length) - 1]

const turn = Effect.fnUntraced(function* (parts: Parts) {
  const crossed = (yield* crossedBudgets(parts.sql)).filter(({ kind }) => kind === "budget")
  if (crossed.length === 0) return
  const reportedLevels = yield* reportedThresholds(
    parts.sql,
    crossed.map(({ id }) => id)
  )
  const due = crossed.flatMap((budget) => {
    const threshold = reachedOf(budget)
    if (threshold === undefined || (reportedLevels.get(`${budget.id} ${budget.start}`) ?? 0) >= toMillionths(threshold))
      return []
    return [{ budget, threshold }]
  })
  yield* Loop.each(
    name,
    due,
    ({ budget }) => budget.id,
    ({ budget, threshold }) => sendReport(parts, budget, threshold)
  )
})

/** Reads the highest threshold already reported, by budget and period. */
const reportedThresholds = (sql: SqlClient, ids: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, number>> =>
  Effect.map(
    Effect.orDie(
      sql<{ budget_id: string; start: number; threshold: number }>`
        SELECT budget_id, start, max(threshold) AS threshold FROM tollgate_budgets_notices
        WHERE budget_id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) GROUP BY budget_id, start`
    ),
    (rows) => new Map(rows.map(({ budget_id, start, threshold }) => [`${budget_id} ${start}`, threshold]))
  )

/** Records that a threshold was reported. Fails the transaction if it was reported before or the budget was deleted. */
const recordReport = (
  sql: SqlClient,
  { id, start }: Budget,
  threshold: number,
  now: number
): ReadonlyArray<Statement> => [
  statement(sql`SELECT 1 AS found FROM tollgate_budgets_budgets WHERE id = ${id}`, 1),
  statement(
    sql`INSERT INTO tollgate_budgets_notices (budget_id, start, threshold, told_at)
      VALUES (${id}, ${start}, ${toMillionths(threshold)}, ${now}) ON CONFLICT DO NOTHING RETURNING budget_id`,
    1
  ),
  statement(sql`DELETE FROM tollgate_budgets_notices WHERE budget_id = ${id} AND start < ${start}`)
]

const sendReport = Effect.fnUntraced(function* (parts: Parts, budget: Budget, threshold: number) {
  const now = yield* Clock.currentTimeMillis
  const message = messageOf(budget, threshold, now)
  const statements =
    budget.tenant_id === undefined
      ? yield* toOperator(parts, budget, threshold, message)
      : yield* toTenant(parts, budget, budget.tenant_id as TenantId, threshold, message, now)
  const isWritten = yield* Statements.tryWrite(
    parts.writer,
    ...recordReport(parts.sql, budget, threshold, now),
    ...statements
  )
  if (!isWritten) return
  if (budget.tenant_id === undefined) yield* Effect.logWarning(`${message.title}: ${message.text}`)
  yield* parts.outbox.wake
})

/** Returns an email's key. An address receives one email per key. */
const keyFor = ({ id, start }: Budget, threshold: number, to: string): string =>
  `budget/${id}/${start}/${toMillionths(threshold)}/${to}`

const toOperator = ({ operator, outbox }: Parts, budget: Budget, threshold: number, { text, title }: Message) =>
  operator === undefined || !isMailed(budget)
    ? Effect.succeed([])
    : Effect.map(
        outbox.letter({ key: keyFor(budget, threshold, operator), to: operator, subject: title, text }),
        (letter) => [letter]
      )

const toTenant = Effect.fnUntraced(function* (
  parts: Parts,
  budget: Budget,
  tenant_id: TenantId,
  threshold: number,
  { text, title }: Message,
  now: number
) {
  const accounts = yield* recipientsOf(parts, budget, tenant_id)
  const data = { tenant_id, budget_id: budget.id }
  const notices = accounts.map((account_id) => notice({ account_id, kind: "budget_reached", title, text, data }, now))
  if (!isMailed(budget)) return notices
  const { by_operator, created_by } = budget.terms
  const tenant = plainName((yield* parts.tenants.nameOf(tenant_id)) ?? "", "your team")
  const letters = yield* Effect.forEach(accounts, (account) =>
    Effect.flatMap(parts.tenants.verifiedEmail(account), (to) =>
      to === undefined
        ? Effect.succeed([])
        : Effect.map(
            parts.outbox.letter({
              key: keyFor(budget, threshold, to),
              to,
              caused_by: by_operator ? undefined : (created_by as AccountId),
              subject: `${title}: ${tenant}`,
              text
            }),
            (letter) => [letter]
          )
    )
  )
  return [...letters.flat(), ...notices]
})

const isMailed = ({ terms: { period } }: Budget): boolean => period !== "minute" && period !== "hour"

/** Finds the active members to notify: owners, admins, the budget's member and its key's owner. */
const recipientsOf = Effect.fnUntraced(function* (
  { applications, tenants }: Dependencies,
  budget: Budget,
  tenant_id: TenantId
): Effect.fn.Return<ReadonlyArray<AccountId>> {
  const key = keyOf(budget)
  const owner =
    key === undefined
      ? undefined
      : yield* Effect.match(applications.find({ caller: { tenant_id, account_id: null }, application_id: key }), {
          onFailure: () => undefined,
          onSuccess: ({ account_id }) => account_id
        })
  const involved = new Set([budget.terms.applies_to.member, owner])
  const active = (yield* tenants.members(tenant_id)).filter(({ status }) => status === "active")
  return active.filter(({ account_id, role }) => manages(role) || involved.has(account_id)).map((one) => one.account_id)
})

// ---- texts --------------------------------------------------------------------------------------------------------------

interface Message {
  readonly title: string
  readonly text: string
}

const percent = (part: number): string => `${Number((part * 100).toFixed(4))}%`

const messageOf = (budget: Budget, threshold: number, now: number): Message => {
  const { mode, name, period } = budget.terms
  const label = `The budget "${plainName(name, "without a name")}"`
  const span = period === "total" ? "in total" : `in the ${period} from ${whenOf(budget.start)}`
  const reached = `${label} has reached ${percent(threshold)} of its limit: ${usedOf(budget).join(", ")} ${span}.`
  const text = [reached, ...raisedTo(budget, now)].join(" ")
  const end = renewsAt(period, budget.start)
  const refused = end === undefined ? "until its limit is raised" : `until ${whenOf(end)}, or until its limit is raised`
  return {
    title: `${label} has reached ${percent(threshold)}`,
    text:
      threshold < 1 || mode === "notify" || !isUsedUp(budget, now)
        ? text
        : `${text} It refuses further calls ${refused}.`
  }
}

/** Describes the raised limit and its open raises, if any, because thresholds are fractions of the limit without them. */
const raisedTo = ({ terms }: Budget, now: number): ReadonlyArray<string> => {
  const open = terms.raises.filter(({ until }) => until > now)
  const limit = usdLimit(terms, now)
  if (limit === undefined || open.length === 0) return []
  const raises = open.map(({ until, usd }) => `by ${toDecimal(usd)} USD until ${whenOf(until)}`)
  return [`The limit is raised to ${toDecimal(limit)} USD: ${raises.join(", ")}.`]
}

/** Returns whether the limit on USD (with open raises), tokens or requests is used up. */
const isUsedUp = ({ requests, spent, terms, tokens }: Budget, now: number): boolean => {
  const usd = usdLimit(terms, now)
  const { limit } = terms
  return (
    (usd !== undefined && spent >= usd) ||
    (limit.tokens !== undefined && tokens >= limit.tokens) ||
    (limit.requests !== undefined && requests >= limit.requests)
  )
}

/** Formats a time as `2026-11-26 14:00 UTC`. */
const whenOf = (at: number): string => `${toIso(at).slice(0, 16).replace("T", " ")} UTC`

/** Describes how much of each limit is used. The USD limit does not include raises. */
const usedOf = ({ requests, spent, terms: { limit }, tokens }: Budget): ReadonlyArray<string> => [
  ...(limit.usd === undefined ? [] : [`${toDecimal(spent)} of ${toDecimal(limit.usd)} USD`]),
  ...(limit.tokens === undefined ? [] : [`${tokens} of ${limit.tokens} tokens`]),
  ...(limit.requests === undefined ? [] : [`${requests} of ${limit.requests} requests`])
]

// ---- raises -------------------------------------------------------------------------------------------------------------

const ofRaise = Effect.fnUntraced(function* (
  { tenants }: Dependencies,
  { account_id: by, tenant_id }: Actor,
  { id, terms }: Budget,
  { until, usd }: BudgetRaise,
  now: number
) {
  const members = yield* tenants.members(tenant_id)
  const who = plainName(members.find(({ account_id }) => account_id === by)?.name ?? "", "A member")
  const title = `The budget "${plainName(terms.name, "without a name")}" was raised`
  const text = `${who} raised it by ${toDecimal(usd)} USD until ${whenOf(until)}.`
  return members
    .filter(({ account_id, role, status }) => status === "active" && manages(role) && account_id !== by)
    .map(({ account_id }) =>
      notice({ account_id, kind: "budget_raised", title, text, data: { tenant_id, budget_id: id } }, now)
    )
})
