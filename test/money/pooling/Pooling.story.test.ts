/**
 * People and teams, over the real books: they join and leave, plans lapse, teams open and close their pools, credit comes, sources
 * are pinned, and calls are made with every kind of credential. A bystander's notebook says who must pay each call, or that
 * nobody can; after every step the books agree.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Either, Layer, ManagedRuntime } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { BillingAccounts } from "../../../src/money/billing/BillingAccounts.ts"
import { failure, Gate } from "../../../src/books/gate/Gate.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { statement } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { Pooling } from "../../../src/money/pooling/Pooling.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import { tell } from "../../support/story.ts"
import type { Step } from "../../support/story.ts"
import * as TestDatabase from "../../support/database.ts"

const layer = Gate.layer.pipe(
  Layer.provideMerge(Pooling.layerPayers),
  Layer.provideMerge(Pooling.layer),
  Layer.provideMerge(Layer.mergeAll(Sums.layer, BillingAccounts.layer)),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer),
  Layer.provide(PriceList.layerNone),
  Layer.provideMerge(TestDatabase.writer),
  Layer.provideMerge(TestDatabase.sql)
)

const people = ["ada", "bob"] as const
type Name = (typeof people)[number]
const teams = ["red", "blue"] as const
type Team = (typeof teams)[number]
type Place = "home" | Team

interface Purse {
  credit: bigint
  active: boolean
}

interface Notebook {
  /** In the order in which they joined. */
  readonly joined: Record<Name, Array<Team>>
  /** Of those who joined; the last role of those who left. */
  readonly role: Record<Name, Partial<Record<Team, "member" | "admin">>>
  readonly plan: Record<Team, "active" | "past_due" | "canceled">
  /** `undefined`: as the plan has it. */
  readonly spend: Record<Team, boolean | undefined>
  readonly purses: Map<string, Purse>
  readonly pinned: Record<Name, string | undefined>
  /** What each purse paid for each person. */
  readonly paid: Map<string, bigint>
}

interface World {
  readonly run: ManagedRuntime.ManagedRuntime<Layer.Layer.Success<typeof layer>, unknown>
  /** Their accounts, by name. */
  readonly accounts: Record<Name, { readonly account_id: AccountId; readonly home: TenantId }>
}

const teamTenant = (team: Team) => `ten_${team}` as TenantId
const purseOf = (who: Name, place: Place): string => (place === "home" ? who : place)
const tenantOf = (world: World, who: Name, place: Place): TenantId =>
  place === "home" ? world.accounts[who].home : teamTenant(place)

/** Whether the person may spend the credit of a team that they joined. */
const maySpend = ({ plan, role, spend }: Notebook, who: Name, team: Team) =>
  role[who][team] === "admin" || (spend[team] ?? plan[team] === "active")

/** Who may pay a call of this person, with a credential of this place, first to last; by the words of the specification. */
const expected = (notebook: Notebook, who: Name, place: Place, teamFirst: boolean): ReadonlyArray<string> => {
  const own = purseOf(who, place)
  const pools: ReadonlyArray<string> = notebook.joined[who].filter(
    (team) => team !== place && notebook.plan[team] === "active" && maySpend(notebook, who, team)
  )
  const barred = place !== "home" && !maySpend(notebook, who, place)
  const usual = barred ? pools : teamFirst ? [...pools, own] : [own, ...pools]
  const pin = notebook.pinned[who]
  return pin !== undefined && usual.includes(pin) ? [pin, ...usual.filter((one) => one !== pin)] : usual
}

type Deed = Step<Notebook, World>

const name = fc.constantFrom(...people)
const team = fc.constantFrom(...teams)

const write = (
  world: World,
  changed: AccountId | TenantId,
  text: (sql: SqlClient) => Parameters<typeof statement>[0]
) =>
  world.run.runPromise(
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { submit } = yield* Writer
      yield* submit({ postings: [], statements: [statement(text(sql))] })
      yield* Effect.flatMap(Belonging, (belonging) => belonging.changed(changed))
    })
  )

const role = fc.constantFrom("member" as const, "member" as const, "admin" as const)

const joins = fc.tuple(name, team, role).map(([who, team, role]): Deed => ({
  sentence: `${who} joins ${team} as ${role}`,
  possible: ({ joined }) => !joined[who].includes(team),
  happen: async (notebook, world) => {
    const at = 1_000 + notebook.joined.ada.length + notebook.joined.bob.length + performance.now()
    await write(
      world,
      world.accounts[who].account_id,
      (sql) => sql`INSERT INTO tollgate_tenants_memberships
        VALUES (${world.accounts[who].account_id}, ${teamTenant(team)}, ${role}, 'active', ${Math.ceil(at * 1_000)}, 1)
        ON CONFLICT (account_id, tenant_id) DO UPDATE SET status = 'active', role = excluded.role, created_at = excluded.created_at`
    )
    notebook.joined[who].push(team)
    notebook.role[who][team] = role
  }
}))

const leaves = fc.tuple(name, team, fc.constantFrom("removed", "suspended")).map(([who, team, status]): Deed => ({
  sentence: `${who} is ${status} in ${team}`,
  possible: ({ joined }) => joined[who].includes(team),
  happen: async (notebook, world) => {
    await write(
      world,
      world.accounts[who].account_id,
      (sql) => sql`UPDATE tollgate_tenants_memberships SET status = ${status}
        WHERE account_id = ${world.accounts[who].account_id} AND tenant_id = ${teamTenant(team)}`
    )
    notebook.joined[who].splice(notebook.joined[who].indexOf(team), 1)
  }
}))

const roles = fc.tuple(name, team, role).map(([who, team, role]): Deed => ({
  sentence: `${who} is made ${role} of ${team}`,
  possible: ({ joined }) => joined[who].includes(team),
  happen: async (notebook, world) => {
    await write(
      world,
      world.accounts[who].account_id,
      (sql) => sql`UPDATE tollgate_tenants_memberships SET role = ${role}
        WHERE account_id = ${world.accounts[who].account_id} AND tenant_id = ${teamTenant(team)}`
    )
    notebook.role[who][team] = role
  }
}))

const plans = fc
  .tuple(team, fc.constantFrom(...(["active", "past_due", "canceled"] as const)))
  .map(([team, status]): Deed => ({
    sentence: `the plan of ${team} is ${status}`,
    happen: async (notebook, world) => {
      await world.run.runPromise(Effect.flatMap(Tenants, ({ setPlan }) => setPlan(teamTenant(team), { status })))
      notebook.plan[team] = status
    }
  }))

const spends = fc.tuple(team, fc.option(fc.boolean(), { nil: undefined })).map(([team, spend]): Deed => ({
  sentence: `${team} ${spend === undefined ? "leaves it to its plan whether members spend" : spend ? "lets members spend" : "keeps its credit"}`,
  happen: async (notebook, world) => {
    const value = spend === undefined ? null : spend ? 1 : 0
    await write(
      world,
      teamTenant(team),
      (sql) => sql`INSERT INTO tollgate_billing_settings VALUES (${teamTenant(team)}, '[]', ${value}, 1)
        ON CONFLICT (tenant_id) DO UPDATE SET member_spend_enabled = excluded.member_spend_enabled`
    )
    notebook.spend[team] = spend
  }
}))

const credits = fc.tuple(fc.oneof(name, team), fc.bigInt(1n, 30n)).map(([purse, amount]): Deed => ({
  sentence: `${purse} is given ${amount}`,
  happen: async (notebook, world) => {
    const account = billingAccountOf(purse in world.accounts ? world.accounts[purse as Name].home : `ten_${purse}`)
    const credit = { account, amount, source: "admin", reference: "r", description: "" } as const
    await world.run.runPromise(
      Effect.flatMap(Writer, ({ submit }) => submit({ postings: [{ _tag: "Credit", ...credit }], statements: [] }))
    )
    notebook.purses.get(purse)!.credit += amount
  }
}))

const stands = fc.tuple(fc.oneof(name, team), fc.boolean()).map(([purse, active]): Deed => ({
  sentence: `the billing account of ${purse} is ${active ? "active" : "suspended"}`,
  happen: async (notebook, world) => {
    const account = billingAccountOf(purse in world.accounts ? world.accounts[purse as Name].home : `ten_${purse}`)
    const status = active ? "active" : "suspended"
    await world.run.runPromise(
      Effect.flatMap(Writer, ({ submit }) =>
        submit({ postings: [{ _tag: "SetStatus", account, status }], statements: [] })
      )
    )
    notebook.purses.get(purse)!.active = active
  }
}))

const pins = fc
  .tuple(name, fc.constantFrom("home" as const, ...teams, "automatic" as const))
  .map(([who, choice]): Deed => ({
    sentence: `${who} ${choice === "automatic" ? "leaves the order to the service" : `pins ${choice}`}`,
    happen: async (notebook, world) => {
      const { account_id, home } = world.accounts[who]
      const asker = { account_id, tenant_id: home, team_first: false }
      const answered = await world.run.runPromise(
        Effect.flatMap(Pooling, ({ select }) =>
          Effect.either(
            select({
              caller: asker,
              selection:
                choice === "automatic"
                  ? { mode: "automatic" }
                  : { mode: "pinned", billing_account_id: billingAccountOf(tenantOf(world, who, choice)) }
            })
          )
        )
      )
      if (choice === "automatic") {
        expect(Either.isRight(answered)).toBe(true)
        notebook.pinned[who] = undefined
        return
      }
      const purse = purseOf(who, choice)
      const { active, credit } = notebook.purses.get(purse)!
      const could =
        active &&
        credit > 0n &&
        notebook.purses.get(who)!.active &&
        expected(notebook, who, "home", false).includes(purse)
      expect(Either.isRight(answered), `${who} may pin ${purse}`).toBe(could)
      if (Either.isLeft(answered)) expect(answered.left._tag).toBe("InvalidBillingSource")
      else {
        notebook.pinned[who] = purse
        expect(answered.right.sources.filter(({ selected }) => selected)).toHaveLength(1)
        expect(answered.right.sources[0]).toMatchObject({ selected: true, available: true })
      }
    }
  }))

const calls = fc
  .tuple(name, fc.constantFrom("home" as const, ...teams), fc.boolean(), fc.bigInt(1n, 20n))
  .map(([who, place, teamFirst, cost]): Deed => ({
    sentence: `${who} calls for ${cost} with a ${teamFirst ? "team-first token" : "key"} of ${place}`,
    possible: ({ joined }) => place === "home" || joined[who].includes(place),
    happen: async (notebook, world) => {
      const { account_id } = world.accounts[who]
      const tenant_id = tenantOf(world, who, place)
      const answered = await world.run.runPromise(
        Effect.flatMap(Gate, (gate) =>
          Effect.either(
            gate.meter(
              {
                caller: {
                  account_id,
                  tenant_id,
                  application_id: null,
                  credential: "user_token",
                  team_first: teamFirst
                },
                usage_type: "inference",
                endpoint: "chat",
                model: "m",
                provider: "p",
                least: cost,
                most: cost
              },
              (admission) =>
                admission.answer(
                  { ...failure(""), cost, success: true, error_type: null },
                  () => admission.payer.billing_account_id
                )
            )
          )
        )
      )
      const order = expected(notebook, who, place, teamFirst)
      const ownActive = notebook.purses.get(purseOf(who, place))!.active
      const payer = !ownActive
        ? undefined
        : order.find((purse) => notebook.purses.get(purse)!.active && notebook.purses.get(purse)!.credit >= cost)
      const paidBy = Either.isRight(answered)
        ? [...notebook.purses.keys()].find(
            (purse) =>
              answered.right ===
              billingAccountOf(purse in world.accounts ? world.accounts[purse as Name].home : `ten_${purse}`)
          )
        : undefined
      expect(paidBy, `of ${order.join(", ")}`).toBe(payer)
      if (payer === undefined) return
      notebook.purses.get(payer)!.credit -= cost
      const line = `${who} by ${payer}`
      notebook.paid.set(line, (notebook.paid.get(line) ?? 0n) + cost)
    }
  }))

const begin = async (): Promise<{ readonly notebook: Notebook; readonly world: World }> => {
  const run = ManagedRuntime.make(layer)
  const welcome = (who: Name) =>
    Effect.flatMap(Tenants, (tenants) =>
      Effect.map(
        tenants.welcome({
          provider: "google",
          subject: who,
          email: `${who}@example.com`,
          email_verified: true,
          name: who
        }),
        ({ account_id, home_tenant_id: home }) => ({ account_id, home })
      )
    )
  const accounts = await run.runPromise(Effect.all({ ada: welcome("ada"), bob: welcome("bob") }))
  await run.runPromise(
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { submit } = yield* Writer
      const tenants = yield* Tenants
      for (const one of teams) {
        const tenant = teamTenant(one)
        yield* submit({
          postings: [{ _tag: "Open", account: billingAccountOf(tenant), tenant }],
          statements: [
            statement(sql`INSERT INTO tollgate_tenants_tenants (id, name, created_at) VALUES (${tenant}, ${one}, 0)`)
          ]
        })
        yield* tenants.setPlan(tenant, { plan: "team", status: "active" })
      }
    })
  )
  const purse = () => ({ credit: 0n, active: true })
  return {
    notebook: {
      joined: { ada: [], bob: [] },
      role: { ada: {}, bob: {} },
      plan: { red: "active", blue: "active" },
      spend: { red: undefined, blue: undefined },
      purses: new Map([...people, ...teams].map((one) => [one, purse()])),
      pinned: { ada: undefined, bob: undefined },
      paid: new Map()
    },
    world: { run, accounts }
  }
}

/** The books are sound, hold what the notebook says, and each person reads who paid what. */
const end = async (notebook: Notebook, world: World): Promise<void> => {
  expect(await world.run.runPromise(verify)).toEqual([])
  for (const who of people) {
    const { account_id } = world.accounts[who]
    const { sources, totals } = await world.run.runPromise(
      Effect.flatMap(Pooling, ({ usage }) => usage({ caller: { account_id }, window: { start: null, end: null } }))
    )
    const bySource = new Map<string, bigint>()
    for (const { tenant_id, total_cost } of sources) {
      const purse = teams.find((one) => teamTenant(one) === tenant_id) ?? who
      bySource.set(`${who} by ${purse}`, (bySource.get(`${who} by ${purse}`) ?? 0n) + total_cost)
    }
    const noted = [...notebook.paid].filter(([line]) => line.startsWith(`${who} by`))
    expect(Object.fromEntries(bySource)).toEqual(Object.fromEntries(noted))
    expect(totals.total_cost).toBe(noted.reduce((sum, [, cost]) => sum + cost, 0n))
  }
}

describe("who pays", () => {
  it("is who the notebook says, whatever happened before", () =>
    tell({
      steps: [
        joins,
        joins,
        fc.oneof(leaves, roles),
        plans,
        spends,
        credits,
        credits,
        stands,
        pins,
        calls,
        calls,
        calls
      ],
      begin,
      end,
      close: ({ run }) => run.dispose(),
      stories: 60,
      length: 40
    }))

  it("is never more than the pool has, however many members call at once", async () => {
    const { world } = await begin()
    await write(
      world,
      teamTenant("red"),
      (sql) => sql`INSERT INTO tollgate_tenants_memberships
        SELECT id, 'ten_red', 'member', 'active', 5, 5 FROM tollgate_tenants_accounts`
    )
    const admitted = await world.run.runPromise(
      Effect.gen(function* () {
        const { submit } = yield* Writer
        const gate = yield* Gate
        const credit = {
          account: "bil_red",
          amount: 10n,
          source: "purchase",
          reference: "r",
          description: ""
        } as const
        yield* submit({ postings: [{ _tag: "Credit", ...credit }], statements: [] })
        const call = (who: Name) =>
          gate.meter(
            {
              caller: {
                account_id: world.accounts[who].account_id,
                tenant_id: world.accounts[who].home,
                application_id: null,
                credential: "api_key",
                team_first: false
              },
              usage_type: "tool",
              endpoint: "search",
              model: "m",
              provider: "p",
              least: 3n,
              most: 3n
            },
            (admission) =>
              Effect.zipRight(
                Effect.yieldNow(),
                admission.answer({ ...failure(""), cost: 3n, success: true, error_type: null }, () => who)
              )
          )
        const answers = yield* Effect.all(
          Array.from({ length: 60 }, (_, i) => Effect.either(call(people[i % 2]!))),
          { concurrency: "unbounded" }
        )
        return answers.filter(Either.isRight).length
      })
    )
    expect(admitted).toBe(3)
    expect(await world.run.runPromise(verify)).toEqual([])
    await world.run.dispose()
  })
})
