/** The operator's budgets for all tenants together or for one tenant, and the operator's templates. */
import { Clock, Effect } from "effect"
import { budgetsOf } from "../../books/ledger/Budgets.ts"
import { everyone, newBudget } from "../../books/ledger/rules/Budget.ts"
import type { BudgetTerms } from "../../books/ledger/rules/Budget.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Posting, Statement } from "../../books/ledger/rules/Transaction.ts"
import { tryWrite } from "../../books/ledger/write/Statements.ts"
import { at as idAt } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { ApplicationNotFound, MemberNotFound } from "../../people/tenants/Problems.ts"
import { BillingAccountNotFound } from "../billing/Problems.ts"
import { shown } from "./Budget.ts"
import type { BudgetChange, BudgetId, BudgetRaise } from "./Budget.ts"
import { checkNames } from "./KnownCalls.ts"
import type { NewOperatorBudget, OperatorBudget, Scope } from "./OperatorBudget.ts"
import { BudgetNotFound, TooManyBudgets } from "./Problems.ts"
import type { TooManyRaises } from "./Problems.ts"
import { ofOperatorMax } from "./Storage.ts"
import type { Row } from "./Storage.ts"
import { allShown, checkConditions, read, setBudget, write } from "./Stored.ts"
import type { Parts, Read } from "./Stored.ts"
import type { Template } from "./Templates.ts"
import { changedTerms, newTerms, raisedTerms } from "./Terms.ts"

/** A function that returns statements to commit with a change to a budget, such as an audit log entry. */
export type Beside = (budget: {
  readonly id: BudgetId
  readonly tenant_id: TenantId | undefined
}) => ReadonlyArray<Statement>

export interface OfOperator {
  /** The operator's budgets and templates, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<OperatorBudget>>
  readonly find: (id: BudgetId) => Effect.Effect<OperatorBudget, BudgetNotFound>
  readonly create: (
    requested: NewOperatorBudget,
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
  /** Raises a budget, including one created from a template. A template itself cannot be raised. */
  readonly raise: (
    id: BudgetId,
    raise: BudgetRaise,
    beside: Beside
  ) => Effect.Effect<OperatorBudget, BudgetNotFound | InvalidRequest | TooManyRaises | BooksUnavailable>
  /** Deletes the budget and returns its final state. */
  readonly remove: (
    id: BudgetId,
    beside: Beside
  ) => Effect.Effect<OperatorBudget, BudgetNotFound | InvalidRequest | BooksUnavailable>
}

/** The value of `created_by` for the operator's budgets and raises. The audit log identifies the operator. */
const operator = "operator"

export const make = (parts: Parts): OfOperator => ({
  list: makeList(parts),
  find: makeFind(parts),
  create: makeCreate(parts),
  change: makeChange(parts),
  raise: makeRaise(parts),
  remove: makeRemove(parts)
})

const scopeOf = (tenant_id: string | null | undefined): Scope =>
  tenant_id == null ? everyone : { tenant: tenant_id as TenantId }

// ---- reading ------------------------------------------------------------------------------------------------------------

const makeList = (parts: Parts): OfOperator["list"] =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* parts.storage.ofOperator
    const found = yield* budgetsOf(
      parts.sql,
      rows.map(({ id }) => id),
      now
    )
    const budgets = yield* allShown(parts, found, now)
    const templates = yield* Effect.forEach(yield* parts.templates.all, (one) => shownTemplate(parts, one))
    return [...budgets.map((budget, i) => ({ ...budget, scope: scopeOf(found[i]!.tenant_id) })), ...templates].toSorted(
      (one, other) => (one.id < other.id ? -1 : 1)
    )
  }).pipe(Effect.withSpan("Budgets.ofOperator.list"))

/** Reads an operator's budget, including one created from a template. */
const readOperatorBudget = (parts: Parts, id: BudgetId): Effect.Effect<Read, BudgetNotFound> =>
  Effect.filterOrFail(
    read(parts, id),
    ({ row }) => row.by_operator === 1,
    () => new BudgetNotFound({ budget_id: id })
  )

/** Reads an operator's budget for a change. Rejects a budget from a template, because it changes only with its template. */
const readToChange = Effect.fnUntraced(function* (parts: Parts, id: BudgetId) {
  const found = yield* readOperatorBudget(parts, id)
  const { template_id } = found.row
  return template_id === null
    ? found
    : yield* InvalidRequest.of(
        "budget_id",
        `this budget belongs to the template ${template_id}; change the template instead`
      )
})

const shownOf = (parts: Parts, { budget }: Read): Effect.Effect<OperatorBudget> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.map(allShown(parts, [budget], now), ([one]) => ({ ...one!, scope: scopeOf(budget.tenant_id) }))
  )

/** Returns a template with the summed counts of its budgets. */
const shownTemplate = Effect.fnUntraced(function* (
  parts: Parts,
  { id, plan, terms }: Template
): Effect.fn.Return<OperatorBudget> {
  const now = yield* Clock.currentTimeMillis
  const rows = yield* parts.templates.budgets(id)
  const found = yield* budgetsOf(
    parts.sql,
    rows.map((row) => row.id),
    now
  )
  const money = (of: "spent" | "reserved") => found.reduce((sum, one) => sum + one[of], 0n)
  const count = (of: "tokens" | "tokens_reserved" | "requests" | "open") => found.reduce((sum, one) => sum + one[of], 0)
  const sums = {
    ...newBudget({ id, kind: "budget", anchor: everyone, tenant_id: undefined, terms }, now),
    spent: money("spent"),
    reserved: money("reserved"),
    tokens: count("tokens"),
    tokens_reserved: count("tokens_reserved"),
    requests: count("requests"),
    open: count("open")
  }
  const scope = plan === null ? ("each_new_tenant" as const) : { plan }
  return { ...shown(sums, [], now), scope, tenants: found.length }
})

const makeFind = (parts: Parts): OfOperator["find"] =>
  Effect.fn("Budgets.ofOperator.find")(function* (id) {
    const template = yield* parts.templates.find(id)
    return yield* template === undefined
      ? Effect.flatMap(readOperatorBudget(parts, id), (found) => shownOf(parts, found))
      : shownTemplate(parts, template)
  })

// ---- creating -----------------------------------------------------------------------------------------------------------

const checkUnscoped = Effect.fnUntraced(function* ({ known }: Parts, { applies_to }: NewOperatorBudget) {
  for (const field of ["member", "key"] as const)
    if (applies_to[field] !== undefined)
      return yield* InvalidRequest.of(`applies_to.${field}`, "must be omitted unless the budget is for one tenant")
  yield* checkNames(known, applies_to)
})

const checkTenant = Effect.fnUntraced(function* (parts: Parts, tenant_id: TenantId, requested: NewOperatorBudget) {
  if ((yield* parts.tenants.nameOf(tenant_id)) === undefined) return yield* new BillingAccountNotFound({ tenant_id })
  yield* Effect.catchTag(
    checkConditions(parts, { account_id: null, tenant_id }, requested),
    "InsufficientRole",
    Effect.die
  )
})

const checkPlan = ({ plans }: Parts, plan: string): Effect.Effect<void, InvalidRequest> =>
  Object.hasOwn(plans, plan)
    ? Effect.void
    : InvalidRequest.of(
        "scope.plan",
        Object.keys(plans).length === 0
          ? "must be a configured plan, but none is configured"
          : `must be a configured plan: ${Object.keys(plans).join(", ")}`
      )

interface BudgetWrites {
  readonly postings: ReadonlyArray<Extract<Posting, { readonly _tag: "SetBudget" }>>
  readonly insert: Statement
}

/** Builds the posting and row of a new budget, or the row of a new template. */
const writesFor = (
  { storage, templates }: Parts,
  { applies_to: { key }, scope }: NewOperatorBudget,
  id: BudgetId,
  terms: BudgetTerms
): BudgetWrites => {
  if (scope === "each_new_tenant" || (scope !== everyone && "plan" in scope)) {
    const plan = scope === "each_new_tenant" ? null : scope.plan
    return { postings: [], insert: templates.insert({ id, plan, terms, revision: 1 }) }
  }
  const tenant_id = scope === everyone ? null : scope.tenant
  const insert = storage.insert({
    id,
    tenant_id,
    key_id: key ?? null,
    created_by: operator,
    by_operator: 1,
    template_id: null,
    template_revision: null,
    revision: 1
  })
  return tenant_id === null
    ? { postings: [{ _tag: "SetBudget", id, kind: "budget", anchor: everyone, terms }], insert }
    : { postings: [setBudget(id, tenant_id, key, terms)], insert }
}

const makeCreate = (parts: Parts): OfOperator["create"] =>
  Effect.fn("Budgets.ofOperator.create")(function* (requested, beside) {
    const { scope } = requested
    const now = yield* Clock.currentTimeMillis
    const id = idAt("bud", now) as BudgetId
    const tenant_id = typeof scope === "object" && "tenant" in scope ? scope.tenant : undefined
    yield* tenant_id === undefined ? checkUnscoped(parts, requested) : checkTenant(parts, tenant_id, requested)
    if (typeof scope === "object" && "plan" in scope) yield* checkPlan(parts, scope.plan)
    const terms = newTerms(requested, { by_operator: true, created_by: operator }, now)
    const { insert, postings } = writesFor(parts, requested, id, terms)
    yield* parts.writer
      .submit({ postings, statements: [parts.storage.operatorHasRoom, insert, ...beside({ id, tenant_id })] })
      .pipe(
        Effect.catchTags({
          AccountMissing: Effect.die,
          Conflict: () => new TooManyBudgets({ limit: ofOperatorMax })
        })
      )
    yield* parts.wake
    return yield* Effect.orDie(makeFind(parts)(id))
  })

// ---- changing -----------------------------------------------------------------------------------------------------------

const ofTemplate = (id: BudgetId) => ({ id, tenant_id: undefined })

const ofRow = ({ id, tenant_id }: Row) => ({ id, tenant_id: (tenant_id ?? undefined) as TenantId | undefined })

const makeChange = (parts: Parts): OfOperator["change"] => {
  const change: OfOperator["change"] = Effect.fn("Budgets.ofOperator.change")(function* (id, asked, beside) {
    const now = yield* Clock.currentTimeMillis
    const template = yield* parts.templates.find(id)
    if (template !== undefined) {
      const terms = yield* changedTerms(template.terms, asked, now)
      const done = yield* tryWrite(parts.writer, parts.templates.change(template, terms), ...beside(ofTemplate(id)))
      yield* parts.wake
      return yield* done ? makeFind(parts)(id) : change(id, asked, beside)
    }
    const found = yield* readToChange(parts, id)
    const terms = yield* changedTerms(found.budget.terms, asked, now)
    const done = yield* write(parts, found, terms, [parts.storage.change(found.row), ...beside(ofRow(found.row))])
    return yield* done ? makeFind(parts)(id) : change(id, asked, beside)
  })
  return change
}

const makeRaise = (parts: Parts): OfOperator["raise"] => {
  const raise: OfOperator["raise"] = Effect.fn("Budgets.ofOperator.raise")(function* (id, asked, beside) {
    const now = yield* Clock.currentTimeMillis
    if ((yield* parts.templates.find(id)) !== undefined)
      return yield* InvalidRequest.of("budget_id", "a template cannot be raised; raise a tenant's budget instead")
    const found = yield* readOperatorBudget(parts, id)
    const terms = yield* raisedTerms(found.budget.terms, asked, now)
    const done = yield* write(parts, found, terms, [
      parts.storage.change(found.row),
      ...parts.storage.raise(found.row, asked, operator, now),
      ...beside(ofRow(found.row))
    ])
    return yield* done ? makeFind(parts)(id) : raise(id, asked, beside)
  })
  return raise
}

const makeRemove = (parts: Parts): OfOperator["remove"] => {
  const remove: OfOperator["remove"] = Effect.fn("Budgets.ofOperator.remove")(function* (id, beside) {
    const template = yield* parts.templates.find(id)
    if (template !== undefined) {
      const budget = yield* shownTemplate(parts, template)
      const done = yield* tryWrite(parts.writer, parts.templates.remove(template), ...beside(ofTemplate(id)))
      yield* parts.wake
      return done ? budget : yield* remove(id, beside)
    }
    const found = yield* readToChange(parts, id)
    const budget = yield* shownOf(parts, found)
    const done = yield* write(parts, found, null, [...parts.storage.remove(found.row), ...beside(ofRow(found.row))])
    return done ? budget : yield* remove(id, beside)
  })
  return remove
}
