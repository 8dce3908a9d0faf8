/** The service and its sandbox in this process, on two servers. Only one server has the fast lane. */
import type { Clock } from "effect"
import { Context, Effect, Exit, Layer, Logger, LogLevel, Redacted, Scope } from "effect"
import { domains, face } from "../../src/app/App.ts"
import * as Config from "../../src/app/Config.ts"
import * as Secret from "../../src/app/Secret.ts"
import { budgetsOf } from "../../src/books/ledger/Budgets.ts"
import type { Budget, BudgetTerms } from "../../src/books/ledger/rules/Budget.ts"
import { everyone } from "../../src/books/ledger/rules/Budget.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import { Face } from "../../src/http/lanes/Face.ts"
import * as NodeServer from "../../src/http/server/NodeServer.ts"
import { billingAccountOf } from "../../src/kernel/Ids.ts"
import type { TenantId } from "../../src/kernel/Ids.ts"
import { CurrentSandbox } from "../../src/kernel/SandboxInfo.ts"
import { Loops } from "../../src/operations/ops/Loops.ts"
import { Metrics } from "../../src/operations/ops/Metrics.ts"
import { Readiness } from "../../src/operations/ops/Readiness.ts"
import { RoutingLog } from "../../src/operations/ops/RoutingLog.ts"
import { Reconciliations } from "../../src/operations/reconciliation/Reconciliations.ts"
import type { ReconciliationsContract } from "../../src/operations/reconciliation/Reconciliations.ts"
import { BillingVendors } from "../../src/operations/reconciliation/Settings.ts"
import type { BillingVendor } from "../../src/operations/reconciliation/Settings.ts"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { sqliteFile } from "../../src/storage/database/Location.ts"
import { SqlClient } from "@effect/sql/SqlClient"
import * as TestDatabase from "./database.ts"
import { Service } from "./Service.ts"

const facts = {
  host: "127.0.0.1",
  port: 0,
  data_dir: "",
  database: sqliteFile(""),
  service_name: "Tollgate",
  key_prefix: "svc",
  log_level: LogLevel.None,
  sandbox_without: [],
  secret: Redacted.make("a secret of thirty-two characters")
}

const server = Effect.map(Layer.build(NodeServer.layer(facts)), Context.get(NodeServer.Listening))

/** Upstreams and models to add to the sandbox's. */
export interface More {
  readonly upstreams?: Readonly<Record<string, object>>
  readonly models?: ReadonlyArray<object>
  /** Whether the service follows the sandbox's clock. */
  readonly steered?: boolean
}

interface Lists {
  readonly upstreams: object
  readonly models: ReadonlyArray<object>
}

const served = (more: More) =>
  Effect.gen(function* () {
    const sandbox = yield* Sandbox.make({})
    const own = sandbox.configuration as unknown as Lists
    const configuration = {
      ...sandbox.configuration,
      upstreams: { ...own.upstreams, ...more.upstreams },
      models: [...own.models, ...(more.models ?? [])]
    }
    const file = yield* Config.decodeFile(configuration, "the sandbox's configuration")
    const { client_id, control, issuer, levers, oauth_client, service_client_id } = sandbox
    const info = { client_id, control, issuer, oauth_client, service_client_id }
    const service = face("").pipe(
      Layer.provide(domains),
      Layer.provide([Config.layer(facts, file), Secret.layer(facts)]),
      Layer.provide(Layer.merge(Metrics.layer, RoutingLog.layer)),
      Layer.provide(Readiness.layer),
      Layer.provide(Loops.layer),
      Layer.provide(Layer.succeed(CurrentSandbox, { info, levers })),
      Layer.provideMerge(TestDatabase.writer.pipe(Layer.provideMerge(TestDatabase.sql)))
    )
    const built = Layer.build(service)
    const context = yield* more.steered === true ? Effect.withClock(built, sandbox.clock) : built
    const { app, lane } = Context.get(context, Face)
    return {
      lane: (yield* Effect.provideService(server, Face, { app, lane })).port,
      router: (yield* Effect.provideService(server, Face, { app, lane: new Map() })).port,
      writer: Context.get(context, Writer),
      sql: Context.get(context, SqlClient),
      clock: sandbox.clock,
      origin: sandbox.url,
      file
    }
  })

/** The ports of the two servers. */
export interface Ports {
  readonly lane: number
  readonly router: number
}

export class InProcess implements Ports {
  readonly lane: number
  readonly router: number
  /** The server with the fast lane. */
  readonly service: Service
  readonly stop: () => Promise<void>
  readonly #writer: Writer["Type"]
  readonly #sql: SqlClient
  readonly #clock: Clock.Clock
  readonly #file: Config.ConfigFile
  /** The sandbox's address. */
  readonly origin: string

  private constructor(
    { clock, file, lane, origin, router, sql, writer }: Effect.Effect.Success<ReturnType<typeof served>>,
    stop: () => Promise<void>
  ) {
    this.lane = lane
    this.router = router
    this.service = new Service(lane, "", undefined as never, [], [])
    this.stop = stop
    this.#writer = writer
    this.#sql = sql
    this.#clock = clock
    this.#file = file
    this.origin = origin
  }

  static async start(more: More = {}): Promise<InProcess> {
    const scope = Effect.runSync(Scope.make())
    // The service warns of each upstream failure, and tests cause many.
    const quiet = Effect.provide(served(more), Logger.remove(Logger.defaultLogger))
    const parts = await Effect.runPromise(Scope.extend(quiet, scope))
    return new InProcess(parts, () => Effect.runPromise(Scope.close(scope, Exit.void)))
  }

  /** Uses the reconciliations of these vendors, on the service's database and at the sandbox's time. */
  reconciling<A, E>(
    vendors: ReadonlyArray<BillingVendor>,
    use: (reconciliations: ReconciliationsContract) => Effect.Effect<A, E>
  ): Promise<A> {
    const layer = Reconciliations.layer.pipe(
      Layer.provide([
        Layer.succeed(BillingVendors, vendors),
        Config.calls(this.#file),
        Layer.succeed(Writer, this.#writer),
        Layer.succeed(SqlClient, this.#sql)
      ])
    )
    return Effect.flatMap(Reconciliations, use).pipe(
      Effect.provide(layer),
      Effect.withClock(this.#clock),
      Effect.runPromise
    )
  }

  /** Creates or changes a tenant's budget. Without a tenant, the budget is the operator's. `null` ends the budget. */
  setBudget(id: string, terms: Partial<BudgetTerms> | null, tenant?: string): Promise<unknown> {
    const posting = {
      _tag: "SetBudget",
      id,
      kind: "budget",
      anchor: tenant ?? everyone,
      ...(tenant !== undefined && { tenant, account: billingAccountOf(tenant as TenantId) }),
      terms: terms === null ? null : { ...usual, ...terms }
    } as const
    return Effect.runPromise(this.#writer.submit({ postings: [posting], statements: [] }))
  }

  async budget(id: string): Promise<Budget> {
    const [budget] = await Effect.runPromise(budgetsOf(this.#sql, [id], Date.now()))
    return budget!
  }
}

const usual: BudgetTerms = {
  name: "test",
  limit: {},
  period: "total",
  applies_to: {},
  mode: "refuse",
  notify_at: [],
  raises: [],
  by_operator: false,
  created_by: "acc_test",
  created_at: 0
}
