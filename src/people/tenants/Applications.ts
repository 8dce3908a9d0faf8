/**
 * A tenant's applications and their API keys. Members may access their own applications; owners and admins may access all of them. The ledger
 * contains spending limits; the table of applications contains everything else.
 *
 * Where the specification is silent:
 * - A member may have 1,000 applications in a tenant. A further application is rejected with 409 `too_many_applications`. An application with an
 *   ended sign-in does not count, and creating another application deletes up to 20 of these.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import type { ExpiredKey } from "../credentials/Problems.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { isLive } from "../credentials/Families.ts"
import type { Actor, Caller } from "../../kernel/Caller.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { paginated } from "../../kernel/Page.ts"
import type { PageOf } from "../../kernel/Page.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { limitsOf } from "../../books/ledger/Budgets.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Posting, Statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type {
  Application,
  ApplicationChange,
  ApplicationPage,
  ApplicationWithKey,
  NewApplication
} from "./Application.ts"
import { Belonging } from "./Belonging.ts"
import type { BelongingContract } from "./Belonging.ts"
import * as Bounds from "./Bounds.ts"
import { fromRow, isManager, isReached, modelsToRow, tagsToRow } from "./ApplicationRow.ts"
import type { Operator, Row } from "./ApplicationRow.ts"
import { checkModels, KnownModels } from "./KnownModels.ts"
import * as KeyCallers from "./KeyCallers.ts"
import { ApplicationNotFound, InsufficientRole, TooManyApplications } from "./Problems.ts"

export type { Operator }

export interface By {
  readonly caller: Actor | Operator
}
export interface OfApplication extends By {
  readonly application_id: ApplicationId
}

/** Times are Unix times in milliseconds. */
export interface ApplicationsContract {
  /** Creates an application. Only this response contains its key. */
  readonly create: (request: {
    readonly caller: Actor & Pick<Caller, "oauth_client" | "sign_in">
    readonly application: NewApplication
    /** The name of the caller's OAuth client. Defaults to its id. */
    readonly client_name?: string | undefined
    /** Whether the operator sets the limits, so that the member may only tighten them. */
    readonly isBound?: boolean | undefined
    /** Statements to add to the transaction. */
    readonly beside?: ((id: ApplicationId) => ReadonlyArray<Statement>) | undefined
  }) => Effect.Effect<ApplicationWithKey, InvalidRequest | TooManyApplications | BooksUnavailable>
  /** Returns a page of the applications that the caller may access, newest first. */
  readonly list: (request: By & PageOf) => Effect.Effect<typeof ApplicationPage.Type>
  readonly find: (request: OfApplication) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole>
  readonly change: (
    request: OfApplication & { readonly change: ApplicationChange }
  ) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole | InvalidRequest | BooksUnavailable>
  /**
   * Deletes an application in the same transaction as `beside`. Its key becomes invalid immediately in this process, within two seconds on other
   * nodes over PostgreSQL, and within `cacheLifetime` in another process on the same file.
   */
  readonly remove: (
    request: OfApplication,
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole | BooksUnavailable>
  /** Returns the caller that an API key identifies, or `undefined` if the key is unknown or unusable. Fails if the key has expired. */
  readonly callerOf: (key: string) => Effect.Effect<Caller | undefined, ExpiredKey>
  /** Returns the holder of an application's key, or `undefined` if the key is unusable. */
  readonly holderOf: (id: ApplicationId) => Effect.Effect<KeyCallers.Holder | undefined>
  /** Returns the ids of deleted applications among `ids`. */
  readonly deletedAmong: (ids: ReadonlyArray<ApplicationId>) => Effect.Effect<ReadonlyArray<ApplicationId>>
  /** Returns the cached caller of a key, or `undefined` if there is none. */
  readonly rememberedCallerOf: (key: string) => Caller | undefined
}

export class Applications extends Context.Tag("tollgate/tenants/Applications")<Applications, ApplicationsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Applications, make))
}

/** The maximum number of applications that a member may have in one tenant. */
const applicationsMax = 1_000

/** The maximum number of applications with ended sign-ins that one creation deletes. */
const sweptMax = 20

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
  readonly belonging: BelongingContract
  /** The prefix of API keys, without the dash. */
  readonly prefix: string
  readonly known: KnownModels["Type"]
}

const make = Effect.gen(function* () {
  const [sql, writer, secret, belonging] = [yield* SqlClient, yield* Writer, yield* DeploymentSecret, yield* Belonging]
  const dependencies: Dependencies = {
    sql,
    writer,
    secret,
    belonging,
    prefix: (yield* ServiceInfo).key_prefix,
    known: yield* KnownModels
  }
  const keyCallers = KeyCallers.make(sql, writer, secret, belonging, yield* Effect.clock)
  const find = makeFind(sql)
  return {
    create: makeCreate(dependencies),
    list: makeList(sql),
    find,
    change: makeChange(dependencies, find),
    remove: makeRemove(dependencies, find),
    callerOf: keyCallers.callerOf,
    holderOf: (id) => KeyCallers.holderOf(sql, id),
    deletedAmong: deletedAmong(sql),
    rememberedCallerOf: keyCallers.remembered
  } satisfies ApplicationsContract
})

// ---- reading ------------------------------------------------------------------------------------------------------------

const live = (sql: SqlClient) => isLive(sql, "family_id")

const shown = (sql: SqlClient, rows: ReadonlyArray<Row>, now: number): Effect.Effect<ReadonlyArray<Application>> => {
  const ids = rows.map(({ id }) => id)
  return Effect.map(limitsOf(sql, ids, now), (limits) => rows.map((row) => fromRow(row, limits.get(row.id))))
}

const makeList = (sql: SqlClient): ApplicationsContract["list"] =>
  Effect.fn("Applications.list")(function* ({ caller, page, per_page }) {
    const wanted = sql`tenant_id = ${caller.tenant_id} AND ${isReached(sql, caller)} AND ${live(sql)}`
    const [count] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_tenants_applications WHERE ${wanted}`
    const rows = yield* sql<Row>`SELECT * FROM tollgate_tenants_applications WHERE ${wanted}
      ORDER BY id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
    return paginated({ page, per_page }, count?.n ?? 0, yield* shown(sql, rows, yield* Clock.currentTimeMillis))
  }, Effect.orDie)

/** Reads the row of an application that the caller may access. */
const rowOf = Effect.fnUntraced(function* (sql: SqlClient, { application_id, caller }: OfApplication) {
  const { tenant_id } = caller
  const [row] = yield* Effect.orDie(
    sql<Row & { readonly reached: number; readonly manages: number }>`
      SELECT *, ${isReached(sql, caller)} AS reached, ${isManager(sql, caller)} AS manages
      FROM tollgate_tenants_applications WHERE tenant_id = ${tenant_id} AND id = ${application_id} AND ${live(sql)}`
  )
  if (row === undefined) return yield* new ApplicationNotFound({ application_id })
  if (row.reached !== 1) return yield* new InsufficientRole({ tenant_id })
  return row
})

const makeFind = (sql: SqlClient): ApplicationsContract["find"] =>
  Effect.fn("Applications.find")(function* (request) {
    const row = yield* rowOf(sql, request)
    return (yield* shown(sql, [row], yield* Clock.currentTimeMillis))[0]!
  })

const deletedAmong =
  (sql: SqlClient): ApplicationsContract["deletedAmong"] =>
  (ids) =>
    Effect.map(
      Effect.orDie(
        sql<Pick<Row, "id">>`SELECT id FROM tollgate_tenants_applications
          WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
      ),
      (rows) => {
        const found = new Set(rows.map(({ id }) => id))
        return ids.filter((id) => !found.has(id))
      }
    )

// ---- limits -------------------------------------------------------------------------------------------------------------

type SetLimit = Extract<Posting, { readonly _tag: "SetLimit" }>

const setLimit = (application: ApplicationId, tenant: TenantId, limit: SetLimit["limit"]): SetLimit => ({
  _tag: "SetLimit",
  application,
  tenant,
  account: Ids.billingAccountOf(tenant),
  limit
})

/** Computes the spending limit after a change. Null removes the limit, and `undefined` leaves it unchanged. */
const limitAfter = (
  { spending_limit_period: period, spending_limit_usd: amount }: ApplicationChange,
  before: Application | undefined
): Effect.Effect<SetLimit["limit"] | undefined, InvalidRequest> => {
  if (amount === null) return Effect.succeed(null)
  const now = amount ?? before?.spending_limit_usd
  if (now === undefined)
    return period === undefined
      ? Effect.succeed(undefined)
      : InvalidRequest.of("spending_limit_period", "requires a spending_limit_usd")
  if (amount === undefined && period === undefined) return Effect.succeed(undefined)
  return Effect.succeed({ amount: now, period: period ?? before?.spending_limit_period ?? "total" })
}

const checkEnd = (expires_at: number | null | undefined, now: number): Effect.Effect<void, InvalidRequest> =>
  typeof expires_at === "number" && expires_at <= now
    ? InvalidRequest.of("expires_at", "must be in the future; to revoke the key now, delete the application")
    : Effect.void

/** Every tenant has a billing account. */
const broken = { AccountMissing: Effect.die } as const

// ---- creating -----------------------------------------------------------------------------------------------------------

const spendingOf = ({ spending_limit_period: period = "total", spending_limit_usd: amount }: ApplicationChange) =>
  amount == null ? null : { amount, period }

const newRow = (
  { prefix, secret }: Dependencies,
  {
    application: { allowed_models = null, description, expires_at = null, name, tags = null, ...spending },
    isBound = false,
    caller: { account_id, oauth_client, sign_in, tenant_id },
    client_name
  }: Parameters<ApplicationsContract["create"]>[0],
  now: number
) => {
  const api_key = `${prefix}-prod-${randomBytes(32).toString("hex")}`
  const row: Row = {
    id: Ids.at("app", now) as ApplicationId,
    name,
    description,
    account_id,
    key_hash: secret.hash("api_key", api_key),
    key_prefix: api_key.slice(0, prefix.length + 10),
    last_used_at: null,
    created_at: now,
    updated_at: now,
    tenant_id,
    expires_at,
    allowed_models: modelsToRow(allowed_models),
    tags: tagsToRow(tags),
    client_id: oauth_client ?? null,
    client_name: oauth_client === undefined ? null : (client_name ?? oauth_client),
    family_id: sign_in ?? null,
    bounds: isBound
      ? Bounds.toRow(
          Bounds.including({}, { spending: spendingOf(spending), expires_at, allowed_models, tags: tagsToRow(tags) })
        )
      : null
  }
  return { api_key, row }
}

/** Builds the postings and statements that delete a few of the member's applications with ended sign-ins. */
const sweep = Effect.fnUntraced(function* (sql: SqlClient, { account_id, tenant_id }: Actor) {
  const ended = yield* Effect.orDie(sql<{ id: ApplicationId }>`SELECT id FROM tollgate_tenants_applications
    WHERE tenant_id = ${tenant_id} AND account_id = ${account_id} AND NOT ${live(sql)} LIMIT ${sweptMax}`)
  const ids = ended.map(({ id }) => id)
  return {
    postings: ids.map((id) => setLimit(id, tenant_id, null)),
    statements: ids.map((id) => statement(sql`DELETE FROM tollgate_tenants_applications WHERE id = ${id}`))
  }
})

const makeCreate = (dependencies: Dependencies): ApplicationsContract["create"] =>
  Effect.fn("Applications.create")(function* (request) {
    const { known, sql, writer } = dependencies
    const { account_id, tenant_id } = request.caller
    const now = yield* Clock.currentTimeMillis
    yield* checkEnd(request.application.expires_at, now)
    yield* checkModels(known, request.application.allowed_models)
    const limit = (yield* limitAfter(request.application, undefined)) ?? null
    const { api_key, row } = newRow(dependencies, request, now)
    const swept = yield* sweep(sql, request.caller)
    const hasRoom = sql`SELECT 1 WHERE (SELECT count(*) FROM tollgate_tenants_applications
      WHERE tenant_id = ${tenant_id} AND account_id = ${account_id} AND ${live(sql)}) < ${sql.literal(String(applicationsMax))}`
    const inserted = sql`INSERT INTO tollgate_tenants_applications ${sql.insert({ ...row })}`
    yield* Effect.catchTags(
      writer.submit({
        postings: [...swept.postings, ...(limit === null ? [] : [setLimit(row.id, tenant_id, limit)])],
        statements: [
          ...swept.statements,
          statement(hasRoom, 1),
          statement(inserted),
          ...(request.beside?.(row.id) ?? [])
        ]
      }),
      { ...broken, Conflict: () => new TooManyApplications() }
    )
    return { ...(yield* shown(sql, [row], now))[0]!, api_key }
  })

// ---- changing and deleting ----------------------------------------------------------------------------------------------

/** Writes a change. Returns `false` if the statement matched no row, because the caller lost access or the application changed. */
const tryUpdate = (
  writer: WriterContract,
  change: Parameters<typeof statement>[0],
  postings: ReadonlyArray<SetLimit>,
  beside: ReadonlyArray<Statement> = []
) =>
  writer
    .submit({ postings, statements: [statement(change, 1), ...beside] })
    .pipe(Effect.as(true), Effect.catchTags({ ...broken, Conflict: () => Effect.succeed(false) }))

const makeChange = (
  { belonging, known, sql, writer }: Dependencies,
  find: ApplicationsContract["find"]
): ApplicationsContract["change"] => {
  const change: ApplicationsContract["change"] = Effect.fn("Applications.change")(function* (request) {
    const { application_id, caller } = request
    const row = yield* rowOf(sql, request)
    const now = yield* Clock.currentTimeMillis
    const before = (yield* shown(sql, [row], now))[0]!
    const { allowed_models, description = null, expires_at, name = null } = request.change
    const tags = request.change.tags === undefined ? undefined : tagsToRow(request.change.tags)
    yield* checkEnd(expires_at, now)
    yield* checkModels(known, allowed_models, before.allowed_models)
    const limit = yield* limitAfter(request.change, before)
    const bounds = yield* boundsAfter(row, caller, { spending: limit, expires_at, allowed_models, tags })
    const changes = [
      sql`bounds = ${Bounds.toRow(bounds)}`,
      sql`name = coalesce(${name}, name)`,
      sql`description = coalesce(${description}, description)`,
      sql`updated_at = ${now}`
    ]
    if (expires_at !== undefined) changes.push(sql`expires_at = ${expires_at}`)
    if (allowed_models !== undefined) changes.push(sql`allowed_models = ${modelsToRow(allowed_models)}`)
    if (tags !== undefined) changes.push(sql`tags = ${tags}`)
    const allowed = row.manages === 1 ? isManager(sql, caller) : isReached(sql, caller)
    const written = tryUpdate(
      writer,
      sql`UPDATE tollgate_tenants_applications SET ${sql.csv(changes)}
        WHERE tenant_id = ${caller.tenant_id} AND id = ${application_id}
          AND bounds IS NOT DISTINCT FROM ${row.bounds} AND ${allowed} RETURNING id`,
      limit === undefined ? [] : [setLimit(application_id, caller.tenant_id, limit)]
    )
    // The ledger reads the spending limit on each call. The other limits are in the key cache.
    const isCached = expires_at !== undefined || allowed_models !== undefined || tags !== undefined
    const changed = yield* isCached ? afterCommit(written, belonging.changed(application_id)) : written
    return yield* changed ? find(request) : change(request)
  })
  return change
}

const makeRemove = (
  { belonging, sql, writer }: Dependencies,
  find: ApplicationsContract["find"]
): ApplicationsContract["remove"] => {
  const remove: ApplicationsContract["remove"] = Effect.fn("Applications.remove")(function* (request, beside) {
    const { application_id, caller } = request
    const application = yield* find(request)
    const deleted = tryUpdate(
      writer,
      sql`DELETE FROM tollgate_tenants_applications
        WHERE tenant_id = ${caller.tenant_id} AND id = ${application_id} AND ${isReached(sql, caller)} RETURNING id`,
      [setLimit(application_id, caller.tenant_id, null)],
      beside
    )
    const done = yield* afterCommit(deleted, belonging.changed(application_id))
    return done ? application : yield* remove(request, beside)
  })
  return remove
}

/** Returns an application's bounds after a change. Rejects a member's change that violates them. */
const boundsAfter = (
  row: Row & { readonly manages: number },
  { account_id, tenant_id }: By["caller"],
  requested: Bounds.BoundsChange
): Effect.Effect<Bounds.Bounds, InsufficientRole> => {
  const bounds = Bounds.ofRow(row.bounds)
  if (row.manages === 1)
    return Effect.succeed(
      row.account_id === account_id ? Bounds.without(bounds, requested) : Bounds.including(bounds, requested)
    )
  return Bounds.permits(bounds, requested)
    ? Effect.succeed(bounds)
    : new InsufficientRole({
        tenant_id,
        message: "an owner or admin set this limit; only they may raise or remove it"
      })
}

/** Deletes the API keys, because they were issued under the old secret. */
export const apiKeysEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_tenants_applications`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_tenants_applications`)],
  notice: (n) => `${n} API keys are deleted; people must create new ones`
}
