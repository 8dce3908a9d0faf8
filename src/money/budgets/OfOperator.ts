/** Budgets that the operator makes: of all tenants together, or of one tenant. */
import { Clock, Effect } from "effect"
import { budgetsOf } from "../../books/ledger/Budgets.ts"
import { everyone } from "../../books/ledger/rules/Budget.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { at as idAt } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { ApplicationNotFound, MemberNotFound } from "../../people/tenants/Problems.ts"
import { BillingAccountNotFound } from "../billing/Problems.ts"
import type { BudgetChange, BudgetId, BudgetRaise } from "./Budget.ts"
import { checkNames } from "./KnownCalls.ts"
import type { NewOperatorBudget, OperatorBudget, Scope } from "./OperatorBudget.ts"
import { BudgetNotFound, TooManyBudgets } from "./Problems.ts"
import type { TooManyRaises } from "./Problems.ts"
import { ofOperatorMax } from "./Storage.ts"
import type { Row } from "./Storage.ts"
import { allShown, checkConditions, read, setBudget, write } from "./Stored.ts"
import type { Parts, Read } from "./Stored.ts"
import { changedTerms, newTerms, raisedTerms } from "./Terms.ts"

/** Statements that commit with an act on a budget, such as an audit log entry. */
export type Beside = (budget: {
  readonly id: BudgetId
  readonly tenant_id: TenantId | undefined
}) => ReadonlyArray<Statement>

export interface OfOperator {
  /** Oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<OperatorBudget>>
  readonly find: (id: BudgetId) => Effect.Effect<OperatorBudget, BudgetNotFound>
  readonly create: (
    asked: NewOperatorBudget,
    beside: Beside
  ) => Effect.Effect<
    OperatorBudget,
    InvalidRequest | BillingAccountNotFound | MemberNotFound | ApplicationNotFound | TooManyBudgets | BooksUnavailable
  >
  readonly change: (
    id: BudgetId,
    change: BudgetChange,
    beside: Beside
  ) => Effect.Effect<OperatorBudget, BudgetNotFound | InvalidRequest | BooksUnavailable>
  /** `by`: the operator's name. */
  readonly raise: (
    id: BudgetId,
    raise: BudgetRaise,
    beside: Beside
  ) => Effect.Effect<OperatorBudget, BudgetNotFound | InvalidRequest | TooManyRaises | BooksUnavailable>
  /** Returns the budget as it was. */
  readonly remove: (id: BudgetId, beside: Beside) => Effect.Effect<OperatorBudget, BudgetNotFound | BooksUnavailable>
}

/** `created_by` of the operator's budgets and raises. The audit log has the operator's name. */
const operator = "operator"

export const make = (parts: Parts): OfOperator => ({
  list: listing(parts),
  find: finding(parts),
  create: creating(parts),
  change: changing(parts),
  raise: raising(parts),
  remove: removing(parts)
})

const scopeOf = (tenant_id: string | null | undefined): Scope =>
  tenant_id == null ? everyone : { tenant: tenant_id as TenantId }

const listing = (parts: Parts): OfOperator["list"] =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* parts.storage.ofOperator
    const found = yield* budgetsOf(
      parts.sql,
      rows.map(({ id }) => id),
      now
    )
    const budgets = yield* allShown(parts, found, now)
    return budgets.map((budget, i) => ({ ...budget, scope: scopeOf(found[i]!.tenant_id) }))
  }).pipe(Effect.withSpan("Budgets.ofOperator.list"))

const readOwn = (parts: Parts, id: BudgetId): Effect.Effect<Read, BudgetNotFound> =>
  Effect.filterOrFail(
    read(parts, id),
    ({ row }) => row.by_operator === 1 && row.template_id === null,
    () => new BudgetNotFound({ budget_id: id })
  )

const shownOf = (parts: Parts, { budget }: Read): Effect.Effect<OperatorBudget> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.map(allShown(parts, [budget], now), ([one]) => ({ ...one!, scope: scopeOf(budget.tenant_id) }))
  )

const finding = (parts: Parts): OfOperator["find"] =>
  Effect.fn("Budgets.ofOperator.find")(function* (id) {
    return yield* shownOf(parts, yield* readOwn(parts, id))
  })

const checkEveryone = Effect.fnUntraced(function* ({ known }: Parts, { applies_to }: NewOperatorBudget) {
  for (const field of ["member", "key"] as const)
    if (applies_to[field] !== undefined)
      return yield* InvalidRequest.of(`applies_to.${field}`, "only in a budget of a tenant")
  yield* checkNames(known, applies_to)
})

const creating = (parts: Parts): OfOperator["create"] =>
  Effect.fn("Budgets.ofOperator.create")(function* (asked, beside) {
    const { storage, tenants, writer } = parts
    const { applies_to, scope } = asked
    const now = yield* Clock.currentTimeMillis
    const id = idAt("bud", now) as BudgetId
    const tenant_id = scope === everyone ? undefined : scope.tenant
    if (tenant_id === undefined) yield* checkEveryone(parts, asked)
    else {
      if ((yield* tenants.nameOf(tenant_id)) === undefined) return yield* new BillingAccountNotFound({ tenant_id })
      yield* Effect.catchTag(
        checkConditions(parts, { account_id: null, tenant_id }, asked),
        "InsufficientRole",
        Effect.die
      )
    }
    const terms = newTerms(asked, { by_operator: true, created_by: operator }, now)
    const { key } = applies_to
    const row: Row = {
      id,
      tenant_id: tenant_id ?? null,
      key_id: key ?? null,
      created_by: operator,
      by_operator: 1,
      template_id: null,
      revision: 1
    }
    const posting =
      tenant_id === undefined
        ? ({ _tag: "SetBudget", id, kind: "budget", anchor: everyone, terms } as const)
        : setBudget(id, tenant_id, key, terms)
    yield* writer
      .submit({
        postings: [posting],
        statements: [storage.operatorHasRoom, storage.insert(row), ...beside({ id, tenant_id })]
      })
      .pipe(
        Effect.catchTags({
          AccountMissing: Effect.die,
          Conflict: () => new TooManyBudgets({ limit: ofOperatorMax })
        })
      )
    return yield* Effect.orDie(finding(parts)(id))
  })

const ofRow = ({ id, tenant_id }: Row) => ({ id, tenant_id: (tenant_id ?? undefined) as TenantId | undefined })

const changing = (parts: Parts): OfOperator["change"] => {
  const change: OfOperator["change"] = Effect.fn("Budgets.ofOperator.change")(function* (id, asked, beside) {
    const now = yield* Clock.currentTimeMillis
    const found = yield* readOwn(parts, id)
    const terms = yield* changedTerms(found.budget.terms, asked, now)
    const done = yield* write(parts, found, terms, [parts.storage.change(found.row), ...beside(ofRow(found.row))])
    return yield* done ? finding(parts)(id) : change(id, asked, beside)
  })
  return change
}

const raising = (parts: Parts): OfOperator["raise"] => {
  const raise: OfOperator["raise"] = Effect.fn("Budgets.ofOperator.raise")(function* (id, asked, beside) {
    const now = yield* Clock.currentTimeMillis
    const found = yield* readOwn(parts, id)
    const terms = yield* raisedTerms(found.budget.terms, asked, now)
    const done = yield* write(parts, found, terms, [
      parts.storage.change(found.row),
      ...parts.storage.raise(found.row, asked, operator, now),
      ...beside(ofRow(found.row))
    ])
    return yield* done ? finding(parts)(id) : raise(id, asked, beside)
  })
  return raise
}

const removing = (parts: Parts): OfOperator["remove"] => {
  const remove: OfOperator["remove"] = Effect.fn("Budgets.ofOperator.remove")(function* (id, beside) {
    const found = yield* readOwn(parts, id)
    const budget = yield* shownOf(parts, found)
    const done = yield* write(parts, found, null, [...parts.storage.remove(found.row), ...beside(ofRow(found.row))])
    return done ? budget : yield* remove(id, beside)
  })
  return remove
}
