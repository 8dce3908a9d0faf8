/** A batch as one database transaction, step by step over a bare connection: what it asks for, and what stands afterwards. */
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { changeText, insertText } from "../../../src/books/ledger/rows/SqlEffect.ts"
import type { SqlEffect, Insert, Rows } from "../../../src/books/ledger/rows/SqlEffect.ts"
import * as Batch from "../../../src/books/ledger/write/Batch.ts"
import { offsetEvery } from "../../../src/books/ledger/rows/RowLinks.ts"
import type { Posting, Statement, Transaction } from "../../../src/books/ledger/rules/Transaction.ts"
import * as Sql from "../../../src/storage/sqlite/Sql.ts"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

let folder = ""
let db: Sqlite.Database
let asked: Array<SqlEffect> = []
/** As the writer's thread keeps it from batch to batch. */
let memory = new Batch.BatchCache(1)

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-batch-"))
  await Effect.runPromise(Sql.migrateFile(join(folder, "books.db")))
  db = new Sqlite(join(folder, "books.db"))
  db.exec("CREATE TABLE beside (id TEXT PRIMARY KEY)")
  memory = new Batch.BatchCache(1)
})

afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

const ask = (one: SqlEffect): Rows => {
  if (one._tag === "All") return one.queries.map(ask)
  asked.push(one)
  if (one._tag === "Query" || one._tag === "Run") {
    const statement = db.prepare(one.text)
    if (statement.reader) return statement.all(...one.params)
    statement.run(...one.params)
    return []
  }
  if (one._tag === "Change") {
    for (const row of one.rows) db.prepare(changeText(one)).run(...row)
    return []
  }
  db.prepare(insertText(one, one.rows.length)).run(...one.rows.flat())
  return []
}

/** Runs a batch and commits it. */
const run = (now: number, ...transactions: ReadonlyArray<Transaction>) => {
  asked = []
  db.exec("BEGIN")
  try {
    const body = Batch.run(transactions, now, memory)
    let step = body.next([])
    while (step.done !== true) step = body.next(ask(step.value))
    db.exec("COMMIT")
    return step.value
  } catch (error) {
    memory.forget()
    db.exec("ROLLBACK")
    throw error
  }
}

const of = (...postings: ReadonlyArray<Posting>): Transaction => ({ postings, statements: [] })
const beside = (postings: ReadonlyArray<Posting>, ...statements: ReadonlyArray<Statement>): Transaction => ({
  postings,
  statements
})
const rows = (text: string): ReadonlyArray<unknown> => db.prepare(text).raw().all()
const tags = (outcomes: ReturnType<typeof run>) =>
  outcomes.map((one) => (one._tag === "Committed" ? one.results.map(({ _tag }) => _tag).join() : one.refusal._tag))

const open = (who: string): Posting => ({ _tag: "Open", account: who, tenant: `ten_${who}` })
const credit = (who: string, amount: bigint): Posting => ({
  _tag: "Credit",
  account: who,
  amount,
  source: "purchase",
  reference: "r",
  description: "d"
})
const reserve = (call: string, who: string, amount: bigint): Posting => ({
  _tag: "Reserve",
  call,
  sources: [{ billing_account_id: who, tenant_id: `ten_${who}`, kind: "own", why: "own" }],
  least: amount,
  most: amount,
  run: "now",
  facts: {
    account_id: "acc",
    tenant_id: `ten_${who}`,
    application_id: null,
    usage_type: "inference",
    endpoint: "chat",
    model: "small",
    provider: "p"
  }
})
const settle = (call: string, cost: bigint): Posting => ({
  _tag: "Settle",
  call,
  outcome: {
    cost,
    prompt_tokens: 10,
    completion_tokens: 5,
    units: 0.5,
    success: true,
    error_type: null,
    usage_source: "provider",
    latency_ms: 100
  }
})
const leave = (id: string): Statement => ({
  text: "INSERT INTO beside (id) VALUES (?) RETURNING id",
  params: [id],
  rows: 1
})
const findNobody: Statement = { text: "SELECT 1 WHERE 1 = 2", params: [], rows: 1 }

const day = 86_400_000
const noon = Date.UTC(2026, 0, 1, 12)

describe("a batch", () => {
  it("asks again for nothing that it remembers, and forgets what is too much", () => {
    const opened = Array.from({ length: 10_001 }, (_, i) =>
      of({ _tag: "Open", account: `bil_${i}`, tenant: `ten_${i}` })
    )
    const credit = (account: string) =>
      of({ _tag: "Credit", account, amount: 5n, source: "admin", reference: "r", description: "d" })
    const queries = () => asked.filter((one) => one._tag === "Query").length
    run(noon, opened[0]!)
    run(noon, credit("bil_0"))
    expect(queries()).toBe(0)
    for (let i = 1; i < opened.length; i += 500) run(noon, ...opened.slice(i, i + 500))
    expect(memory.accounts.size).toBeGreaterThan(10_000)
    run(noon, credit("bil_1"))
    expect(memory.accounts.size).toBe(0)
    expect(run(noon, credit("bil_0"))).toEqual([{ _tag: "Committed", results: [{ _tag: "Credited", balance: 10n }] }])
    // The account, and the last rows.
    expect(queries()).toBe(2)
  })

  it("asks for nothing when there is nothing to do", () => {
    expect(run(noon)).toEqual([])
    expect(asked).toEqual([])
  })

  it("reads once and writes a table once, however many calls there are in it", () => {
    run(noon, of(open("ada"), credit("ada", 1_000n)))
    // The first of a tenant gives it its number.
    run(noon, of(reserve("call", "ada", 10n)), of(settle("call", 1n)))
    const calls = Array.from({ length: 50 }, (_, i) => `call_${i}`)
    memory.forget()
    run(noon, ...calls.map((call) => of(reserve(call, "ada", 10n))))
    const reserving = asked.length
    memory.forget()
    run(noon, of(reserve("call_50", "ada", 10n)))
    expect(asked.length).toBe(reserving)
    memory.forget()
    run(noon, ...calls.map((call) => of(settle(call, 1n))))
    const settling = asked.length
    memory.forget()
    run(noon, of(settle("call_50", 1n)))
    expect(asked.length).toBe(settling)
    const tables = asked.flatMap((one) => (one._tag === "Insert" ? [one.table] : []))
    expect(new Set(tables).size).toBe(tables.length)
  })

  it("takes no number that is none", () => {
    run(noon, of(open("ada"), credit("ada", 100n)), of(reserve("call_1", "ada", 10n)))
    const posting = settle("call_1", 1n)
    if (posting._tag !== "Settle") throw new Error()
    for (const units of [Number.POSITIVE_INFINITY, Number.NaN]) {
      expect(() => run(noon, of({ ...posting, outcome: { ...posting.outcome, units } }))).toThrow("units")
    }
    expect(rows("SELECT reserved FROM tollgate_ledger_amounts")).toEqual([[10]])
  })

  it("reserves a call once, in one batch as in several", () => {
    run(noon, of(open("ada"), credit("ada", 100n)))
    const twice = [of(reserve("call_1", "ada", 10n)), of(reserve("call_1", "ada", 10n))]
    expect(() => run(noon, ...twice)).toThrow("call_1")
    run(noon, twice[0]!)
    expect(() => run(noon, twice[1]!)).toThrow("call_1")
    memory.forget()
    expect(() => run(noon, twice[1]!)).toThrow("UNIQUE")
    expect(rows("SELECT reserved FROM tollgate_ledger_amounts")).toEqual([[10]])
  })

  it("keeps once what calls have in common, whoever serves them", () => {
    const kept = () => asked.some((one) => one._tag === "Insert" && one.table === "tollgate_usage_dimensions")
    const elsewhere = (call: string): Posting => {
      const posting = settle(call, 1n)
      return posting._tag === "Settle" ? { ...posting, outcome: { ...posting.outcome, provider: "q" } } : posting
    }
    // Three objects that say the same.
    const [one, two, three] = ["call_1", "call_2", "call_3"].map((call) => reserve(call, "ada", 10n))
    run(noon, of(open("ada"), credit("ada", 1_000n)), of(one!), of(two!))
    run(noon, of(three!), of(settle("call_1", 1n)))
    expect(kept()).toBe(true)
    run(noon, of(elsewhere("call_2")))
    expect(kept()).toBe(true)
    memory.forget()
    run(noon, of(elsewhere("call_3")))
    expect(
      rows(
        "SELECT r.id, d.provider, d.model FROM tollgate_usage_records r JOIN tollgate_usage_dimensions d ON d.number = r.dimensions"
      )
    ).toEqual([
      ["use_1", "p", "small"],
      ["use_2", "q", "small"],
      ["use_3", "q", "small"]
    ])
    expect(rows("SELECT provider FROM tollgate_usage_dimensions")).toEqual([["p"], ["q"]])
  })

  it("lets each see what those before it did, and forgets those that were refused", () => {
    const outcomes = run(
      noon,
      of(credit("ada", 1n)),
      of(open("ada"), credit("ada", 10n)),
      of(reserve("call_1", "ada", 6n)),
      of(reserve("call_2", "ada", 6n)),
      of(credit("ada", 5n), open("ada")),
      of(settle("call_1", 2n)),
      of(settle("call_1", 2n)),
      of(reserve("call_2", "ada", 8n))
    )
    expect(tags(outcomes)).toEqual([
      "AccountMissing",
      "Opened,Credited",
      "Reserved",
      "InsufficientCredits",
      "AccountExists",
      "Settled",
      "AlreadySettled",
      "Reserved"
    ])
    expect(rows("SELECT giftable, reserved, entries FROM tollgate_ledger_amounts")).toEqual([[8, 8, 2]])
    expect(rows("SELECT id FROM tollgate_ledger_reservations")).toEqual([["call_2"]])
    expect(rows("SELECT number, balance FROM tollgate_ledger_entries ORDER BY seq")).toEqual([
      [1, 10],
      [2, 8]
    ])
  })

  it("writes no reservation of a call that begins and ends in it", () => {
    run(noon, of(open("ada"), credit("ada", 10n)))
    run(noon, of(reserve("call_1", "ada", 5n)), of(settle("call_1", 5n)))
    expect(asked.some((one) => one._tag === "Insert" && one.table === "tollgate_ledger_reservations")).toBe(false)
    expect(rows("SELECT id, cost FROM tollgate_usage_records")).toEqual([["use_1", 5]])
  })
})

describe("statements beside the postings", () => {
  it("leave nothing when one of them finds other rows than it wanted, nor do the postings", () => {
    const outcomes = run(
      noon,
      beside([open("ada")], leave("one")),
      beside([open("bob")], leave("two"), findNobody, leave("three")),
      beside([open("cyd")], leave("four"))
    )
    expect(tags(outcomes)).toEqual(["Opened", "Conflict", "Opened"])
    expect(outcomes[1]).toEqual({ _tag: "Refused", refusal: { _tag: "Conflict", statement: 1 } })
    expect(rows("SELECT id FROM tollgate_ledger_accounts ORDER BY id")).toEqual([["ada"], ["cyd"]])
    expect(rows("SELECT id FROM beside ORDER BY id")).toEqual([["four"], ["one"]])
  })

  it("are not run when the postings are refused", () => {
    expect(tags(run(noon, beside([credit("ada", 1n)], leave("one"))))).toEqual(["AccountMissing"])
    expect(rows("SELECT id FROM beside")).toEqual([])
  })

  it("see those of the transactions before them, as far as they stand", () => {
    const insert = (id: string): Statement => ({
      text: "INSERT INTO beside (id) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM beside) RETURNING id",
      params: [id],
      rows: 1
    })
    const outcomes = run(
      noon,
      beside([], insert("one"), findNobody),
      beside([], insert("two")),
      beside([], insert("three"))
    )
    expect(tags(outcomes)).toEqual(["Conflict", "", "Conflict"])
    expect(rows("SELECT id FROM beside")).toEqual([["two"]])
  })

  it("want more, fewer or no rows as they say", () => {
    const pair: Statement = { text: "SELECT 1 UNION ALL SELECT 2", params: [] }
    expect(tags(run(noon, ...[0, 1, 2, 3].map((wanted) => beside([], { ...pair, rows: wanted }))))).toEqual([
      "Conflict",
      "Conflict",
      "",
      "Conflict"
    ])
    expect(tags(run(noon, beside([], pair)))).toEqual([""])
  })
})

describe("time", () => {
  it("does not go back in the books, whatever the clock does", () => {
    run(noon, of(open("ada"), credit("ada", 10n)))
    run(noon - day, of(credit("ada", 1n)))
    run(noon - 2 * day, of(reserve("call_1", "ada", 0n)))
    run(noon - 2 * day, of(settle("call_1", 0n)))
    run(noon + 1, of(credit("ada", 1n)))
    expect(rows("SELECT at FROM tollgate_ledger_entries ORDER BY seq")).toEqual([[noon], [noon], [noon + 1]])
    expect(rows("SELECT at FROM tollgate_usage_records")).toEqual([[noon]])
    expect(rows("SELECT at FROM tollgate_ledger_reservations")).toEqual([])
  })

  it("puts a call under the day and the hour in which it ended", () => {
    run(noon, of(open("ada"), credit("ada", 100n)))
    const ends = (call: string, at: number) => {
      run(at, of(reserve(call, "ada", 5n)))
      run(at, of(settle(call, 5n)))
    }
    const midnight = noon + day / 2
    ends("call_1", midnight - 1)
    ends("call_2", midnight)
    ends("call_3", midnight + 1)
    expect(rows("SELECT start, requests, cost, units FROM tollgate_usage_by_tenant ORDER BY start")).toEqual([
      [midnight - day, 1, 5, 0.5],
      [midnight, 2, 10, 1]
    ])
    expect(rows("SELECT grain, start, requests FROM tollgate_usage_by_caller ORDER BY grain, start")).toEqual([
      [day / 24, midnight - day / 24, 1],
      [day / 24, midnight, 2],
      [day, midnight - day, 1],
      [day, midnight, 2]
    ])
    expect(rows("SELECT start, requests FROM tollgate_usage_by_payer ORDER BY start")).toEqual([
      [midnight - day, 1],
      [midnight, 2]
    ])
  })
})

describe("a tail", () => {
  const call = (number: number): ReadonlyArray<Transaction> => [
    of(reserve(`call_${number}`, "ada", 1n)),
    of(settle(`call_${number}`, 1n))
  ]
  const state = () =>
    rows(`SELECT (SELECT number FROM tollgate_usage_watermarks), (SELECT SUM(requests) FROM tollgate_usage_by_tenant),
      (SELECT MAX(number) FROM tollgate_usage_records)`)[0]

  beforeEach(() => {
    memory = new Batch.BatchCache(3)
    run(noon, of(open("ada"), credit("ada", 100n)))
  })

  it("is folded into the rollups when it is long enough, with the batch that makes it so", () => {
    run(noon, ...call(1), ...call(2))
    expect(state()).toEqual([null, null, 2])
    run(noon, ...call(3), ...call(4))
    expect(state()).toEqual([4, 4, 4])
    run(noon, ...call(5))
    expect(state()).toEqual([4, 4, 5])
  })

  it("is known to a writer that remembers nothing", () => {
    for (const number of [1, 2, 3, 4, 5, 6]) {
      memory = new Batch.BatchCache(3)
      run(noon, ...call(number))
    }
    expect(state()).toEqual([6, 6, 6])
  })

  it("is as it was when the batch that would fold it cannot be written", () => {
    run(noon, ...call(1), ...call(2))
    expect(() =>
      run(noon, ...call(3), beside([], { text: "INSERT INTO beside VALUES (NULL), (1), (1)", params: [] }))
    ).toThrow()
    expect(state()).toEqual([null, null, 2])
    run(noon, ...call(4))
    expect(state()).toEqual([3, 3, 3])
  })
})

describe("chains", () => {
  it("link each row to the one before of its account, also across batches and when all was forgotten", () => {
    run(noon, of(open("ada")), of(open("bob")), of(credit("ada", 1n)), of(credit("bob", 1n)), of(credit("ada", 1n)))
    run(noon, of(credit("bob", 1n)), of(credit("ada", 1n)))
    memory.forget()
    run(noon, of(credit("ada", 1n)))
    expect(rows("SELECT seq, billing_account_id, previous FROM tollgate_ledger_entries ORDER BY seq")).toEqual([
      [1, "ada", null],
      [2, "bob", null],
      [3, "ada", 1],
      [4, "bob", 2],
      [5, "ada", 3],
      [6, "ada", 5]
    ])
    expect(rows("SELECT account, entries, newest FROM tollgate_ledger_amounts ORDER BY account")).toEqual([
      [1, 4, 6],
      [2, 2, 4]
    ])
  })

  it("have an offset for each so many rows", () => {
    run(noon, of(open("ada")), of(open("bob")), of(credit("bob", 1n)))
    for (let i = 1; i <= 2 * offsetEvery; i++) run(noon, of(credit("ada", 1n)))
    expect(rows("SELECT * FROM tollgate_ledger_offsets")).toEqual([
      [1, offsetEvery, 1 + offsetEvery],
      [1, 2 * offsetEvery, 1 + 2 * offsetEvery]
    ])
  })
})

describe("an insert", () => {
  it("is a tuple a row, with what to do about a conflict behind", () => {
    const insert: Insert = { _tag: "Insert", table: "t", columns: ["a", "b"], rows: [] }
    expect(insertText(insert, 1)).toBe("INSERT INTO t (a, b) VALUES (?, ?)")
    expect(insertText({ ...insert, conflict: "DO NOTHING" }, 2)).toBe(
      "INSERT INTO t (a, b) VALUES (?, ?), (?, ?) ON CONFLICT DO NOTHING"
    )
  })
})
