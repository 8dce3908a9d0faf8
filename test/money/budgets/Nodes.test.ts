/** Two nodes over one database: people are told once, and templates make each budget once, whichever nodes turn the loop at the same time. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Layer, ManagedRuntime } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import { verify } from "../../../src/app/Checks.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { day } from "../../../src/kernel/Moment.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { Allowances } from "../../../src/money/allowances/Allowances.ts"
import { Plans, TenantFactors } from "../../../src/money/allowances/Settings.ts"
import type { PlansByName } from "../../../src/money/allowances/Settings.ts"
import { TenantPlans } from "../../../src/money/allowances/TenantPlans.ts"
import { Budgets } from "../../../src/money/budgets/Budgets.ts"
import type { BudgetId, NewBudget } from "../../../src/money/budgets/Budget.ts"
import type { Scope } from "../../../src/money/budgets/OperatorBudget.ts"
import { layerNewTenants } from "../../../src/money/budgets/Templates.ts"
import { Outbox } from "../../../src/people/mail/Outbox.ts"
import { Applications } from "../../../src/people/tenants/Applications.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import * as TestDatabase from "../../support/database.ts"

const terms = { amount_usd: usd, period: "month", rollover: "none" } as const
const plans: PlansByName = { student: { allowance: terms }, teacher: { allowance: terms } }

const settings = Layer.mergeAll(
  Layer.succeed(Plans, plans),
  Layer.succeed(TenantFactors, {}),
  Layer.succeed(PriceList, { default_new_credits: 5n * usd, default_registration_credits: 0n }),
  Layer.succeed(ServiceInfo, { service_name: "Test", key_prefix: "svc", public_url: "http://test.example" }),
  DeploymentSecret.layer(new Uint8Array(32).fill(7)),
  Mail.layerNone
)

const rooms = Budgets.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Allowances.layer, TenantPlans.layer, Applications.layer, Outbox.layer)),
  Layer.provideMerge(Layer.mergeAll(Tenants.layer, Ledger.layer)),
  Layer.provideMerge(Layer.mergeAll(Belonging.layer, layerNewTenants))
)

let now = 0
const clock = Object.assign(Object.create(Clock.make()) as Clock.Clock, {
  currentTimeMillis: Effect.sync(() => now),
  unsafeCurrentTimeMillis: () => now
})

const makeScene = async () => {
  const shared = ManagedRuntime.make(Layer.provideMerge(TestDatabase.sql, Layer.setClock(clock)))
  const { context } = await shared.runtime()
  const node = () =>
    ManagedRuntime.make(
      Layer.fresh(rooms).pipe(
        Layer.provideMerge(Layer.fresh(TestDatabase.writer)),
        Layer.provideMerge(Layer.succeedContext(context)),
        Layer.provide(settings),
        Layer.provideMerge(Layer.setClock(clock))
      )
    )
  const nodes = [node(), node()] as const
  return {
    nodes,
    close: async () => {
      for (const { dispose } of nodes) await dispose()
      await shared.dispose()
    }
  }
}

type Scene = Awaited<ReturnType<typeof makeScene>>
type Rooms = Budgets | Allowances | Tenants | Ledger | SqlClient

let scene: Scene
const run = <A, E>(effect: Effect.Effect<A, E, Rooms>, node = 0): Promise<A> => scene.nodes[node]!.runPromise(effect)
beforeEach(async () => {
  now = Date.UTC(2026, 10, 26, 12)
  scene = await makeScene()
})
afterEach(async () => {
  expect(await run(verify)).toEqual([])
  await scene.close()
})

/** Three turns of the loop on each node, all at once, and one that follows. */
const turns = async () => {
  const turn = Effect.flatMap(Budgets, ({ job }) => job.turn)
  await Promise.all([0, 1, 0, 1, 0, 1].map((node) => run(turn, node)))
  await run(turn)
}

const joined = async (name: string): Promise<{ readonly account_id: AccountId; readonly tenant_id: TenantId }> => {
  const identity = {
    provider: "google" as const,
    subject: name,
    email: `${name}@example.com`,
    email_verified: true,
    name
  }
  const { account_id, home_tenant_id } = await run(Effect.flatMap(Tenants, ({ welcome }) => welcome(identity)))
  return { account_id, tenant_id: home_tenant_id }
}

const daily = { name: "Day", limit: { requests: 2 }, period: "day", applies_to: {}, notify_at: [0.5, 1] } as const
const asked = { ...daily, mode: "refuse" } satisfies NewBudget

const templated = (scope: Scope) =>
  run(Effect.flatMap(Budgets, ({ ofOperator }) => ofOperator.create({ ...asked, scope }, () => [])))

const budgetsOf = async (caller: { readonly account_id: AccountId; readonly tenant_id: TenantId }) =>
  (await run(Effect.flatMap(Budgets, ({ list }) => list({ caller })))).map(({ by_operator, limit, name }) => ({
    by_operator,
    limit,
    name
  }))

const onPlan = (tenant: TenantId, plan: string) => run(Effect.flatMap(Allowances, ({ set }) => set(tenant, { plan })))

let calls = 0
const call = ({ account_id, tenant_id }: { readonly account_id: AccountId; readonly tenant_id: TenantId }, cost = 1n) =>
  run(
    Effect.flatMap(Ledger, ({ reserve, settle }) => {
      const id = `call_${calls++}`
      const outcome = {
        cost,
        prompt_tokens: 1,
        completion_tokens: 1,
        units: 0,
        success: true,
        error_type: null,
        usage_source: "provider" as const,
        latency_ms: 1
      }
      return Effect.zipRight(
        reserve({
          call: id,
          sources: [{ billing_account_id: billingAccountOf(tenant_id), tenant_id, kind: "own", why: "own" }],
          least: cost,
          most: cost,
          run: "run_1",
          facts: {
            account_id,
            tenant_id,
            application_id: null,
            usage_type: "inference",
            endpoint: "chat/completions",
            model: "small",
            provider: "sandbox"
          }
        }),
        settle({ call: id, outcome })
      )
    })
  )

const notices = (account: AccountId) =>
  run(
    Effect.flatMap(
      SqlClient,
      (sql) =>
        sql<{
          title: string
          text: string
        }>`SELECT title, text FROM tollgate_notifications_notices WHERE account_id = ${account} ORDER BY id`
    )
  )
const titles = async (account: AccountId) => (await notices(account)).map(({ title }) => title)
const letters = async () =>
  (
    await run(Effect.flatMap(SqlClient, (sql) => sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_mail_outbox`))
  )[0]!.n

const raised = (caller: Parameters<typeof call>[0], budget_id: BudgetId, amount: bigint, until: number) =>
  run(
    Effect.flatMap(Budgets, ({ raise }) => raise({ caller, budget_id, raise: { usd: amount, until } })),
    1
  )

const given = { by_operator: true, limit: { requests: 2 }, name: "Day" }

it("tells people once, inside and by mail, and again in the next period", async () => {
  const ada = await joined("ada")
  await run(Effect.flatMap(Budgets, ({ create }) => create({ caller: ada, budget: asked })))
  await call(ada)
  await turns()
  const half = 'The budget "Day" has reached 50%'
  expect([await titles(ada.account_id), await letters()]).toEqual([[half], 1])
  now += 1_000
  await call(ada)
  await turns()
  const full = 'The budget "Day" has reached 100%'
  expect([await titles(ada.account_id), await letters()]).toEqual([[half, full], 2])
  now += day
  await call(ada)
  await turns()
  expect([await titles(ada.account_id), await letters()]).toEqual([[half, full, half], 3])
})

it("names the raised limit and the ends of its raises while they are open", async () => {
  const ada = await joined("ada")
  const dime = usd / 10n
  const budget = { ...asked, limit: { usd }, period: "total", notify_at: [0.5, 0.75, 1] } satisfies NewBudget
  const { id } = await run(Effect.flatMap(Budgets, ({ create }) => create({ caller: ada, budget })))
  const newest = async () => (await notices(ada.account_id)).at(-1)!.text
  await call(ada, 5n * dime)
  await turns()
  expect(await newest()).toBe('The budget "Day" has reached 50% of its limit: 0.5 of 1 USD in total.')
  now += 1_000
  await raised(ada, id, 2n * dime, now + 59_000)
  await raised(ada, id, dime, now + 119_000)
  await call(ada, 3n * dime)
  await turns()
  expect(await newest()).toBe(
    'The budget "Day" has reached 75% of its limit: 0.8 of 1 USD in total. ' +
      "The limit is raised to 1.3 USD: by 0.2 USD until 2026-11-26 12:01 UTC, by 0.1 USD until 2026-11-26 12:02 UTC."
  )
  now += 59_000
  await call(ada, 2n * dime)
  await turns()
  expect(await newest()).toBe(
    'The budget "Day" has reached 100% of its limit: 1 of 1 USD in total. ' +
      "The limit is raised to 1.1 USD: by 0.1 USD until 2026-11-26 12:02 UTC."
  )
})

it("says that a budget refuses further calls if its raises have ended", async () => {
  const ada = await joined("ada")
  const budget = { ...asked, limit: { usd }, period: "total" } satisfies NewBudget
  const { id } = await run(Effect.flatMap(Budgets, ({ create }) => create({ caller: ada, budget })))
  await raised(ada, id, usd, now + 60_000)
  now += 60_000
  await call(ada, usd)
  await turns()
  expect((await notices(ada.account_id)).at(-1)!.text).toBe(
    'The budget "Day" has reached 100% of its limit: 1 of 1 USD in total. ' +
      "It refuses further calls until its limit is raised."
  )
})

it("gives each new tenant its budget with its first moment, and no older one", async () => {
  const ada = await joined("ada")
  now += 1_000
  const { id, scope, tenants } = await templated("each_new_tenant")
  expect([scope, tenants]).toEqual(["each_new_tenant", 0])
  const bob = await joined("bob")
  expect(await budgetsOf(bob)).toEqual([given])
  await turns()
  expect([await budgetsOf(ada), await budgetsOf(bob)]).toEqual([[], [given]])
  await call(bob)
  await call(bob)
  await expect(call(bob)).rejects.toThrow("has 0 requests left")
  const shown = await run(Effect.flatMap(Budgets, ({ ofOperator }) => ofOperator.find(id)))
  expect(shown).toMatchObject({ tenants: 1, spent: { requests: 2, usd: 2n } })
})

it("gives a plan's budget to the tenants that have the plan, once, as long as they have it", async () => {
  const people = [await joined("ada"), await joined("bob"), await joined("cleo")]
  const [ada, bob, cleo] = people as [(typeof people)[0], (typeof people)[0], (typeof people)[0]]
  await onPlan(ada.tenant_id, "student")
  const { id } = await templated({ plan: "student" })
  await onPlan(bob.tenant_id, "student")
  await onPlan(cleo.tenant_id, "teacher")
  await turns()
  expect(await Promise.all(people.map(budgetsOf))).toEqual([[given], [given], []])
  await onPlan(bob.tenant_id, "teacher")
  await onPlan(cleo.tenant_id, "student")
  await turns()
  expect(await Promise.all(people.map(budgetsOf))).toEqual([[given], [], [given]])
  expect(await run(Effect.flatMap(Budgets, ({ ofOperator }) => ofOperator.find(id)))).toMatchObject({
    scope: { plan: "student" },
    tenants: 2
  })
})

it("lets the budgets follow a change of their template, and its end", async () => {
  const { id } = await templated("each_new_tenant")
  const [ada, bob] = [await joined("ada"), await joined("bob")]
  await call(ada)
  const change = { name: "More", limit: { requests: 3 } }
  await run(Effect.flatMap(Budgets, ({ ofOperator }) => ofOperator.change(id, change, () => [])))
  await turns()
  const changed = { ...given, name: "More", limit: { requests: 3 } }
  expect([await budgetsOf(ada), await budgetsOf(bob)]).toEqual([[changed], [changed]])
  await call(ada)
  await call(ada)
  await expect(call(ada)).rejects.toThrow("has 0 requests left")
  await run(Effect.flatMap(Budgets, ({ ofOperator }) => ofOperator.remove(id, () => [])))
  await turns()
  expect([await budgetsOf(ada), await budgetsOf(bob)]).toEqual([[], []])
  await call(ada)
})

it("raises one tenant's budget of a template, and changes it only with the template", async () => {
  const { id } = await templated("each_new_tenant")
  const ada = await joined("ada")
  const [own] = await run(Effect.flatMap(Budgets, ({ list }) => list({ caller: ada })))
  const refused = <A, E>(effect: Effect.Effect<A, E, Rooms>) => run(Effect.flip(effect))
  const operator = <A, E>(use: (of: Budgets["Type"]["ofOperator"]) => Effect.Effect<A, E>) =>
    Effect.flatMap(Budgets, ({ ofOperator }) => use(ofOperator))
  const field = { _tag: "InvalidRequest", field: "budget_id" }
  const raise = { usd, until: now + day }
  expect(await refused(operator(({ change }) => change(own!.id, { name: "x" }, () => [])))).toMatchObject(field)
  expect(await refused(operator(({ remove }) => remove(own!.id, () => [])))).toMatchObject(field)
  expect(await refused(operator((of) => of.raise(id, raise, () => [])))).toMatchObject(field)
  await run(operator(({ change }) => change(id, { limit: { usd } }, () => [])))
  await turns()
  const raised = await run(operator((of) => of.raise(own!.id, raise, () => [])))
  expect(raised).toMatchObject({ scope: { tenant: ada.tenant_id }, raises: [{ usd, created_by: "operator" }] })
  expect(await refused(operator(({ find }) => find("bud_none" as BudgetId)))).toMatchObject({ _tag: "BudgetNotFound" })
})
