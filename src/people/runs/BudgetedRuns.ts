/** Creates, lists and ends the runs of API keys. One transaction writes a run and its budget. `RunCallers` authenticates the keys. */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { budgetsOf } from "../../books/ledger/Budgets.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { newBudget } from "../../books/ledger/rules/Budget.ts"
import type { BudgetTerms } from "../../books/ledger/rules/Budget.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { usageOfRuns } from "../../books/ledger/RunUsage.ts"
import type { Caller } from "../../kernel/Caller.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { ApplicationId, RunId } from "../../kernel/Ids.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as Loop from "../../kernel/Loop.ts"
import { paginated } from "../../kernel/Page.ts"
import type { PageOf } from "../../kernel/Page.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import { InvalidKey } from "../credentials/Problems.ts"
import { Applications } from "../tenants/Applications.ts"
import type { ApplicationsContract } from "../tenants/Applications.ts"
import { Belonging } from "../tenants/Belonging.ts"
import type { BelongingContract } from "../tenants/Belonging.ts"
import { checkModels, KnownModels } from "../tenants/KnownModels.ts"
import * as Ended from "./Ended.ts"
import { RunNeedsKey, RunNotFound, TooManyRuns } from "./Problems.ts"
import { childrenMax, openMax } from "./Run.ts"
import type { NewRun, Run, RunDetails, RunPage, RunWithKey } from "./Run.ts"
import { keyPrefix } from "./RunCallers.ts"
import { hasRoom, isSeen, pathOf, shown, within } from "./RunRow.ts"
import type { Row } from "./RunRow.ts"
import { checkLimit, checkParentsModels, levelOf, tagsWithin } from "./Within.ts"

interface By {
  readonly caller: Caller
}
export interface OfRun extends By {
  readonly run_id: RunId
}

/** Money is in nano-USD; times are Unix times in milliseconds. */
export interface BudgetedRunsContract {
  /** Creates a child of the caller's API key or run. Only this response contains the run's key. */
  readonly create: (
    request: By & { readonly run: NewRun }
  ) => Effect.Effect<RunWithKey, InvalidRequest | InvalidKey | RunNeedsKey | TooManyRuns | BooksUnavailable>
  /** Returns a page of the runs that the caller may see, newest first. With `parent`, the page contains only that run's direct children. */
  readonly list: (request: By & PageOf & { readonly parent?: RunId | undefined }) => Effect.Effect<typeof RunPage.Type>
  readonly find: (request: OfRun) => Effect.Effect<RunDetails, RunNotFound>
  /**
   * Ends a run and its descendants, unless the run has already ended or expired. Open calls continue and are charged. The keys become invalid
   * immediately in this process, within two seconds on other nodes over PostgreSQL, and within `cacheLifetime` in another process on the same file.
   */
  readonly end: (request: OfRun) => Effect.Effect<Run, RunNotFound | BooksUnavailable>
  /** The job that ends expired and keyless runs and deletes old runs. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export class BudgetedRuns extends Context.Tag("tollgate/runs/BudgetedRuns")<BudgetedRuns, BudgetedRunsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(BudgetedRuns, make))
  static readonly layerJobs = Loop.layer(BudgetedRuns, ({ job }) => [job])
}

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
  readonly belonging: BelongingContract
  readonly applications: ApplicationsContract
  readonly known: KnownModels["Type"]
  /** The prefix of API keys, without the dash. */
  readonly prefix: string
}

const make = Effect.gen(function* () {
  const dependencies: Dependencies = {
    sql: yield* SqlClient,
    writer: yield* Writer,
    secret: yield* DeploymentSecret,
    belonging: yield* Belonging,
    applications: yield* Applications,
    known: yield* KnownModels,
    prefix: (yield* ServiceInfo).key_prefix
  }
  return {
    create: makeCreate(dependencies),
    list: makeList(dependencies),
    find: makeFind(dependencies),
    end: makeEnd(dependencies),
    job: Ended.make(dependencies)
  } satisfies BudgetedRunsContract
})

// ---- reading ------------------------------------------------------------------------------------------------------------

/** Converts rows to runs with their budgets. Drops a row without a budget, because both may be deleted between the two reads. */
const withBudgets = (sql: SqlClient, rows: ReadonlyArray<Row>, now: number): Effect.Effect<ReadonlyArray<Run>> =>
  Effect.map(
    budgetsOf(
      sql,
      rows.map(({ id }) => id),
      now
    ),
    (budgets) => {
      const found = new Map(budgets.map((budget) => [budget.id, budget]))
      return rows.flatMap((row) => {
        const budget = found.get(row.id)
        return budget === undefined ? [] : [shown(row, budget, now)]
      })
    }
  )

const makeList = ({ sql }: Dependencies): BudgetedRunsContract["list"] =>
  Effect.fn("BudgetedRuns.list")(function* ({ caller, page, parent, per_page }) {
    const wanted = parent === undefined ? isSeen(sql, caller) : sql`${isSeen(sql, caller)} AND parent = ${parent}`
    const [count] = yield* sql<{ readonly n: number }>`SELECT count(*) AS n FROM tollgate_runs WHERE ${wanted}`
    const rows = yield* sql<Row>`SELECT * FROM tollgate_runs WHERE ${wanted}
      ORDER BY id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
    const runs = yield* withBudgets(sql, rows, yield* Clock.currentTimeMillis)
    return paginated({ page, per_page }, count?.n ?? 0, runs)
  }, Effect.orDie)

/** Reads the row of a run that the caller may see. */
const rowOf = (sql: SqlClient, { caller, run_id }: OfRun): Effect.Effect<Row, RunNotFound> =>
  Effect.flatMap(
    Effect.orDie(sql<Row>`SELECT * FROM tollgate_runs WHERE id = ${run_id} AND ${isSeen(sql, caller)}`),
    ([row]) => (row === undefined ? new RunNotFound({ run_id }) : Effect.succeed(row))
  )

const oneOf = (sql: SqlClient, row: Row, now: number): Effect.Effect<Run, RunNotFound> =>
  Effect.flatMap(withBudgets(sql, [row], now), ([run]) =>
    run === undefined ? new RunNotFound({ run_id: row.id }) : Effect.succeed(run)
  )

const makeFind = ({ sql }: Dependencies): BudgetedRunsContract["find"] =>
  Effect.fn("BudgetedRuns.find")(function* (request) {
    const row = yield* rowOf(sql, request)
    const now = yield* Clock.currentTimeMillis
    const below = within(sql, row.path)
    const ids = yield* Effect.orDie(sql<{ readonly id: RunId }>`SELECT id FROM tollgate_runs WHERE ${below}`)
    const children = yield* Effect.orDie(
      sql<Row>`SELECT * FROM tollgate_runs WHERE ${below} AND parent = ${row.id} ORDER BY id DESC LIMIT ${childrenMax}`
    )
    const sums = yield* usageOfRuns(
      sql,
      row.tenant_id,
      ids.map(({ id }) => id)
    )
    return {
      ...(yield* oneOf(sql, row, now)),
      by_model: sums.map(({ completion_tokens, cost, model, prompt_tokens, requests }) => ({
        model,
        requests,
        cost_usd: cost,
        prompt_tokens,
        completion_tokens
      })),
      children: yield* withBudgets(sql, children, now)
    }
  })

// ---- creating -----------------------------------------------------------------------------------------------------------

/** The expiry and the models that a new run inherits from its parent. */
interface Parent {
  readonly expires_at: number
  /** The parent's models, serialized as in its row. */
  readonly models: string | null
}

/** Reads the parent: the caller's run, or else its key. Returns `undefined` if the run has ended or the key is unusable. */
const parentOf = (
  { applications, sql }: Dependencies,
  application: ApplicationId,
  run: string | undefined
): Effect.Effect<Parent | undefined> =>
  run === undefined
    ? Effect.map(applications.holderOf(application), (holder) =>
        holder === undefined ? undefined : { expires_at: holder.expires_at ?? Number.POSITIVE_INFINITY, models: null }
      )
    : Effect.map(
        Effect.orDie(sql<Parent>`SELECT expires_at, models FROM tollgate_runs WHERE id = ${run} AND ended_at IS NULL`),
        ([row]) => row
      )

const termsOf = ({ account_id }: Caller, id: RunId, { limit, name }: NewRun, now: number): BudgetTerms => ({
  name: name === "" ? id : name,
  limit,
  period: "total",
  applies_to: {},
  mode: "refuse",
  notify_at: [],
  raises: [],
  by_operator: false,
  created_by: account_id,
  created_at: now
})

type Below = Pick<Row, "application_id" | "expires_at" | "level" | "models" | "tags">

const newRow = ({ prefix, secret }: Dependencies, caller: Caller, run: NewRun, below: Below, now: number) => {
  const start = keyPrefix(prefix)
  const api_key = `${start}${randomBytes(32).toString("hex")}`
  const id = Ids.at("run", now) as RunId
  const { account_id, labels, runs = [], tenant_id } = caller
  const row: Row = {
    ...below,
    id,
    tenant_id,
    account_id,
    parent: (runs[0] as RunId | undefined) ?? null,
    path: pathOf([id, ...runs]),
    name: run.name,
    key_hash: secret.hash("run_key", api_key),
    key_prefix: api_key.slice(0, start.length + 5),
    end_user: labels?.end_user ?? "",
    created_at: now,
    ended_at: null
  }
  return { api_key, row }
}

const makeCreate = (dependencies: Dependencies): BudgetedRunsContract["create"] =>
  Effect.fn("BudgetedRuns.create")(function* ({ caller, run }) {
    const { known, sql } = dependencies
    const { application_id, runs = [] } = caller
    if (application_id === null) return yield* new RunNeedsKey()
    const now = yield* Clock.currentTimeMillis
    const level = yield* levelOf(caller)
    yield* checkParentsModels(run.models, caller)
    yield* checkModels(known, run.models, caller.allowed_models, "models")
    const tags = yield* tagsWithin(run.tags, caller)
    const parent = yield* parentOf(dependencies, application_id, runs[0])
    if (parent === undefined || parent.expires_at <= now) return yield* new InvalidKey()
    const ancestors = yield* budgetsOf(sql, [...runs, application_id], now)
    const nearest = [...runs, application_id]
    const budgets = ancestors.toSorted((a, b) => nearest.indexOf(a.id) - nearest.indexOf(b.id))
    yield* checkLimit(run.limit, budgets, now)
    const { api_key, row } = newRow(
      dependencies,
      caller,
      run,
      {
        application_id,
        level,
        expires_at: Math.min(now + run.expires_in * 1_000, parent.expires_at),
        models: run.models === undefined ? parent.models : JSON.stringify([...new Set(run.models)]),
        tags
      },
      now
    )
    const terms = termsOf(caller, row.id, run, now)
    yield* write(dependencies, row, terms, runs)
    const base = { id: row.id, kind: "run", tenant_id: row.tenant_id, anchor: row.id, terms } as const
    return { ...shown(row, newBudget(base, now), now), api_key }
  })

/** Writes a run with its budget. Fails if the tenant has too many open runs or an ancestor has ended. */
const write = (
  { sql, writer }: Dependencies,
  row: Row,
  terms: BudgetTerms,
  above: ReadonlyArray<string>
): Effect.Effect<void, InvalidKey | TooManyRuns | BooksUnavailable> => {
  const { id, tenant_id: tenant } = row
  const isOpen = sql`SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM tollgate_runs
    WHERE id IN (SELECT value FROM json_each(${JSON.stringify(above)})) AND ended_at IS NOT NULL)`
  return writer
    .submit({
      postings: [
        { _tag: "SetBudget", id, kind: "run", anchor: id, tenant, account: Ids.billingAccountOf(tenant), terms }
      ],
      statements: [
        statement(hasRoom(sql, tenant, row.created_at), 1),
        ...(above.length === 0 ? [] : [statement(isOpen, 1)]),
        statement(sql`INSERT INTO tollgate_runs ${sql.insert({ ...row })}`)
      ]
    })
    .pipe(
      Effect.asVoid,
      Effect.catchTags({
        // Every tenant has a billing account.
        AccountMissing: Effect.die,
        Conflict: ({ statement }): Effect.Effect<never, InvalidKey | TooManyRuns> =>
          statement === 0 ? new TooManyRuns({ open_max: openMax }) : new InvalidKey()
      })
    )
}

// ---- ending -------------------------------------------------------------------------------------------------------------

const makeEnd = ({ belonging, sql, writer }: Dependencies): BudgetedRunsContract["end"] =>
  Effect.fn("BudgetedRuns.end")(function* (request) {
    const now = yield* Clock.currentTimeMillis
    const row = yield* rowOf(sql, request)
    const [budget] = yield* budgetsOf(sql, [row.id], now)
    if (budget === undefined) return yield* new RunNotFound({ run_id: row.id })
    if (row.ended_at !== null || row.expires_at <= now) return shown(row, budget, now)
    const open: Fragment = sql`${within(sql, row.path)} AND ended_at IS NULL`
    const ended = Statements.write(writer, statement(sql`UPDATE tollgate_runs SET ended_at = ${now} WHERE ${open}`))
    // The cached callers of all runs below contain this run's mark.
    yield* afterCommit(ended, belonging.changed(row.id))
    return shown({ ...row, ended_at: now }, budget, now)
  })
