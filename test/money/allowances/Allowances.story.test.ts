/**
 * Allowances among all that moves credit: calls, purchases, grants, refunds, transfers, and periods that come in any order, on two nodes
 * that may be killed at their commit. A bystander keeps the charges since each grant and says what a renewal must do.
 */
import { Effect } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import type { Entry } from "../../../src/books/ledger/rules/Transaction.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { day, hour } from "../../../src/kernel/Moment.ts"
import { Allowances } from "../../../src/money/allowances/Allowances.ts"
import { keepOf } from "../../../src/money/allowances/Allowance.ts"
import type { Terms } from "../../../src/money/allowances/Allowance.ts"
import { numberOf } from "../../../src/kernel/Period.ts"
import { tell } from "../../support/story.ts"
import type { Step } from "../../support/story.ts"
import * as Scene from "../Nodes.ts"

const tenants: ReadonlyArray<TenantId> = ["ten_ada" as TenantId, "ten_bob" as TenantId]

/** What the bystander knows of a tenant. */
interface Known {
  terms: Terms | undefined
  began: number
  /** The last grant, if it may be taken back, and the charges since. */
  last: { readonly amount: bigint; spent: bigint } | undefined
  readonly granted: Set<string>
}

interface Notebook {
  readonly known: ReadonlyMap<TenantId, Known>
  readonly calls: Map<string, TenantId>
  readonly escrows: Map<string, readonly [TenantId, bigint]>
  named: number
}

type Tale = Step<Notebook, Scene.Scene>

const first = Date.UTC(2026, 10, 26, 12)
const tenantOf = fc.constantFrom(...tenants)
const amount = fc.bigInt({ min: 1n, max: 1_000n })

const on = <A, E>(scene: Scene.Scene, effect: Effect.Effect<A, E, Scene.Rooms>, node = 0) => scene.nodes[node]!(effect)
/** What the books refuse changes nothing. */
const tried = <A, E>(effect: Effect.Effect<A, E, Scene.Rooms>) => Effect.option(effect)
const books = <A, E>(use: (ledger: Ledger["Type"]) => Effect.Effect<A, E>) => Effect.flatMap(Ledger, use)

/** What a renewal must write now; `undefined` if nothing is due. */
const dueOf = async (scene: Scene.Scene, known: Known, tenant: TenantId) => {
  if (known.terms === undefined) return undefined
  const { amount_usd, period, rollover } = known.terms
  const number = numberOf(period, scene.now)
  if (number < numberOf(period, known.began) || known.granted.has(`${period} ${number}`)) return undefined
  const unused = await unusedOf(scene, known, tenant)
  const kept = unused < keepOf(rollover) ? unused : keepOf(rollover)
  return { period: `${period} ${number}`, unused, granted: amount_usd + kept }
}

const unusedOf = async (scene: Scene.Scene, { last }: Known, tenant: TenantId): Promise<bigint> => {
  if (last === undefined) return 0n
  const { granted, reserved } = await on(scene, Scene.account(tenant))
  const left = last.amount - last.spent
  const others = await on(scene, Scene.grantedSince(tenant))
  const unused = [granted - reserved, granted - others].reduce((one, other) => (other < one ? other : one), left)
  return unused > 0n ? unused : 0n
}

const words = ({ amount, source, type }: Entry): string => `${type} of ${amount} (${source})`
const isOfAllowance = ({ source }: Entry): boolean => source === "allowance"

/** Runs what may renew, and holds the new entries of each tenant against what is due. */
const renewing = async (notebook: Notebook, scene: Scene.Scene, run: () => Promise<unknown>): Promise<void> => {
  const before = await Promise.all(
    tenants.map(async (tenant) => ({
      tenant,
      due: await dueOf(scene, notebook.known.get(tenant)!, tenant),
      entries: (await on(scene, Scene.entries(tenant))).length
    }))
  )
  await run()
  for (const { due, entries, tenant } of before) {
    const fresh = (await on(scene, Scene.entries(tenant))).slice(entries).filter(isOfAllowance)
    const expected =
      due === undefined
        ? []
        : [...(due.unused > 0n ? [`debit of ${due.unused} (allowance)`] : []), `credit of ${due.granted} (allowance)`]
    expect(fresh.map(words)).toEqual(expected)
    if (due === undefined) continue
    const known = notebook.known.get(tenant)!
    known.granted.add(due.period)
    known.last = { amount: due.granted, spent: 0n }
  }
}

const passes = fc.oneof(fc.integer({ min: -45, max: 60 }), fc.constantFrom(1, 7, 30, 31)).map((days): Tale => ({
  sentence: `the clock is set ${days} days on`,
  happen: async (_, scene) => {
    scene.now = Math.max(0, scene.now + days * day + hour)
  }
}))

const turns = fc
  .record({ nodes: fc.constantFrom([0], [1], [0, 1]), kill: fc.constantFrom(undefined, undefined, "before", "after") })
  .map(({ kill, nodes }): Tale => ({
    sentence: `${nodes.length} nodes look what is due${kill === undefined ? "" : `, one is killed ${kill} its commit`}`,
    happen: (notebook, scene) =>
      renewing(notebook, scene, async () => {
        scene.kill = kill as Scene.Scene["kill"]
        const lived = await Promise.all(nodes.map((node) => on(scene, Scene.renewDue, node)))
        scene.kill = undefined
        // The node is started again.
        if (lived.includes(false)) expect(await on(scene, Scene.renewDue)).toBe(true)
      })
  }))

const sets = fc
  .record({
    tenant: tenantOf,
    amount_usd: amount,
    period: fc.constantFrom("week" as const, "month" as const),
    rollover: fc.oneof(
      fc.constantFrom("none" as const, "all" as const),
      amount.map((up_to_usd) => ({ up_to_usd }))
    )
  })
  .map(({ tenant, ...terms }): Tale => ({
    sentence: `${tenant} gets ${terms.amount_usd} a ${terms.period}`,
    happen: async (notebook, scene) => {
      const known = notebook.known.get(tenant)!
      const others = tenants.filter((one) => one !== tenant)
      // The others' turn is not this request's.
      for (const other of others) if (await dueOf(scene, notebook.known.get(other)!, other)) return
      if (known.terms === undefined) known.began = scene.now
      known.terms = terms
      await renewing(notebook, scene, () =>
        on(
          scene,
          Effect.flatMap(Allowances, (allowances) => allowances.set(tenant, terms))
        )
      )
    }
  }))

const ends = fc.record({ tenant: tenantOf, take_back: fc.boolean() }).map(({ take_back, tenant }): Tale => ({
  sentence: `the allowance of ${tenant} ends${take_back ? ", and is taken back" : ""}`,
  possible: ({ known }) => known.get(tenant)!.terms !== undefined,
  happen: async ({ known }, scene) => {
    const one = known.get(tenant)!
    const unused = take_back ? await unusedOf(scene, one, tenant) : 0n
    const ended = await on(
      scene,
      Effect.flatMap(Allowances, (allowances) => allowances.end(tenant, take_back))
    )
    expect(ended.taken_usd).toBe(unused)
    one.terms = undefined
    one.last = undefined
  }
}))

const credits = fc
  .record({ tenant: tenantOf, amount, source: fc.constantFrom("purchase" as const, "admin" as const) })
  .map(({ amount, source, tenant }): Tale => ({
    sentence: `${tenant} gets ${amount} (${source})`,
    happen: (notebook, scene) => {
      const reference = `pay_${++notebook.named}`
      return on(
        scene,
        tried(books((ledger) => ledger.credit({ account: billingAccountOf(tenant), amount, source, reference })))
      ).then(() => {})
    }
  }))

const refunds = fc.record({ tenant: tenantOf, amount, owes: fc.boolean() }).map(({ amount, owes, tenant }): Tale => ({
  sentence: `${amount} of ${tenant} are refunded`,
  happen: async (notebook, scene) => {
    const reference = `pay_${++notebook.named}`
    const asked = { account: billingAccountOf(tenant), amount, reference }
    await on(
      scene,
      books((ledger) => ledger.takeBack(owes ? { ...asked, payment: reference } : asked))
    )
  }
}))

const reserves = fc.record({ tenant: tenantOf, amount }).map(({ amount, tenant }): Tale => ({
  sentence: `${tenant} calls, for up to ${amount}`,
  happen: async (notebook, scene) => {
    const call = `call_${++notebook.named}`
    const made = await on(scene, tried(Scene.reserve(tenant, call, amount)))
    if (made._tag === "Some") notebook.calls.set(call, tenant)
  }
}))

const settles = fc
  .record({ cost: fc.bigInt({ min: 0n, max: 1_500n }), node: fc.constantFrom(0, 1) })
  .map(({ cost, node }): Tale => ({
    sentence: `the oldest call ends at a cost of ${cost}`,
    possible: ({ calls }) => calls.size > 0,
    happen: async ({ calls, known }, scene) => {
      const [call, tenant] = [...calls][0]!
      calls.delete(call)
      const collected = await on(scene, Scene.settle(call, cost), node)
      const { last } = known.get(tenant)!
      if (last !== undefined) last.spent += collected
    }
  }))

const sends = fc.record({ tenant: tenantOf, amount }).map(({ amount, tenant }): Tale => ({
  sentence: `${tenant} sends ${amount}`,
  happen: async (notebook, scene) => {
    const transfer = `gift_${++notebook.named}`
    const sent = books((ledger) => ledger.escrow({ account: billingAccountOf(tenant), amount, transfer }))
    if ((await on(scene, tried(sent)))._tag === "Some") notebook.escrows.set(transfer, [tenant, amount])
  }
}))

const arrives = fc.boolean().map((back): Tale => ({
  sentence: `a transfer ${back ? "returns" : "arrives"}`,
  possible: ({ escrows }) => escrows.size > 0,
  happen: async ({ escrows }, scene) => {
    const [transfer, [tenant, amount]] = [...escrows][0]!
    const to = back ? tenant : tenants.find((one) => one !== tenant)!
    const source = back ? ("transfer_return" as const) : ("transfer_release" as const)
    const from = billingAccountOf(tenant)
    const ended = books((ledger) => ledger.endEscrow({ source, from, to: billingAccountOf(to), amount, transfer }))
    if ((await on(scene, tried(ended)))._tag === "Some") escrows.delete(transfer)
  }
}))

it("renews what is due once, and takes back what is unused and nothing else", () =>
  tell<Notebook, Scene.Scene>({
    steps: [
      passes,
      passes,
      turns,
      turns,
      turns,
      sets,
      ends,
      credits,
      refunds,
      reserves,
      reserves,
      settles,
      settles,
      sends,
      arrives
    ],
    stories: 60,
    length: 60,
    begin: async () => {
      const world = await Scene.make(first)
      for (const tenant of tenants) await on(world, Scene.open(tenant))
      const known = new Map(
        tenants.map((tenant): [TenantId, Known] => [
          tenant,
          { terms: undefined, began: 0, last: undefined, granted: new Set() }
        ])
      )
      return { notebook: { known, calls: new Map(), escrows: new Map(), named: 0 }, world }
    },
    end: async ({ escrows }, scene) => {
      const { found, sum } = await on(scene, Scene.findings)
      expect(sum).toBe(0n)
      // These transfers are of the books alone.
      const ofTransfers = escrows.size > 0 ? /in escrow, but its pending transfers/ : /^$/
      expect(found.filter((message) => !ofTransfers.test(message) && !/for payment|of payment/.test(message))).toEqual(
        []
      )
    },
    close: (scene) => scene.close()
  }))
