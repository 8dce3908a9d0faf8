/**
 * A year of allowances on two nodes over one PostgreSQL database. Nodes are killed or lose their connection between any two statements of a
 * renewal, the clock jumps over several periods and back, and stands at the last and the first millisecond of months. A bystander says what
 * each turn must write. Planted mistakes show that the year finds them.
 */
import * as Statement from "@effect/sql/Statement"
import { Clock, Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { random } from "../../../scripts/simulate/machine/Random.ts"
import type { Random } from "../../../scripts/simulate/machine/Random.ts"
import { Gate } from "../../../src/books/gate/Gate.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import type { Entry } from "../../../src/books/ledger/rules/Transaction.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { day, hour } from "../../../src/kernel/Moment.ts"
import { numberOf, startOf } from "../../../src/kernel/Period.ts"
import type { Period } from "../../../src/kernel/Period.ts"
import { keepOf } from "../../../src/money/allowances/Allowance.ts"
import type { Rollover, Terms } from "../../../src/money/allowances/Allowance.ts"
import { Allowances } from "../../../src/money/allowances/Allowances.ts"
import { Plans } from "../../../src/money/allowances/Settings.ts"
import type { Vouchers } from "../../../src/money/vouchers/Vouchers.ts"
import { nodeOf, none, startDatabases } from "../../support/nodes.ts"
import type { Database, Databases, Mistake, Node } from "../../support/nodes.ts"
import { asked } from "../../support/postgres.ts"
import * as Scene from "../Nodes.ts"

let databases: Databases
beforeAll(async () => {
  databases = await startDatabases()
})
afterAll(() => databases.stop())

/** From the last millisecond of a 31 January, past a 28 and a 29 February. */
const first = Date.UTC(2027, 1, 1) - 1
const last = Date.UTC(2028, 2, 1, 12)

const rollovers: ReadonlyArray<Rollover> = ["none", "all", { up_to_usd: 500n }, { up_to_usd: 100_000n }]
const periods: ReadonlyArray<Period> = ["week", "month"]
const everyRule = rollovers.flatMap((rollover) => periods.map((period) => ({ rollover, period })))

/** How often a turn is tried again until nothing failed. */
const triesMax = 20
/** Calls of a held run stay open when a node begins. */
const run = "held"

type Rooms = Exclude<Scene.Rooms, Vouchers>

/** What the bystander knows of a tenant. */
interface Known {
  readonly tenant: TenantId
  readonly terms: Terms
  /** `undefined` while there is no allowance. */
  began: number | undefined
  /** The last grant of this allowance, and the charges since. */
  last: { readonly amount: bigint; spent: bigint } | undefined
  readonly granted: Set<number>
  readonly calls: Array<string>
  /** The credit that is there, by what was written. */
  balance: bigint
}

interface Due {
  readonly number: number
  readonly unused: bigint
  readonly granted: bigint
}

const words = ({ amount, type }: Entry): string => `${type} of ${amount}`
const wordsOf = ({ granted, unused }: Due): ReadonlyArray<string> => [
  ...(unused > 0n ? [`debit of ${unused}`] : []),
  `credit of ${granted}`
]

class Year {
  readonly known: ReadonlyArray<Known> = everyRule.map((rule, i) => ({
    tenant: `ten_pupil${i}` as TenantId,
    terms: { ...rule, amount_usd: BigInt(1_000 * (i + 1)) },
    began: undefined,
    last: undefined,
    granted: new Set(),
    calls: [],
    balance: 0n
  }))
  now = first
  killed = 0
  readonly #draw: Random
  readonly #database: Database
  readonly #mistake: Mistake
  readonly #nodes: Array<Node>
  readonly #ends: Array<Promise<void>> = []
  readonly #clock: Clock.Clock
  #named = 0
  /** How many days the clock jumped at the last move. */
  #jumped = 0

  constructor(seed: string, database: Database, mistake: Mistake) {
    this.#draw = random(seed)
    this.#database = database
    this.#mistake = mistake
    this.#clock = Object.assign(Object.create(Clock.make()) as Clock.Clock, {
      currentTimeMillis: Effect.sync(() => this.now),
      unsafeCurrentTimeMillis: () => this.now
    })
    this.#nodes = [this.#node(), this.#node()]
  }

  // ---- nodes --------------------------------------------------------------------------------------------------------------

  #node(): Node {
    return nodeOf({ url: this.#database.url, mistake: this.#mistake, clock: this.#clock })
  }

  on<A, E>(place: number, effect: Effect.Effect<A, E, Rooms>): Promise<A> {
    const rooms = Layer.provide(Allowances.layer, Layer.succeed(Plans, {}))
    return this.#nodes[place]!.runPromise(
      Effect.provide(effect, rooms).pipe(
        Effect.withClock(this.#clock),
        // The node changes what its writer says, and this what its readers ask.
        Statement.withTransformer((self, sql) => {
          const [text, values] = self.compile()
          return Effect.succeed(sql.unsafe(this.#mistake(text), values))
        })
      )
    )
  }

  /** Renewals on a node, until they are over or it is killed. Answers whether nothing failed. */
  async #renews(place: number): Promise<boolean> {
    const node = this.#nodes[place]!
    const due = Effect.exit(Effect.flatMap(Allowances, ({ renewDue }) => renewDue))
    const exit = await Promise.race([this.on(place, due), node.died])
    return exit?._tag === "Success" && exit.value.failed === 0
  }

  /** Starts a node in the place of each that was killed. */
  async #restart(): Promise<void> {
    for (const [place, node] of this.#nodes.entries()) {
      node.heal()
      if (!node.isDead()) continue
      await node.gone()
      this.#ends.push(node.dispose())
      this.killed++
      this.#nodes[place] = this.#node()
    }
  }

  // ---- what happens -------------------------------------------------------------------------------------------------------

  async begin(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.runPromise(Gate)))
    for (const { tenant } of this.known) await this.on(0, Scene.open(tenant))
    for (const one of this.known) await this.credit(one, "purchase", 700n)
    for (const one of this.known) await this.set(one)
  }

  /** Moves the clock: some hours, to the border of a month, over several periods, or back; often a jump is half corrected. */
  move(): void {
    const { below, chance, next } = this.#draw
    const border = startOf("month", numberOf("month", this.now) + 1)
    const [kind, jumped] = [next(), this.#jumped]
    this.#jumped = 0
    if (jumped > 0 && chance(0.6)) this.now -= below(jumped) * day
    else if (kind < 0.15) this.now = border - 1
    else if (kind < 0.3) this.now = border
    else if (kind < 0.4) this.now += (this.#jumped = 15 + below(60)) * day
    else if (kind < 0.45) this.now -= below(20) * day
    else this.now += (1 + below(160)) * hour
    this.now = Math.min(last, Math.max(first, this.now))
  }

  /** Both nodes renew what is due, whatever meets them; then the new entries are compared with what was due. */
  async turn(): Promise<void> {
    const before = await Promise.all(
      this.known.map(async (one) => ({ one, due: await this.dueOf(one), entries: (await this.#grants(one)).length }))
    )
    const { chance, pick } = this.#draw
    const quiet = before.filter(({ due, one }) => due !== undefined && one.calls.length === 0)
    if (chance(0.3) && quiet.length > 0) await this.#meanwhile(pick(quiet).one)
    else {
      this.#cut()
      await Promise.all([this.#renews(0), this.#renews(1)])
    }
    await this.#restart()
    for (let tries = 0; !(await this.#renews(tries % 2)); tries++) expect(tries).toBeLessThan(triesMax)
    for (const { due, entries, one } of before) {
      const fresh = (await this.#grants(one)).slice(entries)
      expect(fresh.map(words), `${one.tenant} at ${new Date(this.now).toISOString()}`).toEqual(
        due === undefined ? [] : wordsOf(due)
      )
      if (due !== undefined) this.#note(one, due)
    }
  }

  /** Credit is granted on one node while the other renews: it was not committed when the renewal read the books. */
  async #meanwhile(one: Known): Promise<void> {
    const { reached, release } = this.#nodes[0]!.hold()
    const credited = this.credit(one, "admin", 900n)
    await reached
    let over = false
    const renewed = this.#renews(1).finally(() => (over = true))
    await this.#blocked(() => over)
    release()
    await Promise.all([credited, renewed])
  }

  /** Waits until a statement waits for what another has locked, or until it is so. */
  async #blocked(until: () => boolean): Promise<void> {
    const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    while (!until()) {
      const { rows } = await asked(this.#database.url, (client) => client.query(waiting))
      if (rows.length > 0) return
      await new Promise((again) => setTimeout(again, 5))
    }
  }

  #cut(): void {
    const { below, chance } = this.#draw
    if (chance(0.2)) return
    const of = chance(0.7) ? "statements" : "commits"
    const left = below(of === "statements" ? 16 : 2)
    this.#nodes[below(2)]!.cut({ of, left, reaches: chance(0.5), kills: chance(0.6) })
  }

  /** Calls begin and end, and credit comes, an allowance ends or begins again. */
  async live(): Promise<void> {
    const { below, chance, pick } = this.#draw
    const one = pick(this.known)
    if (chance(0.5)) await this.#call(one)
    if (chance(0.5)) await this.#settle(pick(this.known))
    if (chance(0.1)) await this.credit(pick(this.known), pick(["purchase", "admin"]), BigInt(1 + below(2_000)))
    if (one.began === undefined) await this.set(one)
    else if (chance(0.1)) await this.#end(one, chance(0.6))
  }

  async #call(one: Known): Promise<void> {
    const call = `call_${++this.#named}`
    const most = BigInt(1 + this.#draw.below(3_000))
    const made = await this.on(this.#draw.below(2), Effect.option(Scene.reserve(one.tenant, call, most, run)))
    if (made._tag === "Some") one.calls.push(call)
  }

  async #settle(one: Known): Promise<void> {
    const call = one.calls.shift()
    if (call === undefined) return
    const cost = BigInt(this.#draw.below(4_000))
    const charged = await this.on(this.#draw.below(2), Scene.settle(call, cost))
    one.balance -= charged
    if (one.last !== undefined) one.last.spent += charged
  }

  async credit(one: Known, source: "purchase" | "admin", amount: bigint): Promise<void> {
    const reference = `pay_${++this.#named}`
    const account = billingAccountOf(one.tenant)
    await this.on(
      0,
      Effect.flatMap(Ledger, (ledger) => ledger.credit({ account, amount, source, reference }))
    )
    one.balance += amount
  }

  async set(one: Known): Promise<void> {
    one.began = this.now
    const due = await this.dueOf(one)
    const entries = (await this.#grants(one)).length
    await this.on(
      this.#draw.below(2),
      Effect.flatMap(Allowances, (allowances) => allowances.set(one.tenant, one.terms))
    )
    expect((await this.#grants(one)).slice(entries).map(words)).toEqual(due === undefined ? [] : wordsOf(due))
    if (due !== undefined) this.#note(one, due)
  }

  async #end(one: Known, takes: boolean): Promise<void> {
    const unused = takes ? await this.#unusedOf(one) : 0n
    const { taken_usd } = await this.on(
      this.#draw.below(2),
      Effect.flatMap(Allowances, (allowances) => allowances.end(one.tenant, takes))
    )
    expect(taken_usd).toBe(unused)
    one.balance -= unused
    one.began = undefined
    one.last = undefined
  }

  // ---- the bystander ------------------------------------------------------------------------------------------------------

  /** What a renewal must write now; `undefined` if nothing is due. */
  async dueOf(one: Known): Promise<Due | undefined> {
    const { amount_usd, period, rollover } = one.terms
    const number = numberOf(period, this.now)
    if (one.began === undefined || number < numberOf(period, one.began) || one.granted.has(number)) return undefined
    const unused = await this.#unusedOf(one)
    const keep = keepOf(rollover)
    return { number, unused, granted: amount_usd + (unused < keep ? unused : keep) }
  }

  async #unusedOf({ last, tenant }: Known): Promise<bigint> {
    if (last === undefined) return 0n
    const { granted, reserved } = await this.on(0, Scene.account(tenant))
    const left = last.amount - last.spent
    const others = await this.on(0, Scene.grantedSince(tenant))
    const unused = [granted - reserved, granted - others].reduce((one, other) => (other < one ? other : one), left)
    return unused > 0n ? unused : 0n
  }

  #note(one: Known, { granted, number, unused }: Due): void {
    one.granted.add(number)
    one.last = { amount: granted, spent: 0n }
    one.balance += granted - unused
  }

  async #grants({ tenant }: Known): Promise<ReadonlyArray<Entry>> {
    return (await this.on(0, Scene.entries(tenant))).filter(({ source }) => source === "allowance")
  }

  /** What the books say at the end. */
  async end(): Promise<void> {
    for (const { balance, tenant } of this.known) {
      const { giftable, granted } = await this.on(0, Scene.account(tenant))
      expect(giftable + granted, tenant).toBe(balance)
    }
    expect(await this.on(0, Scene.findings)).toEqual({ found: [], sum: 0n })
  }

  async close(): Promise<void> {
    for (const node of this.#nodes) this.#ends.push(node.dispose())
    await Promise.all(this.#ends)
    await this.#database.drop()
  }
}

/** Lives through a year; answers how often a node was killed, and how many periods were granted. */
const yearOf = async (seed: string, { before, mistake = none }: Partial<Planted> = {}) => {
  const database = await databases.fresh()
  if (before !== undefined) await asked(database.url, (client) => client.query(before))
  const year = new Year(seed, database, mistake)
  try {
    await year.begin()
    while (year.now < last) {
      year.move()
      await year.turn()
      await year.live()
    }
    await year.end()
    return { killed: year.killed, granted: year.known.reduce((sum, { granted }) => sum + granted.size, 0) }
  } finally {
    await year.close()
  }
}

describe("a year of allowances on two nodes", () => {
  it.each(["one", "two"])("grants each period once and takes back what is unused (seed %s)", async (seed) => {
    const { granted, killed } = await yearOf(seed)
    expect(killed).toBeGreaterThan(5)
    // Months of four tenants and weeks of four, without those that the clock jumped over.
    expect(granted).toBeGreaterThan(100)
  })
})

interface Planted {
  readonly mistake: Mistake
  /** What is done to the database first. */
  readonly before?: string
}

/** Each is a guard of the renewal, taken away. */
const mistakes: Readonly<Record<string, Planted>> = {
  "a period is granted twice: its second grant is no conflict": {
    mistake: (text) =>
      text.replace(
        /(INSERT INTO tollgate_allowances_grants[^]*) ON CONFLICT DO NOTHING/,
        "$1 ON CONFLICT (tenant_id, period, number) DO UPDATE SET at = excluded.at"
      )
  },
  "credit is taken back twice: that of an allowance that has ended": {
    mistake: (text) =>
      text.replace(
        "SELECT period, number, era, reference, place, at FROM tollgate_allowances_grants",
        `SELECT period, number, (SELECT a.era FROM tollgate_allowances_allowances a
          WHERE a.tenant_id = tollgate_allowances_grants.tenant_id) AS era, reference, place, at FROM tollgate_allowances_grants`
      )
  },
  "a period is skipped: a later one was granted": {
    mistake: (text) => text.replace("AND g.number = CASE a.period", "AND g.number >= CASE a.period")
  },
  "a period is skipped: the one before was granted": {
    mistake: (text) => text.replace("AND g.number = CASE a.period", "AND g.number + 1 >= CASE a.period")
  },
  "credit that came meanwhile is taken back": {
    mistake: (text) =>
      text.replace("SELECT 1 AS unmoved WHERE NOT EXISTS", "SELECT 1 AS unmoved WHERE true OR NOT EXISTS")
  }
}

describe("a year of two nodes finds", () => {
  it.each(Object.entries(mistakes))("%s", async (_, planted) => {
    const failure = await yearOf("one", planted).catch((error: unknown) => error)
    expect(failure).toMatchObject({ name: "AssertionError" })
    if (process.env["SHOW_STORIES"] !== undefined) console.log((failure as Error).message)
  })
})
