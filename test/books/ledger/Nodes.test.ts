/**
 * The books where several nodes write to one PostgreSQL database: the property suite for ledgers told to three nodes in turn; what two of them would do twice; leases that lapse; a commit whose answer is lost; a connection that falls silent. A planted mistake shows that it bites.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import type { Clock } from "effect"
import { execFileSync } from "node:child_process"
import { connect as connectTo, createServer } from "node:net"
import type { AddressInfo, Socket } from "node:net"
import { Client } from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { verify, verifySince } from "../../../src/app/Checks.ts"
import { failure, Gate } from "../../../src/books/gate/Gate.ts"
import type { AccountId, BillingAccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { ProviderTotalsIndexer } from "../../../src/books/ledger/totals/ProviderTotalsIndexer.ts"
import { endOf } from "../../../src/books/ledger/totals/ProviderTotals.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { LedgerRefusal } from "../../../src/books/ledger/rules/Problems.ts"
import { budgetsOf } from "../../../src/books/ledger/Budgets.ts"
import { everyone } from "../../../src/books/ledger/rules/Budget.ts"
import type { AppliesTo, BudgetLimit } from "../../../src/books/ledger/rules/Budget.ts"
import type { CallOutcome, Posting, Result } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Renewal from "../../../src/storage/postgres/Renewal.ts"
import { Runs } from "../../../src/storage/engine/Runs.ts"
import { Signals } from "../../../src/storage/engine/Signals.ts"
import * as SteeredClock from "../../../src/sandbox/SteeredClock.ts"
import * as transfers from "../../../src/money/transfers/Checks.ts"
import { checkLedger } from "../../../src/testing/LedgerStories.ts"
import type { Answer, LedgerUnderTest } from "../../../src/testing/LedgerProperties.ts"
import { nodeOf, startDatabases } from "../../support/nodes.ts"
import { asked } from "../../support/postgres.ts"
import type { Databases, Node, NodeOptions } from "../../support/nodes.ts"

let server: Databases
beforeAll(async () => {
  server = await startDatabases()
})
afterAll(() => server.stop())

const refusalOf = Schema.encodeSync(LedgerRefusal)

/** Submits until it is known what became of it: a connection that is lost before the commit has done nothing. */
const submitTo = (node: Node, postings: ReadonlyArray<Posting>): Promise<Answer> =>
  node.runPromise(
    Effect.flatMap(Writer, (writer) => writer.submit({ postings, statements: [] })).pipe(
      Effect.retry({ while: (error) => error._tag === "BooksUnavailable" && !error.maybe_written, times: 50 }),
      Effect.catchTag("BooksUnavailable", Effect.die),
      Effect.match({
        onFailure: (refusal): Answer => ({ refusal: refusalOf(refusal) }),
        onSuccess: (results): Answer => ({ results: results as ReadonlyArray<Result> })
      })
    )
  )

const ofTransfers: ReadonlySet<string> = new Set(transfers.checks.map(({ name }) => name))

/** Three nodes as one ledger: each transaction goes to the next of them. */
const threeNodes = async () => {
  const { drop, url } = await server.fresh()
  const nodes = [nodeOf({ url }), nodeOf({ url }), nodeOf({ url })]
  await Promise.all(nodes.map((node) => node.runPromise(Gate)))
  let turn = 0
  const next = (): Node => nodes[turn++ % nodes.length]!
  const ledger: LedgerUnderTest = {
    submit: (postings) => submitTo(next(), postings),
    account: (id) =>
      next().runPromise(
        Effect.map(
          Effect.flatMap(Ledger, (ledger) => ledger.account(id as BillingAccountId)),
          Option.getOrUndefined
        )
      ),
    entries: (id) =>
      next().runPromise(
        Effect.map(
          Effect.flatMap(Ledger, (ledger) => ledger.entries(id as BillingAccountId, { page: 1, per_page: 10_000 })),
          ({ records }) => records.toReversed()
        )
      ),
    limit: (application) =>
      next().runPromise(
        Effect.map(
          Effect.flatMap(Ledger, (ledger) => ledger.limits([application])),
          (limits) => limits.get(application)
        )
      ),
    close: async () => {
      const findings = await nodes[0]!.runPromise(verify)
      await Promise.all(nodes.map((node) => node.dispose()))
      await drop()
      // Stories of the ledger alone put credit into escrow that no transfer knows of.
      expect(findings.filter(({ check }) => !ofTransfers.has(check))).toEqual([])
    }
  }
  return ledger
}

describe("three nodes over one database", () => {
  it("keep the books as one would", () => checkLedger({ make: () => threeNodes(), stories: 3 }))

  it("keep the limits of keys as one would", () => checkLedger({ make: () => threeNodes(), limits: true, stories: 3 }))
})

const open = (account: string, tenant = `ten_${account}`): Posting => ({ _tag: "Open", account, tenant })

const credit = (account: string, amount: bigint): Posting => ({
  _tag: "Credit",
  account,
  amount,
  source: "purchase",
  reference: `pay_${account}`,
  description: "credit"
})

const reserve = (
  call: string,
  account: string,
  run: string,
  amount = 1n,
  application: string | null = null
): Posting => ({
  _tag: "Reserve",
  call,
  run,
  sources: [{ billing_account_id: account, tenant_id: `ten_${account}`, kind: "own", why: "own" }],
  least: amount,
  most: amount,
  facts: {
    account_id: "acc_1",
    tenant_id: `ten_${account}`,
    application_id: application,
    usage_type: "tool",
    endpoint: "search",
    model: "search",
    provider: "search"
  }
})

/** As the gate ends a call of a run that has ended. */
const release = (call: string): Posting => ({
  _tag: "Settle",
  call,
  outcome: { ...failure("interrupted"), latency_ms: 1 }
})

const settle = (call: string, cost: bigint): Posting => settleWith(call, { cost })

const settleWith = (call: string, more: Partial<CallOutcome>): Posting => ({
  _tag: "Settle",
  call,
  outcome: {
    cost: 1n,
    prompt_tokens: 0,
    completion_tokens: 0,
    units: 1,
    usage_source: "provider",
    latency_ms: 1,
    success: true,
    error_type: null,
    ...more
  }
})

/** Nodes over one database, which ends with them. */
const withNodes = async (
  count: number,
  run: (nodes: ReadonlyArray<Node>, url: string) => Promise<void>,
  options: Omit<NodeOptions, "url"> = {}
) => {
  const { drop, url } = await server.fresh()
  const nodes = Array.from({ length: count }, () => nodeOf({ url, ...options }))
  try {
    // A gate that opens gives back what nobody's run has set aside.
    await Promise.all(nodes.map((node) => node.runPromise(Gate)))
    await run(nodes, url)
    if (options.mistake === undefined) expect(await nodes[0]!.runPromise(verify)).toEqual([])
  } finally {
    await Promise.all(nodes.map((node) => node.dispose()))
    await drop()
  }
}

const resultOf = (answer: Answer): string => ("refusal" in answer ? answer.refusal._tag : answer.results[0]!._tag)

/** How many of two hundred calls are admitted that come to three nodes at once, of an account that has credit for three. */
const admitted = async (): Promise<number> => {
  let count = 0
  await withNodes(3, async (nodes) => {
    await submitTo(nodes[0]!, [open("a"), credit("a", 3n)])
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => submitTo(nodes[i % 3]!, [reserve(`call_${i}`, "a", "run_x")]))
    )
    const tags = answers.map(resultOf)
    count = tags.filter((tag) => tag === "Reserved").length
    expect(tags.filter((tag) => tag === "InsufficientCredits")).toHaveLength(200 - count)
  })
  return count
}

describe("a balance for three", () => {
  it("admits three of two hundred calls, whichever node they come to", async () => expect(await admitted()).toBe(3))
})

const setLimit = (application: string, account: string, amount: bigint): Posting => ({
  _tag: "SetLimit",
  application,
  tenant: `ten_${account}`,
  account,
  limit: { amount, period: "month" }
})

/** How many of two hundred calls are admitted that come to three nodes at once, by a key that may spend three. */
const admittedByKey = async (options: Omit<NodeOptions, "url"> = {}): Promise<number> => {
  let count = 0
  await withNodes(
    3,
    async (nodes) => {
      await submitTo(nodes[0]!, [open("a"), credit("a", 1_000n), setLimit("app_a", "a", 3n)])
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          submitTo(nodes[i % 3]!, [reserve(`call_${i}`, "a", "run_x", 1n, "app_a")])
        )
      )
      const tags = answers.map(resultOf)
      count = tags.filter((tag) => tag === "Reserved").length
      expect(tags.filter((tag) => tag === "LimitReached")).toHaveLength(200 - count)
    },
    options
  )
  return count
}

describe("the limit of a key, for three", () => {
  it("admits three of two hundred calls, whichever node they come to", async () =>
    expect(await admittedByKey()).toBe(3))

  it("would admit more if a node did not learn of it", async () => {
    const blind = await admittedByKey({
      mistake: (text) => text.replace("booked_at, limits", "booked_at, 0 AS limits")
    })
    expect(blind).toBe(200)
  })

  it("counts calls that other nodes admit while it is set", async () => {
    await withNodes(3, async (nodes) => {
      await submitTo(nodes[0]!, [open("a"), credit("a", 1_000n)])
      const calls = Array.from({ length: 90 }, (_, i) => `call_${i}`)
      const answers = await Promise.all([
        ...calls.map((call, i) => submitTo(nodes[i % 3]!, [reserve(call, "a", "run_x", 1n, "app_a")])),
        ...[0, 1, 2].map((i) => submitTo(nodes[i]!, [setLimit("app_a", "a", 20n + BigInt(i))]))
      ])
      const tags = answers.map(resultOf)
      expect(tags.filter((tag) => tag === "LimitSet")).toHaveLength(3)
      await Promise.all(calls.map((call, i) => submitTo(nodes[(i + 1) % 3]!, [settle(call, 1n)])))
      const limits = await nodes[2]!.runPromise(Effect.flatMap(Ledger, (ledger) => ledger.limits(["app_a"])))
      const charged = BigInt(tags.filter((tag) => tag === "Reserved").length)
      expect(limits.get("app_a")).toMatchObject({ spent: charged, reserved: 0n })
    })
  })
})

const setBudget = (id: string, anchor: string, limit: BudgetLimit, applies_to: AppliesTo = {}): Posting => ({
  _tag: "SetBudget",
  id,
  kind: "budget",
  anchor,
  ...(anchor !== everyone && { tenant: "ten_a", account: "a" }),
  terms: {
    name: id,
    limit,
    period: "total",
    applies_to,
    mode: "refuse",
    notify_at: [],
    raises: [],
    by_operator: false,
    created_by: "acc_1",
    created_at: 0
  }
})

/** A call of a run within a run of a key. */
const reserveInRun = (call: string): Posting => {
  const posting = reserve(call, "a", "run_x", 1n, "app_a") as Extract<Posting, { _tag: "Reserve" }>
  const facts = {
    ...posting.facts,
    capability: "search",
    runs: ["run_2", "run_1"],
    run_id: "run_2",
    tags: "project=atlas"
  }
  return { ...posting, facts, tokens: { least: 2, most: 3 } }
}

describe("six levels of budgets, for three", () => {
  const levels = [
    setBudget("bud_everyone", everyone, { usd: 120n }),
    setBudget("bud_provider", everyone, { tokens: 250 }, { provider: "search" }),
    setBudget("bud_tenant", "ten_a", { concurrent: 7 }, { tag: "project" }),
    setBudget("bud_key", "app_a", { requests: 110 }),
    setBudget("bud_run", "run_1", { usd: 100n, tokens: 400 }),
    setBudget("bud_child", "run_2", { usd: 101n, concurrent: 9 })
  ]

  it("admit exactly what the tightest leaves of a thousand parallel calls", () =>
    withNodes(3, async (nodes) => {
      await submitTo(nodes[0]!, [open("a"), credit("a", 10_000n), ...levels])
      const refusals = new Set<string>()
      /** Tries again while too many calls are open. */
      const callAt = async (i: number): Promise<boolean> => {
        const answer = await submitTo(nodes[i % 3]!, [reserveInRun(`call_${i}`)])
        if ("refusal" in answer) {
          const { refusal } = answer
          if (refusal._tag !== "BudgetReached") throw new Error(refusal._tag)
          refusals.add(`${refusal.budget} ${refusal.unit}`)
          return refusal.unit === "concurrent" ? callAt(i) : false
        }
        await submitTo(nodes[(i + 1) % 3]!, [settleWith(`call_${i}`, { prompt_tokens: 1, completion_tokens: 1 })])
        return true
      }
      const done = await Promise.all(Array.from({ length: 1_000 }, (_, i) => callAt(i)))
      expect(done.filter((isDone) => isDone)).toHaveLength(100)
      expect(refusals).toContain("bud_run usd")
      const found = await nodes[2]!.runPromise(
        Effect.flatMap(SqlClient, (sql) =>
          budgetsOf(
            sql,
            levels.map((level) => (level as { id: string }).id),
            Date.now()
          )
        )
      )
      for (const budget of found)
        expect(budget).toMatchObject({
          spent: 100n,
          tokens: 200,
          requests: 100,
          reserved: 0n,
          tokens_reserved: 0,
          open: 0
        })
    }))

  it("would admit more if a node did not see the operator's", () =>
    withNodes(
      3,
      async (nodes) => {
        await submitTo(nodes[0]!, [open("a"), credit("a", 10_000n), setBudget("bud", everyone, { requests: 3 })])
        const answers = await Promise.all(
          Array.from({ length: 50 }, (_, i) => submitTo(nodes[i % 3]!, [reserve(`call_${i}`, "a", "run_x")]))
        )
        expect(answers.map(resultOf).filter((tag) => tag === "Reserved")).toHaveLength(50)
      },
      { mistake: (text) => text.replace("WHERE anchor = 'everyone'", "WHERE anchor = 'nobody'") }
    ))
})

describe("a call", () => {
  it("is settled once, though every node settles it at once", () =>
    withNodes(3, async (nodes) => {
      await submitTo(nodes[0]!, [open("a"), credit("a", 100n)])
      for (let i = 0; i < 20; i++) {
        await submitTo(nodes[i % 3]!, [reserve(`call_${i}`, "a", "run_x", 5n)])
        const answers = await Promise.all(nodes.map((node) => submitTo(node, [settle(`call_${i}`, 2n)])))
        expect(answers.map(resultOf).toSorted()).toEqual(["AlreadySettled", "AlreadySettled", "Settled"])
      }
      const account = await nodes[1]!.runPromise(
        Effect.flatMap(Ledger, (ledger) => ledger.account("a" as BillingAccountId))
      )
      expect(Option.getOrThrow(account)).toMatchObject({ giftable: 60n, reserved: 0n, entries: 21 })
    }))
})

describe("a node whose lease lapsed", () => {
  it("admits nothing more once another node has ended it, until it has a lease again; what it settles late is charged", () =>
    withNodes(2, async ([one, two], url) => {
      const run = await one!.runPromise(Effect.map(Runs, (runs) => runs.run))
      const ended = Effect.flatMap(Runs, (runs) => runs.hasEnded(run))
      await submitTo(one!, [open("a"), credit("a", 10n)])
      expect(resultOf(await submitTo(one!, [reserve("call_1", "a", run)]))).toBe("Reserved")
      expect(await two!.runPromise(ended)).toBe(false)
      // Neither the lease nor the server's start is as long ago as this.
      await asked(url, (client) =>
        client.query("UPDATE tollgate_sql_nodes SET until = now() - interval '1 hour', ended = true WHERE run = $1", [
          run
        ])
      )
      expect(await two!.runPromise(ended)).toBe(true)
      const refused = await one!.runPromise(
        Effect.flatMap(Writer, (writer) =>
          Effect.flip(writer.submit({ postings: [reserve("call_2", "a", run)], statements: [] }))
        )
      )
      expect(refused).toMatchObject({ _tag: "BooksUnavailable", maybe_written: false })
      const held = await one!.runPromise(
        Effect.flatMap(Writer, (writer) =>
          Effect.flip(writer.submit({ postings: [reserve("call_3", "a", `held ${run}`)], statements: [] }))
        )
      )
      expect(held).toMatchObject({ _tag: "BooksUnavailable", maybe_written: false })
      // The other one gives back what the call had set aside.
      expect(resultOf(await submitTo(two!, [release("call_1")]))).toBe("Settled")
      expect(resultOf(await submitTo(one!, [settle("call_1", 1n)]))).toBe("Settled")
      await asked(url, (client) => client.query("UPDATE tollgate_sql_nodes SET ended = false WHERE run = $1", [run]))
      expect(resultOf(await submitTo(one!, [reserve("call_2", "a", run)]))).toBe("Reserved")
      expect(resultOf(await submitTo(one!, [settle("call_2", 1n)]))).toBe("Settled")
    }))

  it("would admit calls that nobody gives back if the writer did not look at its run", () =>
    withNodes(
      1,
      async ([one], url) => {
        const run = await one!.runPromise(Effect.map(Runs, (runs) => runs.run))
        await submitTo(one!, [open("a"), credit("a", 10n)])
        await asked(url, (client) => client.query("UPDATE tollgate_sql_nodes SET ended = true WHERE run = $1", [run]))
        expect(resultOf(await submitTo(one!, [reserve("call_1", "a", run)]))).toBe("Reserved")
      },
      { mistake: (text) => text.replace("SELECT ended FROM", "SELECT 0 AS ended FROM") }
    ))

  it("keeps what it has set aside where it comes back while another node looks for that", () => {
    let looks = 0
    // The first answer is that the run has ended; by the second one it is back.
    const mistake = (text: string) =>
      text.startsWith("SELECT 1 FROM tollgate_sql_nodes WHERE run") && looks++ === 0 ? `${text} AND false` : text
    return withNodes(
      2,
      async ([one, two]) => {
        const run = await one!.runPromise(Effect.map(Runs, (runs) => runs.run))
        await submitTo(one!, [open("a"), credit("a", 10n)])
        expect(resultOf(await submitTo(one!, [reserve("call_1", "a", run)]))).toBe("Reserved")
        expect(await two!.runPromise(Effect.flatMap(Gate, ({ reclaim }) => reclaim))).toBe(0)
        expect(looks).toBe(2)
        expect(resultOf(await submitTo(one!, [settle("call_1", 1n)]))).toBe("Settled")
      },
      { mistake }
    )
  })

  it("is forgotten after 30 days, and comes back all the same", () =>
    withNodes(2, async ([one, two], url) => {
      const runs = await Promise.all([one!, two!].map((node) => node.runPromise(Effect.map(Runs, ({ run }) => run))))
      await asked(url, (client) =>
        client.query(
          `INSERT INTO tollgate_sql_nodes (run, name, version, started_at, until) VALUES ('run_dead', 'dead', '', 0, now() - interval '31 days');
           UPDATE tollgate_sql_nodes SET until = now() - interval '31 days' WHERE run = '${runs[1]}'`
        )
      )
      const known = async () =>
        (await asked(url, (client) => client.query("SELECT run FROM tollgate_sql_nodes WHERE until > now()"))).rows
      const all = async () => (await asked(url, (client) => client.query("SELECT run FROM tollgate_sql_nodes"))).rows
      while ((await all()).length !== 2 || (await known()).length !== 2) await new Promise((go) => setTimeout(go, 100))
      expect((await known()).map(({ run }) => run).toSorted()).toEqual(runs.toSorted())
    }))

  it("is not ended while its lease lasts", () =>
    withNodes(2, async ([one, two], url) => {
      const run = await one!.runPromise(Effect.map(Runs, (runs) => runs.run))
      await two!.runPromise(Effect.flatMap(Runs, (runs) => runs.hasEnded(run)))
      const { rows } = await asked(url, (client) =>
        client.query("SELECT ended FROM tollgate_sql_nodes WHERE run = $1", [run])
      )
      expect(rows).toEqual([{ ended: false }])
    }))
})

const claimOf = (tenant_id: TenantId) => ({
  caller: {
    account_id: "acc_a" as AccountId,
    tenant_id,
    application_id: null,
    credential: "user_token" as const,
    team_first: false
  },
  usage_type: "tool" as const,
  endpoint: "x",
  model: "x",
  provider: "x",
  most: 5n,
  least: 5n
})

describe("a call that a frozen node settles late", () => {
  it("is charged, once, though others have given back what it had set aside", () =>
    withNodes(
      2,
      async ([one, two], url) => {
        const tenant_id = "ten_a" as TenantId
        await submitTo(one!, [open("bil_a", tenant_id), credit("bil_a", 10n)])
        const run = await one!.runPromise(Effect.map(Runs, (runs) => runs.run))
        const account = Effect.map(
          Effect.flatMap(Ledger, (ledger) => ledger.account("bil_a" as BillingAccountId)),
          Option.getOrThrow
        )
        const claim = claimOf(tenant_id)
        const late = await one!.runPromise(
          Effect.flatMap(Gate, ({ meter }) =>
            meter(claim, (admission) =>
              Effect.gen(function* () {
                // The node wakes when another has done this.
                yield* Effect.promise(async () => {
                  await asked(url, (client) =>
                    client.query("UPDATE tollgate_sql_nodes SET until = now() - interval '1 hour' WHERE run = $1", [
                      run
                    ])
                  )
                  expect(await two!.runPromise(Effect.flatMap(Gate, ({ reclaim }) => reclaim))).toBe(1)
                  expect(await two!.runPromise(account)).toMatchObject({ giftable: 10n, reserved: 0n, entries: 1 })
                })
                const measured = { ...failure(""), cost: 5n, success: true, error_type: null }
                const receipt = yield* admission.settle(measured)
                expect(yield* admission.settle(measured)).toEqual(receipt)
                return yield* admission.answer(measured, (again) => [receipt, again])
              })
            )
          )
        )
        expect(late.map(({ balance, charged }) => ({ balance, charged }))).toEqual([
          { charged: 5n, balance: 5n },
          { charged: 5n, balance: 5n }
        ])
        expect(await one!.runPromise(account)).toMatchObject({ giftable: 5n, reserved: 0n, entries: 2 })
      },
      { steered: true }
    ))

  it("is charged what the balance has by then; the record of that takes the id of the call", () =>
    withNodes(2, async ([one, two], url) => {
      await submitTo(one!, [open("a"), credit("a", 10n)])
      await submitTo(one!, [reserve("call_1", "a", "run_x", 8n)])
      await submitTo(two!, [release("call_1")])
      await submitTo(two!, [reserve("call_2", "a", "run_y", 7n)])
      expect(await submitTo(one!, [settle("call_1", 8n)])).toEqual({
        results: [{ _tag: "Settled", usage_id: "use_1", collected: 3n, balance: 7n }]
      })
      expect(resultOf(await submitTo(two!, [settle("call_2", 7n)]))).toBe("Settled")
      const { rows } = await asked(url, (client) =>
        client.query(
          "SELECT id, cost::int, uncollected::int, reserved::int, error_type FROM tollgate_usage_records ORDER BY seq"
        )
      )
      expect(rows).toEqual([
        { id: "use_1_released", cost: 0, uncollected: 0, reserved: 8, error_type: "interrupted" },
        { id: "use_1", cost: 3, uncollected: 5, reserved: 0, error_type: null },
        { id: "use_2", cost: 7, uncollected: 0, reserved: 7, error_type: null }
      ])
    }))

  it("is charged no more than the limit of its key leaves", () =>
    withNodes(2, async ([one, two]) => {
      await submitTo(one!, [open("a"), credit("a", 10n), setLimit("app_a", "a", 6n)])
      await submitTo(one!, [reserve("call_1", "a", "run_x", 5n, "app_a")])
      await submitTo(two!, [release("call_1")])
      await submitTo(two!, [reserve("call_2", "a", "run_y", 4n, "app_a")])
      expect(await submitTo(one!, [settle("call_1", 5n)])).toMatchObject({ results: [{ collected: 2n, balance: 8n }] })
      expect(resultOf(await submitTo(two!, [settle("call_2", 4n)]))).toBe("Settled")
    }))

  it("is charged once, though every node settles it at once, and one that never knew it", () =>
    withNodes(3, async (nodes) => {
      await submitTo(nodes[0]!, [open("a"), credit("a", 100n)])
      for (let i = 0; i < 20; i++) {
        await submitTo(nodes[i % 3]!, [reserve(`call_${i}`, "a", "run_x", 5n)])
        await submitTo(nodes[(i + 1) % 3]!, [release(`call_${i}`)])
        const answers = await Promise.all(nodes.map((node) => submitTo(node, [settle(`call_${i}`, 2n)])))
        expect(answers.map(resultOf).toSorted()).toEqual(["AlreadySettled", "AlreadySettled", "Settled"])
        expect(resultOf(await submitTo(nodes[0]!, [release(`call_${i}`)]))).toBe("AlreadySettled")
      }
      const account = await nodes[1]!.runPromise(
        Effect.flatMap(Ledger, (ledger) => ledger.account("a" as BillingAccountId))
      )
      expect(Option.getOrThrow(account)).toMatchObject({ giftable: 60n, reserved: 0n, entries: 21 })
    }))

  it("leaves the one record of its release where it failed at no cost", () =>
    withNodes(2, async ([one, two], url) => {
      await submitTo(one!, [open("a"), credit("a", 10n)])
      await submitTo(one!, [reserve("call_1", "a", "run_x", 5n)])
      await submitTo(two!, [release("call_1")])
      const failed: Posting = {
        _tag: "Settle",
        call: "call_1",
        outcome: { ...failure("upstream_error"), latency_ms: 1 }
      }
      expect(resultOf(await submitTo(one!, [failed]))).toBe("AlreadySettled")
      const { rows } = await asked(url, (client) => client.query("SELECT id FROM tollgate_usage_records"))
      expect(rows).toEqual([{ id: "use_1" }])
    }))
})

describe("a reservation that is written after its call was refused", () => {
  /** Holds the rows of a statement until it is let go of. */
  const holding = async (url: string, text: string) => {
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query("BEGIN")
    await client.query(text)
    return async () => {
      await client.query("COMMIT")
      await client.end()
    }
  }
  const until = async (holds: () => Promise<boolean>): Promise<boolean> => {
    const deadline = performance.now() + 20_000
    while (performance.now() < deadline) {
      if (await holds()) return true
      await new Promise((go) => setTimeout(go, 20))
    }
    return false
  }

  it("is given back as soon as its batch is over, though another connection was free to settle it before", () =>
    withNodes(
      1,
      async ([node], url) => {
        await submitTo(node!, [open("bil_a", "ten_a"), open("bil_b", "ten_b"), credit("bil_a", 10n)])
        const run = await node!.runPromise(Effect.map(Runs, (runs) => runs.run))
        const rowOf = (id: string) => `SELECT 1 FROM tollgate_ledger_amounts WHERE account =
          (SELECT number FROM tollgate_ledger_accounts WHERE id = '${id}') FOR UPDATE`
        const waiting = (count: number) => () =>
          asked(url, (client) =>
            client.query(
              `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
            )
          ).then(({ rows }) => rows.length === count)
        const releaseRun = await holding(url, `SELECT 1 FROM tollgate_sql_nodes WHERE run = '${run}' FOR UPDATE`)
        const releaseA = await holding(url, rowOf("bil_a"))
        const releaseB = await holding(url, rowOf("bil_b"))
        const started = performance.now()
        const after = (millis: number) =>
          new Promise<void>((go) => setTimeout(go, Math.max(0, millis - (performance.now() - started))))
        // On the first connection, where it waits twice, each time for less than a statement may take.
        const refused = node!.runPromise(
          Effect.flatMap(Gate, ({ meter }) => Effect.flip(meter(claimOf("ten_a" as TenantId), () => Effect.never)))
        )
        expect(await until(waiting(1))).toBe(true)
        await after(3_000)
        // So many take the second one.
        const crowd = () =>
          Promise.all(
            Array.from({ length: 40 }, () =>
              node!.runPromise(
                Effect.either(
                  Effect.flatMap(Writer, (writer) => writer.submit({ postings: [credit("bil_b", 1n)], statements: [] }))
                )
              )
            )
          )
        const first = crowd()
        expect(await until(waiting(2))).toBe(true)
        await after(4_000)
        await releaseRun()
        expect(await refused).toMatchObject({ _tag: "BooksUnavailable", maybe_written: true })
        await releaseB()
        await first
        // What waits to be settled goes with them.
        while (performance.now() - started < 6_500) await crowd()
        await releaseA()
        const records = () =>
          asked(url, (client) => client.query("SELECT error_type, reserved::int FROM tollgate_usage_records"))
        expect(await until(async () => (await records()).rows.length > 0)).toBe(true)
        expect((await records()).rows).toEqual([{ error_type: "books_unavailable", reserved: 5 }])
        const { rows } = await asked(url, (client) => client.query("SELECT 1 FROM tollgate_ledger_reservations"))
        expect(rows).toEqual([])
      },
      { limit: 6_000, writers: 2 }
    ))
})

describe("a node that starts again under its name", () => {
  const reserved = (node: Node) =>
    node.runPromise(
      Effect.map(
        Effect.flatMap(Ledger, (ledger) => ledger.account("a" as BillingAccountId)),
        (account) => Option.getOrThrow(account).reserved
      )
    )
  const runOf = (node: Node) => node.runPromise(Effect.map(Runs, ({ run }) => run))

  it("gives back at once what it had set aside before it was killed", async () => {
    const { drop, url } = await server.fresh()
    const former = nodeOf({ url, name: "one" })
    const other = nodeOf({ url, name: "two" })
    await submitTo(former, [open("a"), credit("a", 10n)])
    await submitTo(former, [reserve("call_1", "a", await runOf(former), 5n)])
    await submitTo(other, [reserve("call_2", "a", await runOf(other), 2n)])
    former.kill()
    const again = nodeOf({ url, name: "one" })
    await again.runPromise(Gate)
    expect(await reserved(again)).toBe(2n)
    expect(await again.runPromise(verify)).toEqual([])
    await Promise.all([former, again, other].map((node) => node.dispose()))
    await drop()
  })

  it("is not stopped by a node of another name, nor one without a name by another", async () => {
    const { drop, url } = await server.fresh()
    const nodes = [nodeOf({ url, name: "one" }), nodeOf({ url })]
    await submitTo(nodes[0]!, [open("a"), credit("a", 10n)])
    for (const [i, node] of nodes.entries()) await submitTo(node, [reserve(`call_${i}`, "a", await runOf(node), 1n)])
    const others = [nodeOf({ url, name: "two" }), nodeOf({ url })]
    for (const node of others) await node.runPromise(Gate)
    expect(await reserved(nodes[0]!)).toBe(2n)
    await Promise.all([...nodes, ...others].map((node) => node.dispose()))
    await drop()
  })

  it("fences its former run, which lives: it admits nothing any more, however often it renews its lease; what it settles is charged", async () => {
    const { drop, url } = await server.fresh()
    const former = nodeOf({ url, name: "one" })
    await submitTo(former, [open("a"), credit("a", 10n)])
    const run = await runOf(former)
    await submitTo(former, [reserve("call_1", "a", run, 5n)])
    const again = nodeOf({ url, name: "one" })
    await again.runPromise(Gate)
    expect(await reserved(again)).toBe(0n)
    const tryTo = (posting: Posting) =>
      former.runPromise(
        Effect.flatMap(Writer, (writer) => Effect.flip(writer.submit({ postings: [posting], statements: [] })))
      )
    expect(await tryTo(reserve("call_2", "a", run))).toMatchObject({ _tag: "BooksUnavailable", maybe_written: false })
    // Until it has tried to renew its lease.
    const left = () => former.runPromise(Effect.map(Runs, ({ node }) => node!.lease!.left()))
    while ((await left()) > 0) await new Promise((go) => setTimeout(go, 50))
    expect(await tryTo(reserve("call_2", "a", run))).toMatchObject({ _tag: "BooksUnavailable", maybe_written: false })
    expect(resultOf(await submitTo(former, [settle("call_1", 4n)]))).toBe("Settled")
    await former.dispose()
    // Its row is the fence, and stays.
    const { rows } = await asked(url, (client) =>
      client.query("SELECT ended, replaced FROM tollgate_sql_nodes WHERE run = $1", [run])
    )
    expect(rows).toEqual([{ ended: true, replaced: true }])
    expect(resultOf(await submitTo(again, [reserve("call_3", "a", await runOf(again), 6n)]))).toBe("Reserved")
    expect(await again.runPromise(verify)).toEqual([])
    await again.dispose()
    await drop()
  })
})

describe("a node whose main thread is busy", () => {
  /** Blocks this thread, and asks meanwhile what is in the database at its end. */
  const blocked = (url: string, seconds: number, text: string): unknown =>
    JSON.parse(
      execFileSync(
        process.execPath,
        [
          "-e",
          `const { Client } = require("pg")
          setTimeout(async () => {
            const client = new Client({ connectionString: process.argv[1] })
            await client.connect()
            console.log(JSON.stringify((await client.query(process.argv[2])).rows))
            await client.end()
          }, ${seconds} * 1000)`,
          url,
          text
        ],
        { encoding: "utf8", cwd: import.meta.dirname }
      )
    )
  const leases = "SELECT until > now() AS lasts FROM tollgate_sql_nodes"

  it("keeps its lease by a thread, and loses it without", async () => {
    const { drop, url } = await server.fresh()
    const without = await server.fresh()
    const node = nodeOf({ url, hasThread: true })
    const other = nodeOf({ url: without.url })
    await Promise.all([node, other].map((one) => one.runPromise(Gate)))
    // The thread has loaded its code.
    const renewed = () =>
      asked(url, (client) => client.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'tollgate lease'"))
    while ((await renewed()).rows.length === 0) await new Promise((go) => setTimeout(go, 50))
    expect(blocked(url, 22, leases)).toEqual([{ lasts: true }])
    expect(await asked(without.url, (client) => client.query(leases).then(({ rows }) => rows))).toEqual([
      { lasts: false }
    ])
    await Promise.all([node, other].map((one) => one.dispose()))
    await Promise.all([drop(), without.drop()])
  })

  it("loses it once the main thread has shown no sign of life for too long", async () => {
    const { drop, url } = await server.fresh()
    const node = nodeOf({ url })
    const run = await node.runPromise(Effect.map(Runs, (runs) => runs.run))
    const { renewedAt, stop } = Renewal.start(
      {
        url,
        run,
        text: "UPDATE tollgate_sql_nodes SET started_at = started_at + 1 WHERE run = $1",
        every: 20,
        patience: 5_000,
        stuckAfter: 2_500
      },
      (error) => {
        throw error
      }
    )
    while (renewedAt() === 0) await new Promise((go) => setTimeout(go, 20))
    const renewals = "SELECT started_at FROM tollgate_sql_nodes"
    const before = blocked(url, 5, renewals)
    expect(blocked(url, 1, renewals)).toEqual(before)
    // It lives, and so does the lease.
    const at = renewedAt()
    while (renewedAt() === at) await new Promise((go) => setTimeout(go, 20))
    await stop()
    await node.dispose()
    await drop()
  })
})

/** The transactions of connections that read. */
const selectReading = `SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'tollgate' AND xact_start IS NOT NULL`

describe("an audit of books that several write to", () => {
  /** An hour before the next midnight of UTC, and an hour after it. */
  const clocks = async (): Promise<ReadonlyArray<Clock.Clock>> => {
    const day = 24 * 3_600_000
    const midnight = Math.ceil(Date.now() / day) * day + day
    return Promise.all(
      [-3_600_000, 3_600_000].map(async (hour) => {
        const { advance, clock } = await Effect.runPromise(Effect.orDie(SteeredClock.make(undefined)))
        await Effect.runPromise(advance(midnight + hour - Date.now()))
        return clock
      })
    )
  }

  it("finds nothing where the rows of two days lie between each other", async () => {
    const { drop, url } = await server.fresh()
    const nodes = (await clocks()).map((clock) => nodeOf({ url, clock, tailMax: 2 }))
    for (const [i, node] of nodes.entries()) await submitTo(node, [open(`${i}`), credit(`${i}`, 1_000n)])
    for (let call = 0; call < 20; call++) {
      const account = call % 2
      await submitTo(nodes[account]!, [reserve(`call_${call}`, `${account}`, "run_x", 5n)])
      await submitTo(nodes[account]!, [settle(`call_${call}`, 2n)])
    }
    const days = await asked(url, (client) =>
      client.query("SELECT at / 86400000 AS day FROM tollgate_usage_records ORDER BY seq")
    )
    const changes = days.rows.filter(({ day }, i) => i > 0 && day !== days.rows[i - 1].day)
    expect(changes.length).toBeGreaterThan(10)
    expect(await nodes[0]!.runPromise(verify)).toEqual([])
    await Promise.all(nodes.map((node) => node.dispose()))
    await drop()
  })

  it("goes on behind rows that were committed after later ones", () =>
    withNodes(2, async ([one, two]) => {
      await submitTo(one!, [open("a"), open("b")])
      const { checkpoint } = await two!.runPromise(verifySince(undefined))
      const { reached, release } = one!.hold()
      const first = submitTo(one!, [credit("a", 5n)])
      await reached
      await submitTo(two!, [credit("b", 7n)])
      const meanwhile = await two!.runPromise(verifySince(checkpoint))
      release()
      await first
      const after = await two!.runPromise(verifySince(meanwhile.checkpoint))
      expect([meanwhile.findings, after.findings]).toEqual([[], []])
      expect(after.checkpoint.world).toBe(-12n)
    }))

  it("goes on behind the first row of an account that is being opened", () =>
    withNodes(2, async ([one, two]) => {
      await submitTo(one!, [open("b")])
      const { checkpoint } = await two!.runPromise(verifySince(undefined))
      const { reached, release } = one!.hold()
      const first = submitTo(one!, [open("a"), credit("a", 5n)])
      await reached
      await submitTo(two!, [credit("b", 7n)])
      const meanwhile = await two!.runPromise(verifySince(checkpoint))
      release()
      await first
      const after = await two!.runPromise(verifySince(meanwhile.checkpoint))
      expect([meanwhile.findings, after.findings]).toEqual([[], []])
      expect(after.checkpoint.world).toBe(-12n)
    }))

  it("has a row for its checkpoint, not a number that no row got: books that are moved to a file are numbered on from the last row", () =>
    withNodes(1, async ([one], url) => {
      await submitTo(one!, [open("a"), credit("a", 5n)])
      await submitTo(one!, [reserve("call_1", "a", "run_x")])
      // It might have had an entry.
      await submitTo(one!, [settle("call_1", 0n)])
      const { checkpoint } = await one!.runPromise(verifySince(undefined))
      const { rows } = await asked(url, (client) =>
        client.query(`SELECT (SELECT max(seq) FROM tollgate_ledger_entries) AS entry,
          (SELECT max(seq) FROM tollgate_usage_records) AS record`)
      )
      expect([checkpoint.entry, checkpoint.record].map(String)).toEqual([rows[0].entry, rows[0].record])
    }))

  it("is no transaction that lasts, since the server keeps old versions of rows for it; whatever is written meanwhile", () =>
    withNodes(2, async ([one, two], url) => {
      await submitTo(one!, [open("a"), open("b"), credit("a", 1n)])
      const { checkpoint } = await two!.runPromise(verifySince(undefined))
      for (let i = 0; i < 10; i++) await submitTo((i % 2 === 0 ? one : two)!, [credit("b", 1n)])
      const transactions: Array<number> = []
      let made = 0
      const pause = Effect.promise(async () => {
        const { rows } = await asked(url, (client) => client.query(selectReading))
        transactions.push(rows[0].count)
        if (made < 9) await submitTo((made++ % 2 === 0 ? one : two)!, [credit("a", 1n)])
      })
      const { findings, checkpoint: reached } = await two!.runPromise(
        verifySince(checkpoint, { pace: { slice: 2, pause } })
      )
      expect(findings).toEqual([])
      expect(new Set(transactions)).toEqual(new Set([0]))
      expect(made).toBe(9)
      // What came last is read again by the next.
      expect(Number(-reached.world)).toBeGreaterThan(11)
      const last = await two!.runPromise(verifySince(reached))
      expect([last.findings, last.checkpoint.world]).toEqual([[], -20n])
    }))
})

describe("sums by provider", () => {
  const add = (node: Node): Promise<boolean> =>
    node.runPromise(
      Effect.provide(
        Effect.flatMap(ProviderTotalsIndexer, (adder) => adder.add),
        ProviderTotalsIndexer.layer
      )
    )

  const opened = async (node: Node) => {
    await submitTo(node, [open("a"), open("b"), credit("a", 9n), credit("b", 9n)])
    await submitTo(node, [reserve("call_1", "a", "run_x"), reserve("call_2", "b", "run_x"), settle("call_2", 1n)])
  }

  // `withNodes` verifies at its end.
  it("wait for a batch that has taken its numbers, and have its records then", () =>
    withNodes(2, async ([one, two], url) => {
      await opened(one!)
      expect(await add(two!)).toBe(true)
      const { reached, release } = one!.hold()
      const first = submitTo(one!, [settle("call_1", 1n)])
      await reached
      await submitTo(two!, [reserve("call_3", "b", "run_x"), settle("call_3", 1n)])
      expect(await add(two!)).toBe(false)
      release()
      await first
      expect((await Promise.all([add(one!), add(two!)])).includes(true)).toBe(true)
      const { rows } = await asked(url, (client) =>
        client.query("SELECT sum(requests)::int AS requests FROM tollgate_usage_by_provider")
      )
      expect(rows).toEqual([{ requests: 3 }])
    }))

  it("end at a row, not at a number that no row got: books that are moved to a file are numbered on from the last row", () =>
    withNodes(1, async ([one], url) => {
      await opened(one!)
      // A call that is settled already takes a number for the record that it might have had.
      await submitTo(one!, [settle("call_2", 1n)])
      await add(one!)
      const { rows } = await asked(url, (client) =>
        client.query(
          `SELECT (SELECT max(seq) FROM tollgate_usage_records)::int AS row, last_value::int AS taken FROM tollgate_usage_records_seq`
        )
      )
      expect(rows[0].taken).toBeGreaterThan(rows[0].row)
      expect(await one!.runPromise(Effect.flatMap(SqlClient, endOf))).toBe(rows[0].row)
    }))
})

describe("a node that freezes in the middle of a batch", () => {
  it("does not keep others from what the batch has locked, and writes nothing of it when it wakes", () =>
    withNodes(
      2,
      async ([one, two]) => {
        await submitTo(one!, [open("a")])
        const { reached, release } = one!.hold()
        const late = one!.runPromise(
          Effect.flatMap(Writer, (writer) =>
            Effect.flip(writer.submit({ postings: [credit("a", 5n)], statements: [] }))
          )
        )
        await reached
        const [credited] = await two!.runPromise(
          Effect.flatMap(Writer, (writer) => writer.submit({ postings: [credit("a", 7n)], statements: [] }))
        )
        expect(credited).toEqual({ _tag: "Credited", balance: 7n })
        release()
        expect((await late)._tag).toBe("BooksUnavailable")
        // It goes on over another connection.
        expect(resultOf(await submitTo(one!, [credit("a", 1n)]))).toBe("Credited")
        const account = await two!.runPromise(
          Effect.flatMap(Ledger, (ledger) => ledger.account("a" as BillingAccountId))
        )
        expect(Option.getOrThrow(account)).toMatchObject({ giftable: 8n, entries: 2 })
      },
      { limit: 3_000 }
    ))
})

describe("two nodes at once", () => {
  it("open the same account: one of them does, and the other is refused", () =>
    withNodes(2, async ([one, two]) => {
      for (let i = 0; i < 10; i++) {
        const answers = await Promise.all([submitTo(one!, [open(`a${i}`)]), submitTo(two!, [open(`a${i}`)])])
        expect(answers.map(resultOf).toSorted()).toEqual(["AccountExists", "Opened"])
      }
    }))
})

describe("a commit whose answer is lost", () => {
  /** Passes bytes on to the server, but for the answer to the first commit: there the connection ends. `reaches`: whether the commit does. */
  const losing = async (reaches: boolean) => {
    const target = new URL(server.url)
    let lost = 0
    const proxy = createServer((socket) => {
      const upstream = connectTo(Number(target.port), target.hostname)
      let committing = false
      socket.on("data", (bytes) => {
        if (lost === 0 && bytes.includes("COMMIT")) {
          committing = true
          lost++
          if (!reaches) {
            upstream.destroy()
            socket.destroy()
            return
          }
        }
        upstream.write(bytes)
      })
      upstream.on("data", (bytes) => {
        // The name of the command stands in its answer.
        if (committing && bytes.includes("COMMIT")) {
          upstream.destroy()
          socket.destroy()
        } else socket.write(bytes)
      })
      const end = () => {
        socket.destroy()
        upstream.destroy()
      }
      for (const one of [socket, upstream]) one.on("error", end).on("close", end)
    })
    await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening))
    const { port } = proxy.address() as AddressInfo
    return { port, proxy, lost: () => lost }
  }

  it.each([true, false])(
    "is refused as what may have been done, or surely was not: it reaches the server %s",
    async (reaches) => {
      const { drop, url } = await server.fresh()
      const direct = nodeOf({ url })
      await submitTo(direct, [open("a")])
      const { lost, port, proxy } = await losing(reaches)
      const through = new URL(url)
      through.port = `${port}`
      const node = nodeOf({ url: through.href })
      const answer = await node.runPromise(
        Effect.either(
          Effect.flatMap(Writer, (writer) => writer.submit({ postings: [credit("a", 7n)], statements: [] }))
        )
      )
      expect(lost()).toBe(1)
      // One that surely did nothing may be tried again. That one of its number was committed is no proof: see the writer.
      expect(answer).toMatchObject({ _tag: "Left", left: { _tag: "BooksUnavailable", maybe_written: reaches } })
      const account = await direct.runPromise(
        Effect.flatMap(Ledger, (ledger) => ledger.account("a" as BillingAccountId))
      )
      expect(Option.getOrThrow(account).giftable).toBe(reaches ? 7n : 0n)
      expect(await direct.runPromise(verify)).toEqual([])
      await Promise.all([node.dispose(), direct.dispose()])
      proxy.close()
      await drop()
    }
  )
})

/** Passes bytes on to the server, until it falls silent: then the connections that there are stay open, and pass nothing on. */
const silencing = async (url: string) => {
  const target = new URL(server.url)
  let silent = false
  const sockets = new Set<Socket>()
  const proxy = createServer((socket) => {
    const upstream = connectTo(Number(target.port), target.hostname)
    const early = !silent
    sockets.add(socket).add(upstream)
    socket.on("data", (bytes) => void ((early && silent) || upstream.write(bytes)))
    upstream.on("data", (bytes) => void ((early && silent) || socket.write(bytes)))
    socket.on("error", () => {}).on("close", () => upstream.destroy())
    upstream.on("error", () => {})
  })
  await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening))
  const through = new URL(url)
  through.port = `${(proxy.address() as AddressInfo).port}`
  return {
    through: through.href,
    fallSilent: () => void (silent = true),
    close: () => {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    }
  }
}

describe("signals that must not be missed", () => {
  it("come by a poll where no notification does, and by forgetting all where no poll is answered", async () => {
    const { drop, url } = await server.fresh()
    const { close, fallSilent, through } = await silencing(url)
    const node = nodeOf({ url: through })
    const told: Array<ReadonlyArray<string> | undefined> = []
    const toldNext = async () => {
      const count = told.length
      while (told.length === count) await new Promise((go) => setTimeout(go, 10))
      return told.at(-1)
    }
    await node.runPromise(
      Effect.gen(function* () {
        const { subscribe } = yield* Signals
        yield* subscribe("belonging", (ids) => void told.push(ids))
        yield* Effect.promise(async () => {
          await asked(url, (client) =>
            client.query("INSERT INTO tollgate_sql_signals (topic, id) VALUES ('belonging', 'app_1'), ('other', 'x')")
          )
          expect(await toldNext()).toEqual(["app_1"])
          fallSilent()
          expect(await toldNext()).toBe(undefined)
          // It polls again over another connection. What came before that counts as missed.
          while (told.at(-1)?.[0] !== "app_2") {
            await asked(url, (client) =>
              client.query("INSERT INTO tollgate_sql_signals (topic, id) VALUES ('belonging', 'app_2')")
            )
            await new Promise((go) => setTimeout(go, 100))
          }
        })
      }).pipe(Effect.scoped, Effect.provide(Signals.layer))
    )
    await node.dispose()
    close()
    await drop()
  })

  it.each([
    ["a key that is deleted", "DELETE FROM tollgate_tenants_applications", ["app_1"]],
    ["a key that ends earlier", "UPDATE tollgate_tenants_applications SET expires_at = 1", ["app_1"]],
    ["no use of a key", "UPDATE tollgate_tenants_applications SET last_used_at = 1", []],
    ["a member who is taken out", "UPDATE tollgate_tenants_memberships SET status = 'removed'", ["acc_1"]],
    ["a person who is suspended", "INSERT INTO tollgate_tenants_suspensions VALUES ('acc_1', 1)", ["acc_1"]]
  ])("are written for %s", async (_, change, ids) => {
    const { drop, url } = await server.fresh()
    const { rows } = await asked(url, async (client) => {
      await client.query(
        `INSERT INTO tollgate_tenants_applications
          (id, tenant_id, account_id, name, description, key_hash, key_prefix, created_at, updated_at)
          VALUES ('app_1', 'ten_1', 'acc_1', 'n', 'd', 'h', 'p', 0, 0)`
      )
      await client.query(
        `INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
          VALUES ('acc_1', 'ten_1', 'owner', 'active', 0, 0)`
      )
      await client.query(change)
      return client.query("SELECT id FROM tollgate_sql_signals")
    })
    expect(rows.map(({ id }) => id)).toEqual(ids)
    await drop()
  })
})

describe("a connection that falls silent", () => {
  it("is given up, and the next one is used", async () => {
    const { drop, url } = await server.fresh()
    const { close, fallSilent, through } = await silencing(url)
    const node = nodeOf({ url: through, limit: 300 })
    await submitTo(node, [open("a")])
    fallSilent()
    const first = await node.runPromise(
      Effect.flatMap(Writer, (writer) => Effect.flip(writer.submit({ postings: [credit("a", 7n)], statements: [] })))
    )
    expect(first._tag).toBe("BooksUnavailable")
    const deadline = performance.now() + 20_000
    let answer: string | undefined
    while (answer === undefined && performance.now() < deadline) {
      answer = await node.runPromise(
        Effect.flatMap(Writer, (writer) => writer.submit({ postings: [credit("a", 5n)], statements: [] })).pipe(
          Effect.map(([result]) => result!._tag),
          Effect.catchTag("BooksUnavailable", () =>
            Effect.as(
              Effect.promise(() => new Promise((go) => setTimeout(go, 50))),
              undefined
            )
          )
        )
      )
    }
    expect(answer).toBe("Credited")
    await node.dispose()
    close()
    const direct = nodeOf({ url })
    const account = await direct.runPromise(Effect.flatMap(Ledger, (ledger) => ledger.account("a" as BillingAccountId)))
    // What was on its way when it fell silent never reached the server.
    expect(Option.getOrThrow(account).giftable).toBe(5n)
    await direct.dispose()
    await drop()
  })
})
