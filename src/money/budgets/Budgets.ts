/**
 * A tenant's budgets. Its members and the operator create, change, raise and delete them.
 *
 * Where the specification is silent:
 * - Owners and admins create, change and delete their tenant's budgets. Members create budgets only on their own API keys, and change only those that
 *   they created. A member cannot change a budget that an owner or admin set on the member's key.
 * - A member sees the budgets that can count their calls: those on their own keys, on themselves, and on all keys and members.
 * - A tenant sees the budgets that the operator set for it but cannot change them (403 `budget_of_operator`). It does not see the operator's budgets
 *   for all tenants.
 * - A PATCH changes only the units of the limit that it contains. `null` removes a unit. `period` and `applies_to` cannot change.
 * - A budget counts calls from its creation. If its key is deleted or its member leaves, the budget remains but counts no more calls.
 * - A raise adds USD to the limit until it expires. A budget can have 20 open raises. Tenants have no audit log, so a raise records `created_by` and
 *   `created_at`, and the other owners and admins are notified. The last 200 raises of a budget are stored.
 * - `notify_at` is an array of up to 10 fractions of the limit without raises. The default is 0.8 and 1. An empty array sends no notices.
 * - An operator's template creates a separate budget for each tenant. With `each_new_tenant`, the transaction that creates a tenant also creates its
 *   budget. With a plan, each tenant that is on the plan now or joins it later receives a budget within seconds. Changes to the template apply to its
 *   budgets. A template's budget is deleted with the template or when the tenant leaves the plan. The operator can raise it by its id but cannot
 *   change it.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { budgetsOfTenant } from "../../books/ledger/Budgets.ts"
import type * as Books from "../../books/ledger/rules/Budget.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { Actor } from "../../kernel/Caller.ts"
import { at as idAt } from "../../kernel/Ids.ts"
import type { ApplicationId } from "../../kernel/Ids.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as Loop from "../../kernel/Loop.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import { manages } from "../../people/tenants/Organisation.ts"
import { InsufficientRole } from "../../people/tenants/Problems.ts"
import type { ApplicationNotFound, MemberNotFound } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Plans } from "../allowances/Settings.ts"
import { TenantPlans } from "../allowances/TenantPlans.ts"
import { keyOf } from "./Budget.ts"
import type { Budget, BudgetChange, BudgetId, BudgetRaise, NewBudget } from "./Budget.ts"
import { KnownCalls } from "./KnownCalls.ts"
import * as Following from "./Following.ts"
import * as Notices from "./Notices.ts"
import * as OfOperator from "./OfOperator.ts"
import { BudgetNotFound, BudgetOfOperator, TooManyBudgets } from "./Problems.ts"
import type { TooManyRaises } from "./Problems.ts"
import * as Storage from "./Storage.ts"
import { allShown, checkConditions, read, setBudget, write } from "./Stored.ts"
import type { Parts, Read } from "./Stored.ts"
import * as Templates from "./Templates.ts"
import { changedTerms, newTerms, raisedTerms } from "./Terms.ts"

export interface By {
  readonly caller: Actor
}
export interface OfBudget extends By {
  readonly budget_id: BudgetId
}

type Refused = BudgetNotFound | BudgetOfOperator | InsufficientRole | BooksUnavailable

/** Times are Unix times in milliseconds. */
export interface BudgetsContract {
  /** Returns the budgets of the caller's tenant that the caller may see, oldest first. */
  readonly list: (request: By) => Effect.Effect<ReadonlyArray<Budget>, InsufficientRole>
  readonly find: (request: OfBudget) => Effect.Effect<Budget, BudgetNotFound | InsufficientRole>
  readonly create: (
    request: By & { readonly budget: NewBudget }
  ) => Effect.Effect<
    Budget,
    InsufficientRole | InvalidRequest | MemberNotFound | ApplicationNotFound | TooManyBudgets | BooksUnavailable
  >
  readonly change: (
    request: OfBudget & { readonly change: BudgetChange }
  ) => Effect.Effect<Budget, Refused | InvalidRequest>
  readonly raise: (
    request: OfBudget & { readonly raise: BudgetRaise }
  ) => Effect.Effect<Budget, Refused | InvalidRequest | TooManyRaises>
  /** Deletes the budget and returns its final state. */
  readonly remove: (request: OfBudget) => Effect.Effect<Budget, Refused>
  readonly ofOperator: OfOperator.OfOperator
  /** The job that sends notices for budgets that reach a threshold and updates template budgets. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export class Budgets extends Context.Tag("tollgate/budgets/Budgets")<Budgets, BudgetsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Budgets, make))
  static readonly layerJobs = Loop.layer(Budgets, ({ job }) => [job])
}

const jobName = "budgets"

const make = Effect.gen(function* () {
  const [sql, writer, tenants] = [yield* SqlClient, yield* Writer, yield* Tenants]
  const [applications, outbox] = [yield* Applications, yield* Outbox]
  const waker = yield* Loop.waker
  const notices = yield* Notices.make({ sql, writer, tenants, applications, outbox })
  const storage = Storage.make(sql)
  const parts: Parts = {
    sql,
    writer,
    storage,
    tenants,
    applications,
    notices,
    known: yield* KnownCalls,
    templates: Templates.make(sql),
    plans: yield* Plans,
    tenantsOf: (yield* TenantPlans).tenantsOf,
    wake: waker.wake
  }
  const turn = Effect.zipRight(notices.turn, Following.follow(jobName, parts))
  return {
    list: makeList(parts),
    find: makeFind(parts),
    create: makeCreate(parts),
    change: makeChange(parts),
    raise: makeRaise(parts),
    remove: makeRemove(parts),
    ofOperator: OfOperator.make(parts),
    job: {
      name: jobName,
      turn: Effect.zipRight(turn, Effect.map(Clock.currentTimeMillis, Notices.pauseAt)),
      waker
    }
  } satisfies BudgetsContract
})

// ---- reading ------------------------------------------------------------------------------------------------------------

/** Returns whether the caller manages the tenant. Fails unless the caller is an active member. */
const isManager = ({ tenants }: Parts, { account_id, tenant_id }: Actor) =>
  Effect.flatMap(tenants.roleOf(account_id, tenant_id), (role) =>
    role === undefined ? new InsufficientRole({ tenant_id }) : Effect.succeed(manages(role))
  )

const isOwn = ({ applications }: Parts, caller: Actor, application_id: ApplicationId): Effect.Effect<boolean> =>
  Effect.match(applications.find({ caller, application_id }), {
    onFailure: () => false,
    onSuccess: ({ account_id }) => account_id === caller.account_id
  })

const isSeen = (parts: Parts, caller: Actor, budget: Books.Budget): Effect.Effect<boolean> => {
  const key = keyOf(budget)
  if (key !== undefined) return isOwn(parts, caller, key)
  const { member } = budget.terms.applies_to
  return Effect.succeed(member === undefined || member === caller.account_id)
}

const makeList = (parts: Parts): BudgetsContract["list"] =>
  Effect.fn("Budgets.list")(function* ({ caller }) {
    const now = yield* Clock.currentTimeMillis
    const all = yield* isManager(parts, caller)
    const found = yield* budgetsOfTenant(parts.sql, caller.tenant_id, now)
    return yield* allShown(
      parts,
      all ? found : yield* Effect.filter(found, (budget) => isSeen(parts, caller, budget)),
      now
    )
  })

const makeFind = (parts: Parts): BudgetsContract["find"] =>
  Effect.fn("Budgets.find")(function* ({ budget_id, caller }) {
    const { budget } = yield* readFor(parts, { budget_id, caller })
    const seen = (yield* isManager(parts, caller)) || (yield* isSeen(parts, caller, budget))
    if (!seen) return yield* new InsufficientRole({ tenant_id: caller.tenant_id })
    return (yield* allShown(parts, [budget], yield* Clock.currentTimeMillis))[0]!
  })

/** Reads a budget. Fails unless it belongs to the caller's tenant. */
const readFor = (parts: Parts, { budget_id, caller }: OfBudget): Effect.Effect<Read, BudgetNotFound> =>
  Effect.filterOrFail(
    read(parts, budget_id),
    ({ row }) => row.tenant_id === caller.tenant_id,
    () => new BudgetNotFound({ budget_id })
  )

/** Reads a budget for a change. Fails unless the caller may change it. */
const readToChange = Effect.fnUntraced(function* (parts: Parts, request: OfBudget) {
  const { budget_id, caller } = request
  const { tenant_id } = caller
  const found = yield* readFor(parts, request)
  const manager = yield* isManager(parts, caller)
  if (found.row.by_operator === 1) return yield* new BudgetOfOperator({ budget_id })
  if (manager) return found
  const key = keyOf(found.budget)
  const own = found.row.created_by === caller.account_id && key !== undefined && (yield* isOwn(parts, caller, key))
  return own ? found : yield* new InsufficientRole({ tenant_id })
})

// ---- creating -----------------------------------------------------------------------------------------------------------

const makeCreate = (parts: Parts): BudgetsContract["create"] =>
  Effect.fn("Budgets.create")(function* ({ budget, caller }) {
    const { storage, writer } = parts
    const { account_id, tenant_id } = caller
    const { key } = budget.applies_to
    const now = yield* Clock.currentTimeMillis
    const manager = yield* isManager(parts, caller)
    if (!manager && key === undefined)
      return yield* new InsufficientRole({
        tenant_id,
        message: "members may set budgets only on their own API keys; specify a key in applies_to.key"
      })
    yield* checkConditions(parts, caller, budget)
    const id = idAt("bud", now) as BudgetId
    const terms = newTerms(budget, { by_operator: false, created_by: account_id }, now)
    const row = {
      id,
      tenant_id,
      key_id: key ?? null,
      created_by: account_id,
      template_id: null,
      template_revision: null,
      revision: 1
    }
    yield* writer
      .submit({
        postings: [setBudget(id, tenant_id, key, terms)],
        statements: [
          storage.tenantHasRoom(tenant_id),
          ...(manager ? [] : [storage.memberHasRoom(tenant_id, account_id)]),
          storage.insert({ ...row, by_operator: 0 })
        ]
      })
      .pipe(
        Effect.catchTags({
          AccountMissing: Effect.die,
          Conflict: ({ statement }) =>
            new TooManyBudgets({ limit: statement === 0 ? Storage.perTenantMax : Storage.perMemberMax })
        })
      )
    return yield* Effect.orDie(makeFind(parts)({ caller, budget_id: id }))
  })

// ---- changing and deleting ----------------------------------------------------------------------------------------------

const makeChange = (parts: Parts): BudgetsContract["change"] => {
  const change: BudgetsContract["change"] = Effect.fn("Budgets.change")(function* (request) {
    const now = yield* Clock.currentTimeMillis
    const found = yield* readToChange(parts, request)
    const terms = yield* changedTerms(found.budget.terms, request.change, now)
    const done = yield* write(parts, found, terms, [parts.storage.change(found.row)])
    return yield* done ? makeFind(parts)(request) : change(request)
  })
  return change
}

const makeRaise = (parts: Parts): BudgetsContract["raise"] => {
  const raise: BudgetsContract["raise"] = Effect.fn("Budgets.raise")(function* (request) {
    const { caller } = request
    const now = yield* Clock.currentTimeMillis
    const found = yield* readToChange(parts, request)
    const terms = yield* raisedTerms(found.budget.terms, request.raise, now)
    const done = yield* write(parts, found, terms, [
      parts.storage.change(found.row),
      ...parts.storage.raise(found.row, request.raise, caller.account_id, now),
      ...(yield* parts.notices.ofRaise(caller, found.budget, request.raise, now))
    ])
    return yield* done ? makeFind(parts)(request) : raise(request)
  })
  return raise
}

const makeRemove = (parts: Parts): BudgetsContract["remove"] => {
  const remove: BudgetsContract["remove"] = Effect.fn("Budgets.remove")(function* (request) {
    const found = yield* readToChange(parts, request)
    const budget = (yield* allShown(parts, [found.budget], yield* Clock.currentTimeMillis))[0]!
    const done = yield* write(parts, found, null, parts.storage.remove(found.row))
    return done ? budget : yield* remove(request)
  })
  return remove
}
