/** Creates, updates and deletes template budgets after the operator changes a template or a tenant changes its plan. */
import { Clock, Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import * as Loop from "../../kernel/Loop.ts"
import { read, write } from "./Stored.ts"
import type { Parts } from "./Stored.ts"
import { budgetFor } from "./Templates.ts"
import type { Template } from "./Templates.ts"
import { followingTerms } from "./Terms.ts"
import type { Row } from "./Storage.ts"

const pageMax = 500

/**
 * Applies changes to template budgets. Revisions and the unique row per template and tenant guard each step, so several nodes can run this
 * concurrently.
 */
export const follow = (name: string, parts: Parts) =>
  Effect.gen(function* () {
    const templates = yield* parts.templates.all
    for (const template of templates) if (template.plan !== null) yield* syncPlan(name, parts, template, template.plan)
    const behind = yield* parts.templates.behind(pageMax)
    if (behind.length === 0) return
    const byId = new Map(templates.map((template) => [template.id as string, template]))
    yield* Loop.each(
      name,
      behind,
      ({ id }) => id,
      (row) => applyTemplate(parts, row, byId.get(row.template_id!))
    )
  })

/** Creates the template's budget for each tenant on the plan, and deletes it for tenants that have left the plan. */
const syncPlan = Effect.fnUntraced(function* (name: string, parts: Parts, template: Template, plan: string) {
  const tenants = new Set<string>(yield* parts.tenantsOf(plan))
  const rows = yield* parts.templates.budgets(template.id)
  const having = new Set(rows.map(({ tenant_id }) => tenant_id))
  const missing = [...tenants].filter((tenant) => !having.has(tenant))
  const left = rows.filter(({ tenant_id }) => !tenants.has(tenant_id!))
  yield* Loop.each(
    name,
    missing,
    (tenant) => tenant,
    (tenant) => createFor(parts, template, tenant as TenantId)
  )
  yield* Loop.each(
    name,
    left,
    ({ id }) => id,
    (row) => applyTemplate(parts, row, undefined)
  )
})

/**
 * Creates the template's budget for a tenant. Does nothing if another node has created it or the template has changed; in both cases, the next
 * iteration checks again.
 */
const createFor = Effect.fnUntraced(function* (
  { storage, templates, writer }: Parts,
  template: Template,
  tenant: TenantId
) {
  const { posting, row } = budgetFor(template, tenant, yield* Clock.currentTimeMillis)
  yield* writer
    .submit({ postings: [posting], statements: [templates.unchanged(template), storage.insertOnce(row)] })
    .pipe(Effect.catchTags({ AccountMissing: Effect.die, Conflict: () => Effect.void }))
})

/** Applies the template's change to the budget, or deletes the budget if the template no longer exists. */
const applyTemplate = Effect.fnUntraced(function* (parts: Parts, { id }: Row, template: Template | undefined) {
  const found = yield* Effect.catchTag(read(parts, id), "BudgetNotFound", () => Effect.succeed(undefined))
  if (found === undefined) return
  if (template === undefined) return yield* write(parts, found, null, parts.storage.remove(found.row))
  const now = yield* Clock.currentTimeMillis
  return yield* write(parts, found, followingTerms(found.budget.terms, template.terms, now), [
    parts.templates.unchanged(template),
    parts.templates.follow(found.row, template)
  ])
})
