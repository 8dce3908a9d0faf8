/** The operator's templates. Each creates a separate budget per tenant on a plan or per new tenant. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import type { BudgetLimit, BudgetTerms } from "../../books/ledger/rules/Budget.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { NewTenantBudgets } from "../../people/tenants/NewTenantBudgets.ts"
import { setBudget } from "./Stored.ts"
import type { BudgetId } from "./Budget.ts"
import * as Storage from "./Storage.ts"
import type { Row } from "./Storage.ts"

export interface Template {
  readonly id: BudgetId
  /** Null if the template is for new tenants. */
  readonly plan: string | null
  readonly terms: BudgetTerms
  /** Incremented by each change to the template. A budget's row contains the revision that the budget follows. */
  readonly revision: number
}

interface StoredTemplate extends Omit<Template, "terms"> {
  readonly terms: string
}

interface StoredTerms extends Omit<BudgetTerms, "limit"> {
  readonly limit: Omit<BudgetLimit, "usd"> & { readonly usd?: string }
}

const toText = ({ limit: { usd, ...limit }, ...terms }: BudgetTerms): string =>
  JSON.stringify({
    ...terms,
    limit: { ...limit, ...(usd !== undefined && { usd: `${usd}` }) }
  } satisfies StoredTerms)

const templateOf = ({ terms: text, ...template }: StoredTemplate): Template => {
  const { limit, ...terms } = JSON.parse(text) as StoredTerms
  const { usd, ...counted } = limit
  return { ...template, terms: { ...terms, limit: { ...counted, ...(usd !== undefined && { usd: BigInt(usd) }) } } }
}

const columns = "id, plan, terms, revision"

export const make = (sql: SqlClient) => ({
  /** All templates, oldest first. */
  all: Effect.map(
    Effect.orDie(sql<StoredTemplate>`SELECT ${sql.literal(columns)} FROM tollgate_budgets_templates ORDER BY id`),
    (rows) => rows.map(templateOf)
  ),

  find: (id: BudgetId): Effect.Effect<Template | undefined> =>
    Effect.map(
      Effect.orDie(
        sql<StoredTemplate>`SELECT ${sql.literal(columns)} FROM tollgate_budgets_templates WHERE id = ${id}`
      ),
      ([row]) => row && templateOf(row)
    ),

  budgets: (id: BudgetId): Effect.Effect<ReadonlyArray<Row>> =>
    Effect.orDie(sql<Row>`SELECT * FROM tollgate_budgets_budgets WHERE template_id = ${id} ORDER BY tenant_id`),

  /** Reads budgets that do not yet reflect their template's latest revision, and budgets whose template was deleted. */
  behind: (limit: number): Effect.Effect<ReadonlyArray<Row>> =>
    Effect.orDie(sql<Row>`SELECT b.* FROM tollgate_budgets_budgets b
      LEFT JOIN tollgate_budgets_templates t ON t.id = b.template_id
      WHERE b.template_id IS NOT NULL AND (t.id IS NULL OR t.revision <> b.template_revision) ORDER BY b.id LIMIT ${limit}`),

  insert: ({ id, plan, revision, terms }: Template): Statement =>
    statement(sql`INSERT INTO tollgate_budgets_templates (id, plan, terms, created_at, revision)
      VALUES (${id}, ${plan}, ${toText(terms)}, ${terms.created_at}, ${revision})`),

  /** Changes the template. Fails the transaction if the template has changed since it was read. */
  change: ({ id, revision }: Template, terms: BudgetTerms): Statement =>
    statement(
      sql`UPDATE tollgate_budgets_templates SET terms = ${toText(terms)}, revision = revision + 1
        WHERE id = ${id} AND revision = ${revision} RETURNING id`,
      1
    ),

  remove: ({ id, revision }: Template): Statement =>
    statement(sql`DELETE FROM tollgate_budgets_templates WHERE id = ${id} AND revision = ${revision} RETURNING id`, 1),

  unchanged: ({ id, revision }: Template): Statement =>
    statement(sql`SELECT 1 AS found FROM tollgate_budgets_templates WHERE id = ${id} AND revision = ${revision}`, 1),

  /** Records the template revision that a budget follows. Fails the transaction if the budget has changed since it was read. */
  follow: ({ id, revision }: Row, template: Template): Statement =>
    statement(
      sql`UPDATE tollgate_budgets_budgets SET revision = revision + 1, template_revision = ${template.revision}
        WHERE id = ${id} AND revision = ${revision} RETURNING id`,
      1
    )
})

export type Templates = ReturnType<typeof make>

/** Derives the id of a template's budget for a tenant, identical on every node. */
const idOf = (template: string, tenant: string): BudgetId =>
  `bud_${createHash("sha256").update(`${template} ${tenant}`).digest("hex").slice(0, 22)}` as BudgetId

/** Builds the posting and row that create a template's budget for a tenant. */
export const budgetFor = ({ id: template_id, revision, terms }: Template, tenant: string, now: number) => {
  const id = idOf(template_id, tenant)
  const row: Row = {
    id,
    tenant_id: tenant,
    key_id: null,
    created_by: terms.created_by,
    by_operator: 1,
    template_id,
    template_revision: revision,
    revision: 1
  }
  return { posting: setBudget(id, tenant, undefined, { ...terms, created_at: now }), row }
}

/** Creates a new tenant's budgets in the transaction that creates the tenant. */
export const layerNewTenants = Layer.effect(
  NewTenantBudgets,
  Effect.map(SqlClient, (sql) => {
    const { all } = make(sql)
    const { insert } = Storage.make(sql)
    return (tenant: string, now: number) =>
      Effect.map(all, (templates) => {
        const made = templates.flatMap((one) => (one.plan === null ? [budgetFor(one, tenant, now)] : []))
        return { postings: made.map(({ posting }) => posting), statements: made.map(({ row }) => insert(row)) }
      })
  })
)
