/**
 * Stories of three nodes over one PostgreSQL database: transactions, alone and at once, letters, and between any two statements lost
 * connections, kills, leases that lapse and nodes that give back what others had set aside. Whatever happens, the answers, the notebook and
 * the books agree, no call is admitted that nobody would give back, and no letter leaves twice. Planted mistakes show that they bite.
 */
import { Effect, Option, Schema } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { verify } from "../../../src/app/Checks.ts"
import { Gate } from "../../../src/books/gate/Gate.ts"
import { usageOf } from "../../../src/kernel/Ids.ts"
import type { BillingAccountId } from "../../../src/kernel/Ids.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { LedgerRefusal } from "../../../src/books/ledger/rules/Problems.ts"
import type { Posting, Result } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { messageId } from "../../../src/people/mail/Delivery.ts"
import { Outbox } from "../../../src/people/mail/Outbox.ts"
import { Runs } from "../../../src/storage/engine/Runs.ts"
import { empty, people, post } from "../../../src/testing/LedgerModel.ts"
import type { Notebook } from "../../../src/testing/LedgerModel.ts"
import { broken, InvariantBroken, submitted, viewsOf } from "../../../src/testing/LedgerProperties.ts"
import type { Answer, LedgerUnderTest } from "../../../src/testing/LedgerProperties.ts"
import { amounts, ledgerSteps } from "../../../src/testing/LedgerStories.ts"
import type { LedgerStory } from "../../../src/testing/LedgerStories.ts"
import * as transfers from "../../../src/money/transfers/Checks.ts"
import { nodeOf, none, startDatabases } from "../../support/nodes.ts"
import { asked } from "../../support/postgres.ts"
import type { Cut, Database, Databases, Mistake, Node } from "../../support/nodes.ts"
import { tell } from "../../support/story.ts"
import type { Step } from "../../support/story.ts"

let databases: Databases
beforeAll(async () => {
  databases = await startDatabases()
})
afterAll(() => databases.stop())

// ---- three nodes --------------------------------------------------------------------------------------------------------

interface Member {
  readonly node: Node
  readonly run: string
}

const places = 3
/** Longer than a story. */
const forLong = "1 day"
/** How many nodes are asked until one takes a transaction. */
const triesMax = 20

const refusalOf = Schema.encodeSync(LedgerRefusal)
const ofTransfers: ReadonlySet<string> = new Set(transfers.checks.map(({ name }) => name))

class Deployment implements LedgerUnderTest {
  /** By place; one whose node was killed is empty until another begins there. */
  readonly #members: Array<Member | undefined> = Array.from({ length: places }, () => undefined)
  readonly #database: Database
  readonly #mistake: Mistake
  readonly #ends: Array<Promise<void>> = []
  #turn = 0
  /** All runs that there were, and those whose lease has lapsed, or that another node has ended since. */
  readonly #runs: Array<string> = []
  readonly #lapsed = new Set<string>()
  readonly #ended = new Set<string>()
  /** Under which run a call was reserved last, whether or not that is known to be done. */
  readonly #runOf = new Map<string, string>()
  /** The letters that were written, and how often each was sent, by its Message-ID. */
  #letters = 0
  readonly #sent = new Map<string, number>()

  constructor(database: Database, mistake: Mistake) {
    this.#database = database
    this.#mistake = mistake
  }

  /** Starts a node in each empty place; answers the open calls that these gave back. */
  async begin({ calls }: Notebook): Promise<ReadonlyArray<string>> {
    if (!this.#members.includes(undefined)) return []
    const released = this.#due(calls.keys())
    for (const [place, member] of this.#members.entries()) {
      if (member !== undefined) continue
      const node = nodeOf({
        url: this.#database.url,
        mistake: this.#mistake,
        steered: true,
        send: (id) => this.#sent.set(id, (this.#sent.get(id) ?? 0) + 1)
      })
      const run = await node.runPromise(Effect.map(Runs, (runs) => runs.run))
      this.#members[place] = { node, run }
      this.#runs.push(run)
      await this.#lease(run, forLong)
    }
    return released
  }

  /** The open calls whose run nobody has a lease for, as far as another one than `own` is asked. Their runs are ended then. */
  #due(calls: Iterable<string>, own?: string): ReadonlyArray<string> {
    const due = [...calls].filter((call) => {
      const run = this.#runOf.get(call)!
      return run !== own && this.#lapsed.has(run)
    })
    for (const call of due) this.#ended.add(this.#runOf.get(call)!)
    return due
  }

  #lease(run: string, time: string): Promise<unknown> {
    return asked(this.#database.url, (client) =>
      client.query("UPDATE tollgate_sql_nodes SET until = now() + $2::interval, ended = false WHERE run = $1", [
        run,
        time
      ])
    )
  }

  get #living(): ReadonlyArray<Member> {
    return this.#members.filter((member) => member !== undefined && !member.node.isDead()) as ReadonlyArray<Member>
  }

  #next(): Member {
    const living = this.#living
    return living[this.#turn++ % living.length]!
  }

  // ---- what nodes are asked for -----------------------------------------------------------------------------------------

  async submit(postings: ReadonlyArray<Posting>): Promise<Answer | "lost"> {
    for (let tries = 0; tries < triesMax; tries++) {
      const member = this.#next()
      const { node, run } = member
      for (const posting of postings) if (posting._tag === "Reserve") this.#runOf.set(posting.call, run)
      const answer = await Promise.race([
        ask(
          node,
          postings.map((posting) => (posting._tag === "Reserve" ? { ...posting, run } : posting))
        ),
        node.died.then(() => "lost" as const)
      ])
      if (node.isDead()) {
        await this.#bury(member)
        return "lost"
      }
      if (answer !== undefined) return this.#permitted(run, answer)
      // Nothing was written. Where no node has a lease any more, this one renews it.
      if (this.#living.every((one) => this.#ended.has(one.run))) await this.#renew(run)
    }
    throw new Error("no node takes it")
  }

  /** Whoever gives back what a run had set aside has done so: what it admits later stays set aside. */
  #permitted(run: string, answer: Answer | "lost"): Answer | "lost" {
    if (answer === "lost" || !("results" in answer) || !this.#ended.has(run)) return answer
    if (answer.results.some(({ _tag }) => _tag === "Reserved"))
      throw new Error("a call was admitted under a run that another node had ended")
    return answer
  }

  async account(id: string) {
    const find = Effect.flatMap(Ledger, (ledger) => ledger.account(id as BillingAccountId))
    return this.#next().node.runPromise(Effect.map(find, Option.getOrUndefined))
  }

  async entries(id: string) {
    const find = Effect.flatMap(Ledger, (ledger) =>
      ledger.entries(id as BillingAccountId, { page: 1, per_page: 10_000 })
    )
    return this.#next().node.runPromise(Effect.map(find, ({ records }) => records.toReversed()))
  }

  /** Writes a letter, on some node. A second one of its key is not taken, so it is written until that is known. */
  async write(): Promise<void> {
    const key = `letter_${this.#letters++}`
    const written = Effect.gen(function* () {
      const outbox = yield* Outbox
      const writer = yield* Writer
      const letter = yield* outbox.letter({ key, to: "ada@example.com", subject: key, text: "text" })
      yield* writer.submit({ postings: [], statements: [letter] })
    })
    for (let tries = 0; tries < triesMax; tries++) {
      const member = this.#next()
      const exit = await Promise.race([member.node.runPromise(Effect.exit(written)), member.node.died])
      if (member.node.isDead()) await this.#bury(member)
      else if (exit?._tag === "Success") return
    }
    throw new Error("no node takes the letter")
  }

  /** All nodes at once send the letters that are due. (A node that is killed meanwhile may have sent one: that is another test.) */
  async send(): Promise<void> {
    const living = this.#living
    for (const { node } of living) node.heal()
    await Promise.all(
      living.map(({ node }) => node.runPromise(Effect.flatMap(Outbox, ({ jobs }) => Effect.orDie(jobs[0]!.turn))))
    )
    for (let i = 0; i < this.#letters; i++) {
      const times = this.#sent.get(messageId(`letter_${i}`, "example.com")) ?? 0
      if (times > 1) throw new Error(`letter ${i} was sent ${times} times`)
    }
  }

  // ---- what happens to them ---------------------------------------------------------------------------------------------

  cut(place: number, cut: Cut): void {
    // One lives on.
    if (!cut.kills || this.#living.length > 1) this.#members[place]?.node.cut({ ...cut })
    if (cut.kills) for (const { node } of this.#living) if (node !== this.#members[place]?.node) node.heal()
  }

  async kill(place: number): Promise<void> {
    const member = this.#members[place]
    if (member === undefined || this.#living.length === 1) return
    member.node.kill()
    await this.#bury(member)
    for (const { node } of this.#living) if (this.#living.length === 1) node.heal()
  }

  async #bury(member: Member): Promise<void> {
    await member.node.gone()
    const place = this.#members.indexOf(member)
    if (place < 0) return
    this.#members[place] = undefined
    this.#ends.push(member.node.dispose())
  }

  /** The lease of one of the runs lapses, whether or not its node lives. */
  async lapse(which: number): Promise<void> {
    const run = this.#runs.at(-1 - (which % this.#runs.length))!
    if (this.#ended.has(run)) return
    this.#lapsed.add(run)
    await this.#lease(run, "-1 hour")
  }

  async renew(place: number): Promise<void> {
    const member = this.#members[place]
    if (member !== undefined) await this.#renew(member.run)
  }

  async #renew(run: string): Promise<void> {
    this.#lapsed.delete(run)
    this.#ended.delete(run)
    await this.#lease(run, forLong)
  }

  /** Nodes give back at once what runs without a lease had set aside; answers which open calls those are. */
  async reclaim(count: number, { calls }: Notebook): Promise<ReadonlyArray<string>> {
    const members = Array.from({ length: Math.min(count, this.#living.length) }, () => this.#next())
    for (const { node } of members) node.heal()
    const due = new Set(members.flatMap(({ run }) => this.#due(calls.keys(), run)))
    await Promise.all(members.map(({ node }) => node.runPromise(Effect.flatMap(Gate, (gate) => gate.reclaim))))
    return [...due]
  }

  async verify(): Promise<void> {
    const findings = await this.#next().node.runPromise(verify)
    // Stories of the ledger alone put credit into escrow that no transfer knows of.
    const wrong = findings.filter(({ check }) => !ofTransfers.has(check))
    if (wrong.length > 0) throw new Error(wrong.map(({ message }) => message).join("\n"))
  }

  async close(): Promise<void> {
    for (const { node } of this.#living) this.#ends.push(node.dispose())
    await Promise.all(this.#ends)
    await this.#database.drop()
  }
}

/** `undefined`: nothing was written. */
const ask = (node: Node, postings: ReadonlyArray<Posting>): Promise<Answer | "lost" | undefined> =>
  node.runPromise(
    Effect.match(
      Effect.flatMap(Writer, (writer) => writer.submit({ postings, statements: [] })),
      {
        onFailure: (refusal): Answer | "lost" | undefined => {
          if (refusal._tag === "BooksUnavailable") return refusal.maybe_written ? "lost" : undefined
          return { refusal: refusalOf(refusal) }
        },
        onSuccess: (results): Answer => ({ results: results as ReadonlyArray<Result> })
      }
    )
  )

// ---- stories ------------------------------------------------------------------------------------------------------------

type NodesStep = Step<LedgerStory, Deployment>

const failure = {
  cost: 0n,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  usage_source: "none",
  latency_ms: 0,
  success: false,
  error_type: "interrupted"
} as const

/** The notebook when these calls have been given back. */
const givenBack = (notebook: Notebook, calls: ReadonlyArray<string>): Notebook =>
  calls.reduce((before, call) => {
    const done = post(before, { _tag: "Settle", call, outcome: failure })
    if ("refusal" in done) throw new Error("a release is not refused")
    return { ...done.notebook, settled: new Map(before.settled).set(call, usageOf(call)) }
  }, notebook)

/** A step in which nodes may give calls back. */
const giving =
  (give: (deployment: Deployment, notebook: Notebook) => Promise<ReadonlyArray<string>>): NodesStep["happen"] =>
  async (story, deployment) => {
    story.now = givenBack(story.now, await give(deployment, story.now))
    const why = broken(await viewsOf(deployment), story.now)
    if (why !== undefined) throw new InvariantBroken(why)
  }

const place = fc.nat({ max: places - 1 })
const nodeAt = (at: number): string => `node ${at + 1}`

const cutting = (at: number, cut: Cut): NodesStep => ({
  sentence: `${nodeAt(at)} ${cut.kills ? "is killed" : "loses its connection"} ${cut.reaches ? "behind" : "before"} the next but ${cut.left} of its ${cut.of}`,
  happen: async (_, deployment) => deployment.cut(at, cut)
})

const cuts = (of: Cut["of"], most: number) =>
  fc
    .tuple(place, fc.nat({ max: most }), fc.boolean(), fc.boolean())
    .map(([at, left, reaches, kills]) => cutting(at, { of, left, reaches, kills }))

const lostAnswers = place.map((at) => cutting(at, { of: "commits", left: 0, reaches: true, kills: false }))

const lapses: fc.Arbitrary<NodesStep> = fc.nat({ max: places - 1 }).map((which) => ({
  sentence: `the lease of the run ${which} before the newest lapses`,
  happen: (_, deployment) => deployment.lapse(which)
}))

const reclaims: fc.Arbitrary<NodesStep> = fc.integer({ min: 1, max: places }).map((count) => ({
  sentence: `${count} of the nodes give back what ended runs had set aside`,
  happen: giving((deployment, notebook) => deployment.reclaim(count, notebook))
}))

/** A node settles what another has given back. */
const lates: fc.Arbitrary<NodesStep> = amounts.map((cost) => ({
  sentence: `the call that was given back last is settled late, at a cost of ${cost}`,
  happen: async (story, deployment) => {
    const call = [...story.now.released.keys()].at(-1)
    if (call === undefined) return
    const outcome = { ...failure, cost, success: true, error_type: null }
    story.now = await submitted(story.now, deployment, [[{ _tag: "Settle", call, outcome }]])
  }
}))

const letters: fc.Arbitrary<NodesStep> = fc.constant({
  sentence: "a letter is written",
  happen: (_, deployment) => deployment.write()
})

const sends: fc.Arbitrary<NodesStep> = fc.constant({
  sentence: "all nodes send letters",
  happen: (_, deployment) => deployment.send()
})

const faults: ReadonlyArray<fc.Arbitrary<NodesStep>> = [
  cuts("statements", 14),
  cuts("commits", 1),
  place.map((at) => ({
    sentence: `${nodeAt(at)} is killed, if another one lives`,
    happen: (_, deployment) => deployment.kill(at)
  })),
  fc.constant({
    sentence: "nodes begin where none is",
    happen: giving((deployment, notebook) => deployment.begin(notebook))
  }),
  lapses,
  reclaims,
  lates,
  place.map((at) => ({ sentence: `${nodeAt(at)} renews its lease`, happen: (_, deployment) => deployment.renew(at) })),
  letters,
  sends
]

/** Tells stories of nodes that make a mistake, if one is given. */
const checkNodes = ({
  before,
  often = [],
  mistake = none,
  shrink_limit,
  stories
}: {
  readonly stories: number
  readonly shrink_limit?: number
} & Partial<Planted>): Promise<void> =>
  tell<LedgerStory, Deployment>({
    steps: [...ledgerSteps, ...ledgerSteps, ...faults, ...often],
    begin: async () => {
      const database = await databases.fresh()
      if (before !== undefined) await asked(database.url, (client) => client.query(before))
      const deployment = new Deployment(database, mistake)
      await deployment.begin(empty)
      let now = empty
      for (const account of people)
        now = await submitted(now, deployment, [[{ _tag: "Open", account, tenant: `ten_${account}` }]])
      return { notebook: { now, named: 0 }, world: deployment }
    },
    end: (_, deployment) => deployment.verify(),
    close: (deployment) => deployment.close(),
    stories,
    length: 50,
    shrink_limit
  })

describe("three nodes over one database", () => {
  it("agree with the notebook, whatever is lost, killed or lapses between any two statements", () =>
    checkNodes({ stories: 8 }))
})

interface Planted {
  readonly mistake: Mistake
  /** What is done to each database first. */
  readonly before?: string
  /** Steps that happen more often: what finds it comes about sooner. */
  readonly often?: ReadonlyArray<fc.Arbitrary<NodesStep>>
}

/** Each is a guard that the nodes rely on, taken away. */
const mistakes: Readonly<Record<string, Planted>> = {
  "a lost update: amounts are not locked": {
    mistake: (text) =>
      text.replace(/(FROM tollgate_ledger_amounts WHERE account = ANY.* ORDER BY account) FOR UPDATE/, "$1")
  },
  "a missing fence: a run that was ended admits": {
    mistake: (text) => text.replace("SELECT ended FROM", "SELECT 0 AS ended FROM"),
    often: [lapses, reclaims, lapses, reclaims, lapses, reclaims]
  },
  "work done twice: a call is settled whether or not it is open": {
    mistake: (text) =>
      text.replace(
        /^SELECT id FROM tollgate_ledger_reservations WHERE id = ANY\((\S+)\) .*/,
        "SELECT unnest($1) AS id"
      ),
    // The database refuses a second record of a call: a second guard.
    before: "DROP INDEX tollgate_usage_records_id"
  },
  "work done twice: a letter is sent without its claim": {
    mistake: (text) =>
      text.replace(
        /(SET status = 'sending'[^]* WHERE key = \S+) AND status = 'waiting' AND attempts = (\S+)/,
        "$1 AND $2::int >= 0"
      ),
    often: [letters, sends, letters, sends]
  },
  "a settlement whose reservation was released books nothing": {
    mistake: (text) => text.replace("AND r.error_type = 'interrupted'", "AND false"),
    often: [lapses, reclaims, lates, lapses, reclaims, lates]
  },
  "work done twice: a late settlement leaves the record that it is found by": {
    mistake: (text) => text.replace("SET id = id || '_released'", "SET id = id"),
    // The database refuses a second record of a call: a second guard.
    before: "DROP INDEX tollgate_usage_records_id",
    often: [lapses, reclaims, lates, lates, lapses, reclaims, lates, lates]
  },
  "a run is ended while its lease lasts": {
    mistake: (text) => text.replace(/(AND NOT ended) AND greatest\(.*\) < now\(\)/, "$1")
  },
  "a commit without an answer is taken to be rolled back": {
    mistake: (text) => text.replace("pg_xact_status(?::xid8)", "left('aborted' || ?, 7)"),
    often: [lostAnswers, lostAnswers, lostAnswers, lostAnswers]
  }
}

describe("stories of three nodes find", () => {
  it.each(Object.entries(mistakes))("%s", async (_, mistake) => {
    const failure = await checkNodes({ ...mistake, stories: 200, shrink_limit: 500 }).catch((error: unknown) => error)
    expect(failure).toMatchObject({ name: "StoryFailed" })
    if (process.env["SHOW_STORIES"] !== undefined) console.log((failure as Error).message)
  })
})
