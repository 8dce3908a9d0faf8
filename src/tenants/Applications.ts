/**
 * Applications of a tenant and their API keys: made, listed, renamed, deleted, and recognised when they call. A member reaches their
 * own, owners and admins reach all.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
import type { Ending } from "../auth/DeploymentSecret.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import type { Actor, Caller } from "../kernel/Caller.ts"
import * as Ids from "../kernel/Ids.ts"
import type { ApplicationId, TenantId } from "../kernel/Ids.ts"
import { paginated } from "../kernel/Page.ts"
import type { PageOf } from "../kernel/Page.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import * as Statements from "../ledger/Statements.ts"
import { statement } from "../ledger/Transaction.ts"
import { afterCommit, Writer } from "../ledger/Writer.ts"
import type {
  Application,
  ApplicationChange,
  ApplicationPage,
  ApplicationWithKey,
  NewApplication
} from "./Application.ts"
import { Belonging } from "./Belonging.ts"
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
    readonly caller: Actor
    readonly application: NewApplication
  }) => Effect.Effect<ApplicationWithKey, BooksUnavailable>
  /** A page of those that the caller reaches, newest first. */
  readonly list: (request: By & PageOf) => Effect.Effect<typeof ApplicationPage.Type>
  readonly find: (request: OfApplication) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole>
  readonly change: (
    request: OfApplication & { readonly change: ApplicationChange }
  ) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole | BooksUnavailable>
  /** Its key stops at once in this process, and within `cacheLifetime` in others. */
  readonly remove: (
    request: OfApplication
  ) => Effect.Effect<Application, ApplicationNotFound | InsufficientRole | BooksUnavailable>
  /** Who calls with this key; `undefined` where there is no such key, or no more. */
  readonly callerOf: (key: string) => Effect.Effect<Caller | undefined>
}

export class Applications extends Context.Tag("tollgate/tenants/Applications")<Applications, ApplicationsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Applications, make))
}

interface Row extends Application {
  readonly tenant_id: TenantId
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const { key_prefix: prefix } = yield* ServiceInfo
  const belonging = yield* Belonging

  const create: ApplicationsContract["create"] = Effect.fn("Applications.create")(function* ({
    application: draft,
    caller
  }) {
    const { description, name } = draft
    const now = yield* Clock.currentTimeMillis
    const api_key = `${prefix}-prod-${randomBytes(32).toString("hex")}`
    const application: Application = {
      id: Ids.at("app", now) as ApplicationId,
      name,
      description,
      account_id: caller.account_id,
      key_hash: secret.hash("api_key", api_key),
      key_prefix: api_key.slice(0, prefix.length + 10),
      last_used_at: null,
      created_at: now,
      updated_at: now
    }
    const row = { ...application, tenant_id: caller.tenant_id }
    yield* Statements.write(writer, statement(sql`INSERT INTO tollgate_tenants_applications ${sql.insert(row)}`))
    return { ...application, api_key }
  })

  /**
   * That the caller reaches the application. A statement that changes one says it too, so that a role which was lost meanwhile
   * counts.
   */
  const reached = ({ account_id, tenant_id }: By["caller"]) =>
    account_id === null
      ? sql`true`
      : sql`(account_id = ${account_id} OR EXISTS (SELECT 1 FROM tollgate_tenants_memberships
          WHERE account_id = ${account_id} AND tenant_id = ${tenant_id} AND status = 'active' AND role IN ('owner', 'admin')))`

  const list: ApplicationsContract["list"] = Effect.fn("Applications.list")(function* ({ caller, page, per_page }) {
    const wanted = sql`tenant_id = ${caller.tenant_id} AND ${reached(caller)}`
    const [count] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_tenants_applications WHERE ${wanted}`
    const rows = yield* sql<Row>`SELECT * FROM tollgate_tenants_applications WHERE ${wanted}
      ORDER BY id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
    return paginated({ page, per_page }, count?.n ?? 0, rows)
  }, Effect.orDie)

  const find: ApplicationsContract["find"] = Effect.fn("Applications.find")(function* ({ application_id, caller }) {
    const { tenant_id } = caller
    const [row] = yield* Effect.orDie(
      sql<Row & { readonly reached: number }>`SELECT *, ${reached(caller)} AS reached FROM tollgate_tenants_applications
        WHERE tenant_id = ${tenant_id} AND id = ${application_id}`
    )
    if (row === undefined) return yield* new ApplicationNotFound({ application_id })
    return row.reached === 1 ? row : yield* new InsufficientRole({ tenant_id })
  })

  /** `false`: there was no such application in the caller's reach any more. */
  const guarded = (text: Parameters<typeof statement>[0]) => Statements.tryWrite(writer, statement(text, 1))

  const change: ApplicationsContract["change"] = Effect.fn("Applications.change")(function* (request) {
    const { application_id, caller } = request
    yield* find(request)
    const now = yield* Clock.currentTimeMillis
    const { description = null, name = null } = request.change
    yield* guarded(sql`UPDATE tollgate_tenants_applications SET name = coalesce(${name}, name),
      description = coalesce(${description}, description), updated_at = ${now}
      WHERE tenant_id = ${caller.tenant_id} AND id = ${application_id} AND ${reached(caller)} RETURNING id`)
    return yield* find(request)
  })

  const remove: ApplicationsContract["remove"] = Effect.fn("Applications.remove")(function* (request) {
    const { application_id, caller } = request
    const application = yield* find(request)
    const deleted = guarded(sql`DELETE FROM tollgate_tenants_applications
      WHERE tenant_id = ${caller.tenant_id} AND id = ${application_id} AND ${reached(caller)} RETURNING id`)
    const done = yield* afterCommit(deleted, belonging.changed(application_id))
    if (!done) return yield* remove(request)
    return application
  })

  return {
    create,
    list,
    find,
    change,
    remove,
    callerOf: KeyCallers.make(sql, writer, secret, belonging, yield* Effect.clock)
  } satisfies ApplicationsContract
})

/** Under another secret no API key is known any more. */
export const apiKeysEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_tenants_applications`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_tenants_applications`)],
  notice: (n) => `${n} API keys are deleted: people make new ones`
}
