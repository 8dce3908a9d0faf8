/** Makes, changes and ends the budgets of templates, as the operator changes templates and tenants change plans. */
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

/** Each step is guarded by revisions and by the one budget of a template and a tenant, so nodes may run it at the same time. */
export const follow = (name: string, parts: Parts) =>
  Effect.gen(function* () {
    const templates = yield* parts.templates.all
    for (const template of templates) if (template.plan !== null) yield* fill(name, parts, template, template.plan)
    const behind = yield* parts.templates.behind(pageMax)
    if (behind.length === 0) return
    const byId = new Map(templates.map((template) => [template.id as string, template]))
    yield* Loop.each(
      name,
      behind,
      ({ id }) => id,
      (row) => catchUp(parts, row, byId.get(row.template_id!))
    )
  })

/** Gives the budget to the tenants of a plan, and ends those of tenants that have left it. */
const fill = Effect.fnUntraced(function* (name: string, parts: Parts, template: Template, plan: string) {
  const tenants = new Set<string>(yield* parts.tenantsOf(plan))
  const rows = yield* parts.templates.budgets(template.id)
  const having = new Set(rows.map(({ tenant_id }) => tenant_id))
  const missing = [...tenants].filter((tenant) => !having.has(tenant))
  const left = rows.filter(({ tenant_id }) => !tenants.has(tenant_id!))
  yield* Loop.each(
    name,
    missing,
    (tenant) => tenant,
    (tenant) => give(parts, template, tenant as TenantId)
  )
  yield* Loop.each(
    name,
    left,
    ({ id }) => id,
    (row) => catchUp(parts, row, undefined)
  )
})

/** If another node gave it, or the template has changed, the next turn looks again. */
const give = Effect.fnUntraced(function* ({ storage, templates, writer }: Parts, template: Template, tenant: TenantId) {
  const { posting, row } = budgetFor(template, tenant, yield* Clock.currentTimeMillis)
  yield* writer
    .submit({ postings: [posting], statements: [templates.unchanged(template), storage.insertOnce(row)] })
    .pipe(Effect.catchTags({ AccountMissing: Effect.die, Conflict: () => Effect.void }))
})

/** Changes a budget as its template was changed, or ends it without one. */
const catchUp = Effect.fnUntraced(function* (parts: Parts, { id }: Row, template: Template | undefined) {
  const found = yield* Effect.catchTag(read(parts, id), "BudgetNotFound", () => Effect.succeed(undefined))
  if (found === undefined) return
  if (template === undefined) return yield* write(parts, found, null, parts.storage.remove(found.row))
  const now = yield* Clock.currentTimeMillis
  return yield* write(parts, found, followingTerms(found.budget.terms, template.terms, now), [
    parts.templates.unchanged(template),
    parts.templates.follow(found.row, template)
  ])
})
