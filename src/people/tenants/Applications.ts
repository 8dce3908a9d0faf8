/**
 * Applications of a tenant and their API keys: made, listed, renamed, limited, deleted, and recognised when they call. A member reaches
 * their own, owners and admins reach all. A key that an OAuth client made is there as long as the client's sign-in. Spending limits are the ledger's, which holds them; the rest stands in this room's table.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/Ending.ts"
import type { ExpiredKey } from "../credentials/Problems.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { isLive } from "../credentials/Families.ts"
import type { Actor, Caller } from "../../kernel/Caller.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { paginated } from "../../kernel/Page.ts"
import type { PageOf } from "../../kernel/Page.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { limitsOf } from "../../books/ledger/Calls.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { Limit, Posting, Statement } from "../../books/ledger/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/Writer.ts"
import type {
  Application,
  ApplicationChange,
  ApplicationPage,
  ApplicationWithKey,
  NewApplication
} from "./Application.ts"
import { Belonging } from "./Belonging.ts"
import * as Bounds from "./Bounds.ts"
import * as KeyCallers from "./KeyCallers.ts"
import { ApplicationNotFound, InsufficientRole } from "./Problems.ts"

/** Who acts, in which tenant. Without an account it is the operator, who reaches every application of the tenant. */
export interface Operator {
  readonly tenant_id: TenantId
  readonly account_id: null
}
export interface By {
  readonly caller: Actor | Operator
}
/** An application of the caller's tenant. */
export interface OfApplication extends By {
  readonly application_id: ApplicationId
}

/** A member reaches their own applications, owners and admins all of the tenant. Times are milliseconds since 1970. */
export interface ApplicationsContract {
  /** Only this answer holds the key. */
  readonly create: (request: {
    readonly caller: Actor & Pick<Caller, "oauth_client" | "sign_in">
    readonly application: NewApplication
    /** What the caller's OAuth client is called; its id unless it is said. */
    readonly client_name?: string | undefined
  }) => Effect.Effect<ApplicationWithKey, InvalidRequest | BooksUnavailable>
  /** A page of those that the caller reaches, newest first. */
  readonly list: (request: By & PageOf) => Effect.Effect<typeof ApplicationPage.Type>
  readonly find: (request: OfApplication) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole>
  readonly change: (
    request: OfApplication & { readonly change: ApplicationChange }
  ) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole | InvalidRequest | BooksUnavailable>
  /**
   * Its key stops at once in this process, within two seconds on other nodes over PostgreSQL, and within `cacheLifetime` in another process on
   * the same file. `beside` stands in the same transaction.
   */
  readonly remove: (
    request: OfApplication,
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole | BooksUnavailable>
  /** Who calls with this key; `undefined` where there is no such key, or no more. */
  readonly callerOf: (key: string) => Effect.Effect<Caller | undefined, ExpiredKey>
  /** Its answer, where it is known at this moment without a look into the database; else `undefined`. */
  readonly rememberedCallerOf: (key: string) => Caller | undefined
}

export class Applications extends Context.Tag("tollgate/tenants/Applications")<Applications, ApplicationsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Applications, make))
}

interface Row extends Pick<
  Application,
  | "account_id"
  | "created_at"
  | "description"
  | "id"
  | "key_hash"
  | "key_prefix"
  | "last_used_at"
  | "name"
  | "updated_at"
> {
  readonly tenant_id: TenantId
  readonly expires_at: number | null
  /** A JSON array. */
  readonly allowed_models: string | null
  readonly client_id: string | null
  readonly client_name: string | null
  /** The sign-in that the key ends with. */
  readonly family_id: string | null
  /** `Bounds`. */
  readonly bounds: string | null
}

/** The application of a row, with the fields that it has. */
const applicationOf = (row: Row, limit: Limit | undefined): Application => ({
  id: row.id,
  name: row.name,
  description: row.description,
  account_id: row.account_id,
  key_hash: row.key_hash,
  key_prefix: row.key_prefix,
  last_used_at: row.last_used_at,
  created_at: row.created_at,
  updated_at: row.updated_at,
  ...(row.client_id !== null && { created_by: { client_id: row.client_id, name: row.client_name ?? row.client_id } }),
  ...(limit !== undefined && {
    spending_limit_usd: limit.amount,
    spending_limit_period: limit.period,
    spent_usd: limit.spent,
    reserved_usd: limit.reserved
  }),
  ...(row.expires_at !== null && { expires_at: row.expires_at }),
  ...(row.allowed_models !== null && { allowed_models: JSON.parse(row.allowed_models) as ReadonlyArray<string> })
})

type SetLimit = Extract<Posting, { readonly _tag: "SetLimit" }>

const setLimit = (application: ApplicationId, tenant: TenantId, limit: SetLimit["limit"]): SetLimit => ({
  _tag: "SetLimit",
  application,
  tenant,
  account: Ids.billingAccountOf(tenant),
  limit
})

/** The limit that a change asks for, `undefined` where it asks for none. */
const limitAsked = (
  { spending_limit_period: period, spending_limit_usd: amount }: ApplicationChange,
  before: Application | undefined
): Effect.Effect<SetLimit["limit"] | undefined, InvalidRequest> => {
  if (amount === null) return Effect.succeed(null)
  const now = amount ?? before?.spending_limit_usd
  if (now === undefined)
    return period === undefined
      ? Effect.succeed(undefined)
      : InvalidRequest.of("spending_limit_period", "only with a spending_limit_usd")
  if (amount === undefined && period === undefined) return Effect.succeed(undefined)
  return Effect.succeed({ amount: now, period: period ?? before?.spending_limit_period ?? "total" })
}

const checkEnd = (expires_at: number | null | undefined, now: number): Effect.Effect<void, InvalidRequest> =>
  typeof expires_at === "number" && expires_at <= now
    ? InvalidRequest.of("expires_at", "an instant in the future; delete the application to end its key now")
    : Effect.void

const jsonOf = (models: ReadonlyArray<string> | null): string | null =>
  models === null ? null : JSON.stringify([...new Set(models)])

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const { key_prefix: prefix } = yield* ServiceInfo
  const belonging = yield* Belonging
  const keyCallers = KeyCallers.make(sql, writer, secret, belonging, yield* Effect.clock)

  const create: ApplicationsContract["create"] = Effect.fn("Applications.create")(function* ({
    application: draft,
    caller,
    client_name
  }) {
    const { allowed_models = null, description, expires_at = null, name } = draft
    const { oauth_client = null, sign_in = null, tenant_id } = caller
    const now = yield* Clock.currentTimeMillis
    yield* checkEnd(expires_at, now)
    const limit = (yield* limitAsked(draft, undefined)) ?? null
    const api_key = `${prefix}-prod-${randomBytes(32).toString("hex")}`
    const row: Row = {
      id: Ids.at("app", now) as ApplicationId,
      name,
      description,
      account_id: caller.account_id,
      key_hash: secret.hash("api_key", api_key),
      key_prefix: api_key.slice(0, prefix.length + 10),
      last_used_at: null,
      created_at: now,
      updated_at: now,
      tenant_id,
      expires_at,
      allowed_models: jsonOf(allowed_models),
      client_id: oauth_client,
      client_name: oauth_client === null ? null : (client_name ?? oauth_client),
      family_id: sign_in,
      bounds: null
    }
    const inserted = statement(sql`INSERT INTO tollgate_tenants_applications ${sql.insert({ ...row })}`)
    yield* limit === null
      ? Statements.write(writer, inserted)
      : Effect.catchTags(
          writer.submit({ postings: [setLimit(row.id, tenant_id, limit)], statements: [inserted] }),
          broken
        )
    return { ...(yield* shown([row], now))[0]!, api_key }
  })

  /** The applications of rows, with their limits. */
  const shown = (rows: ReadonlyArray<Row>, now: number): Effect.Effect<ReadonlyArray<Application>> =>
    Effect.map(
      limitsOf(
        sql,
        rows.map(({ id }) => id),
        now
      ),
      (limits) => rows.map((row) => applicationOf(row, limits.get(row.id)))
    )

  /** That the caller is an owner or admin of the tenant, or the operator. */
  const manages = ({ account_id, tenant_id }: By["caller"]) =>
    account_id === null
      ? sql`true`
      : sql`EXISTS (SELECT 1 FROM tollgate_tenants_memberships
          WHERE account_id = ${account_id} AND tenant_id = ${tenant_id} AND status = 'active' AND role IN ('owner', 'admin'))`

  /**
   * That the caller reaches the application. A statement that changes one says it too, so that a role which was lost meanwhile
   * counts.
   */
  const reached = (caller: By["caller"]) =>
    caller.account_id === null ? sql`true` : sql`(account_id = ${caller.account_id} OR ${manages(caller)})`

  const live = isLive(sql, "family_id")

  const list: ApplicationsContract["list"] = Effect.fn("Applications.list")(function* ({ caller, page, per_page }) {
    const wanted = sql`tenant_id = ${caller.tenant_id} AND ${reached(caller)} AND ${live}`
    const [count] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_tenants_applications WHERE ${wanted}`
    const rows = yield* sql<Row>`SELECT * FROM tollgate_tenants_applications WHERE ${wanted}
      ORDER BY id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
    return paginated({ page, per_page }, count?.n ?? 0, yield* shown(rows, yield* Clock.currentTimeMillis))
  }, Effect.orDie)

  const rowOf = Effect.fnUntraced(function* ({ application_id, caller }: OfApplication) {
    const { tenant_id } = caller
    const [row] = yield* Effect.orDie(
      sql<
        Row & { readonly reached: number; readonly manages: number }
      >`SELECT *, ${reached(caller)} AS reached, ${manages(caller)} AS manages
        FROM tollgate_tenants_applications WHERE tenant_id = ${tenant_id} AND id = ${application_id} AND ${live}`
    )
    if (row === undefined) return yield* new ApplicationNotFound({ application_id })
    if (row.reached !== 1) return yield* new InsufficientRole({ tenant_id })
    return row
  })

  const find: ApplicationsContract["find"] = Effect.fn("Applications.find")(function* (request) {
    const row = yield* rowOf(request)
    return (yield* shown([row], yield* Clock.currentTimeMillis))[0]!
  })

  /** `false`: there was no such application in the caller's reach any more. */
  const guarded = (
    text: Parameters<typeof statement>[0],
    postings: ReadonlyArray<SetLimit>,
    beside: ReadonlyArray<Statement> = []
  ) =>
    writer
      .submit({ postings, statements: [statement(text, 1), ...beside] })
      .pipe(Effect.as(true), Effect.catchTags({ ...broken, Conflict: () => Effect.succeed(false) }))

  const change: ApplicationsContract["change"] = Effect.fn("Applications.change")(function* (request) {
    const { application_id, caller } = request
    const row = yield* rowOf(request)
    const now = yield* Clock.currentTimeMillis
    const before = (yield* shown([row], now))[0]!
    const { allowed_models, description = null, expires_at, name = null } = request.change
    yield* checkEnd(expires_at, now)
    const limit = yield* limitAsked(request.change, before)
    const bounds = yield* boundsAfter(row, caller, { spending: limit, expires_at, allowed_models })
    const changes = [
      sql`bounds = ${Bounds.toRow(bounds)}`,
      sql`name = coalesce(${name}, name)`,
      sql`description = coalesce(${description}, description)`,
      sql`updated_at = ${now}`
    ]
    if (expires_at !== undefined) changes.push(sql`expires_at = ${expires_at}`)
    if (allowed_models !== undefined) changes.push(sql`allowed_models = ${jsonOf(allowed_models)}`)
    const done = guarded(
      sql`UPDATE tollgate_tenants_applications SET ${sql.csv(changes)}
        WHERE tenant_id = ${caller.tenant_id} AND id = ${application_id} AND bounds IS NOT DISTINCT FROM ${row.bounds}
          AND ${row.manages === 1 ? manages(caller) : reached(caller)} RETURNING id`,
      limit === undefined ? [] : [setLimit(application_id, caller.tenant_id, limit)]
    )
    // The ledger reads a limit with each call; the rest is remembered of the key.
    const isRemembered = expires_at !== undefined || allowed_models !== undefined
    const changed = yield* isRemembered ? afterCommit(done, belonging.changed(application_id)) : done
    return yield* changed ? find(request) : change(request)
  })

  const remove: ApplicationsContract["remove"] = Effect.fn("Applications.remove")(function* (request, beside) {
    const { application_id, caller } = request
    const application = yield* find(request)
    const deleted = guarded(
      sql`DELETE FROM tollgate_tenants_applications
        WHERE tenant_id = ${caller.tenant_id} AND id = ${application_id} AND ${reached(caller)} RETURNING id`,
      [setLimit(application_id, caller.tenant_id, null)],
      beside
    )
    const done = yield* afterCommit(deleted, belonging.changed(application_id))
    if (!done) return yield* remove(request, beside)
    return application
  })

  return {
    create,
    list,
    find,
    change,
    remove,
    callerOf: keyCallers.callerOf,
    rememberedCallerOf: keyCallers.remembered
  } satisfies ApplicationsContract
})

/** The bounds of an application after a change, which they may refuse. */
const boundsAfter = (
  row: Row & { readonly manages: number },
  { account_id, tenant_id }: By["caller"],
  asked: Bounds.Asked
): Effect.Effect<Bounds.Bounds, InsufficientRole> => {
  const bounds = Bounds.ofRow(row.bounds)
  if (row.manages === 1)
    return Effect.succeed(
      row.account_id === account_id ? Bounds.without(bounds, asked) : Bounds.including(bounds, asked)
    )
  return Bounds.permits(bounds, asked)
    ? Effect.succeed(bounds)
    : new InsufficientRole({ tenant_id, message: "an owner or admin has set this limit: only they raise or lift it" })
}

/** A tenant has a billing account, and an application is made once. */
const broken = { AccountMissing: Effect.die, Conflict: Effect.die } as const

/** Under another secret no API key is known any more. */
export const apiKeysEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_tenants_applications`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_tenants_applications`)],
  notice: (n) => `${n} API keys are deleted: people make new ones`
}
