/** The log over a ledger: what it adds, what it proves, and that `verify` notices every change. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer } from "effect"
import fc from "fast-check"
import { verify } from "../../../src/app/Checks.ts"
import { entriesAfter, entryNumbered, entryOfCharge } from "../../../src/books/ledger/rows/EntriesInOrder.ts"
import { lookAt } from "../../../src/books/ledger/audit/Invariants.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { ChargeLog, logKeysEnd } from "../../../src/books/log/ChargeLog.ts"
import { checks } from "../../../src/books/log/Checks.ts"
import * as Forms from "../../../src/books/log/Forms.ts"
import * as Head from "../../../src/books/log/Head.ts"
import * as Tree from "../../../src/books/log/Tree.ts"
import { describePostgres, isPostgres, trigger } from "../../support/database.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, other } from "../../money/usage/Scene.ts"
import { addAsBefore, layer, logOf } from "./LogScene.ts"

const calls = (count: number, payer = acme) =>
  Effect.forEach(Array.from({ length: count }), (_, i) => Scene.call({ cost: BigInt(i + 1), tenant_id: payer }), {
    concurrency: "unbounded"
  })

const add = Effect.flatMap(ChargeLog, (log) => log.add)

const history = Effect.gen(function* () {
  yield* Scene.now("2026-03-01T10:00:00Z")
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
})

const all = Effect.flatMap(SqlClient, (sql) => entriesAfter(sql, 0, Number.MAX_SAFE_INTEGER, 1_000_000))

/** The root that an inclusion proof leads to (RFC 9162, section 2.1.3.2). */
const rootBy = (leaf: string, index: number, size: number, proof: Buffer): Buffer => {
  let [fn, sn, hash] = [index, size - 1, Tree.leafHash(leaf)]
  for (let at = 0; at < proof.length; at += 32) {
    const beside = proof.subarray(at, at + 32)
    if (fn % 2 === 1 || fn === sn) {
      hash = Tree.nodeHash(beside, hash)
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn / 2, Math.floor(sn / 2)]
    } else hash = Tree.nodeHash(hash, beside)
    ;[fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)]
  }
  expect(sn).toBe(0)
  return hash
}

/** Every entry has a receipt that leads to the checkpoint's root, at the index of its rank. */
const isProven = Effect.gen(function* () {
  const log = yield* ChargeLog
  const entries = yield* all
  const checkpoint = (yield* log.checkpoint)!
  const [origin, size, root] = checkpoint.split("\n")
  expect([origin, size]).toEqual(["pay.example.com/gate", String(entries.length)])
  for (const [index, entry] of entries.entries()) {
    const receipt = (yield* log.receipt(entry))!
    expect([receipt.index, receipt.checkpoint]).toEqual([index, checkpoint])
    expect(receipt.leaf).toContain(`\nreference "${entry.reference_id}"\n`)
    const proof = Buffer.from(receipt.proof, "base64")
    expect(rootBy(receipt.leaf, index, entries.length, proof).toString("base64")).toBe(root)
  }
})

describe("the log of charges", () => {
  it.scoped("has every entry, in pieces of any size, and proves each", () =>
    Effect.gen(function* () {
      yield* history
      expect(yield* Effect.flatMap(ChargeLog, (log) => log.checkpoint)).toBeUndefined()
      expect(yield* add).toBe(2)
      yield* isProven
      expect(yield* add).toBe(0)
      for (const count of [1, 252, 1, 1, 300]) {
        yield* calls(count)
        expect(yield* add).toBe(count)
        expect(yield* verify).toEqual([])
      }
      yield* calls(20, other)
      // Those that are not in the log yet have no receipt.
      const log = yield* ChargeLog
      expect(yield* log.receipt((yield* all).at(-1)!)).toBeUndefined()
      expect(yield* add).toBe(20)
      yield* isProven
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("begins empty, and adds a history of many transactions", () =>
    Effect.gen(function* () {
      expect(yield* add).toBe(0)
      expect((yield* (yield* ChargeLog).checkpoint)!.split("\n").slice(0, 3)).toEqual([
        "pay.example.com/gate",
        "0",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
      ])
      yield* history
      yield* calls(9_000)
      expect(yield* add).toBe(9_002)
      expect(yield* verify).toEqual([])
      const head = (yield* Head.read(yield* SqlClient))!
      expect(head.edge.size).toBe(9_002)
      const { tile } = yield* ChargeLog
      expect((yield* tile({ level: 0, n: 0 }, 256))!.length).toBe(8_192)
      expect((yield* tile({ level: 1, n: 0 }, 35))!.length).toBe(35 * 32)
      expect(yield* tile({ level: 1, n: 0 }, 36)).toBeUndefined()
      expect(yield* tile({ level: 0, n: 36 }, 1)).toBeUndefined()
    }).pipe(Effect.provide(layer))
  )

  it.scoped("is complete wherever a write fails, and continues after it", () =>
    Effect.gen(function* () {
      yield* history
      yield* add
      const sql = yield* SqlClient
      const fail = isPostgres ? "RAISE EXCEPTION 'stopped';" : "SELECT RAISE(ABORT, 'stopped');"
      for (const [on, when] of [
        ["BEFORE UPDATE ON tollgate_log_head", "true"],
        ["BEFORE INSERT ON tollgate_log_tiles", "NEW.level = 0 AND NEW.n = 2"],
        ["BEFORE INSERT ON tollgate_log_tiles", "NEW.level = 1"]
      ] as const) {
        yield* calls(300)
        const before = yield* Head.read(sql)
        yield* trigger("stopped", { on, when, body: fail })
        expect(Exit.isFailure(yield* Effect.exit(add))).toBe(true)
        expect(yield* Head.read(sql)).toEqual(before)
        expect(yield* verify).toEqual([])
        yield* sql.unsafe(`DROP TRIGGER stopped${isPostgres ? ` ON ${on.split(" ").at(-1)}` : ""}`)
        yield* calls(1)
        expect(yield* add).toBe(301)
        expect(yield* verify).toEqual([])
      }
      yield* isProven
    }).pipe(Effect.provide(layer))
  )

  it.scoped("is built once by two nodes", () =>
    Effect.gen(function* () {
      yield* history
      yield* calls(700)
      const nodes = yield* Effect.forEach(["https://a.example", "https://b.example"], (url) =>
        Effect.map(Layer.build(logOf(url)), (context) => Context.get(context, ChargeLog))
      )
      for (let i = 0; i < 3; i++) {
        yield* Effect.all(
          nodes.map((node) => node.add),
          { concurrency: "unbounded" }
        )
        yield* calls(40)
      }
      yield* nodes[0]!.add
      expect(yield* verify).toEqual([])
      expect((yield* Head.read(yield* SqlClient))!.edge.size).toBe((yield* all).length)
    }).pipe(Effect.provide(layer))
  )

  it.scoped("finds the entry of a charge among many of the same instant", () =>
    Effect.gen(function* () {
      yield* history
      const sql = yield* SqlClient
      const ids: Array<string> = []
      for (const [minute, count] of [3, 200, 1, 130].entries()) {
        yield* Scene.now(`2026-03-01T10:0${minute + 1}:00Z`)
        ids.push(...(yield* calls(count)))
      }
      const records = yield* sql<{
        readonly id: string
        readonly at: number
      }>`SELECT id, at FROM tollgate_usage_records`
      expect(records).toHaveLength(ids.length)
      for (const { at, id } of records) {
        const found = (yield* entryOfCharge(sql, { billing_account_id: "bil_acme", usage_id: id, at }))!
        expect(found.reference_id).toBe(id)
        expect(yield* entryNumbered(sql, "bil_acme", found.number)).toEqual(found)
      }
      const absent = { billing_account_id: "bil_acme", usage_id: "use_x", at: records[7]!.at }
      expect(yield* entryOfCharge(sql, absent)).toBeUndefined()
      expect(yield* entryOfCharge(sql, { ...absent, billing_account_id: "bil_none" })).toBeUndefined()
    }).pipe(Effect.provide(layer))
  )

  it.scoped("continues under a new key after the secret was lost", () =>
    Effect.gen(function* () {
      yield* history
      yield* add
      const sql = yield* SqlClient
      const { keys } = yield* ChargeLog
      const before = yield* keys
      expect(before).toHaveLength(1)
      const { submit } = yield* Writer
      yield* submit({ postings: [], statements: logKeysEnd.statements(sql, 0) })
      const after = Context.get(yield* Layer.build(logOf("https://elsewhere.example", 2)), ChargeLog)
      yield* after.add
      yield* after.add
      expect((yield* keys).length).toBe(2)
      expect(yield* keys).toContain(before[0])
      expect(yield* verify).toEqual([])
      yield* isProven
    }).pipe(Effect.provide(layer))
  )
})

/** The first line and the line `vendor` of an entry's leaf. */
const formOf = Effect.fnUntraced(function* (usage_id: string) {
  const entry = (yield* all).find(({ reference_id }) => reference_id === usage_id)!
  const { leaf } = (yield* Effect.flatMap(ChargeLog, ({ receipt }) => receipt(entry)))!
  return [leaf.split("\n")[0], /^vendor (.*)$/m.exec(leaf)?.[1]]
})

const call = (vendor_request?: string) => Scene.call({ cost: 3n, vendor_request })

describe("the leaves of form 2", () => {
  it.scoped("state the vendor's requests of a charge", () =>
    Effect.gen(function* () {
      yield* history
      const [sent, retried, none] = [yield* call("req_1"), yield* call('a - "b"'), yield* call()]
      yield* add
      expect(yield* formOf(sent)).toEqual(["tollgate-entry/2", '"req_1"'])
      expect(yield* formOf(retried)).toEqual(["tollgate-entry/2", String.raw`"a - \"b\""`])
      expect(yield* formOf(none)).toEqual(["tollgate-entry/2", undefined])
      expect(yield* formOf("pay_1")).toEqual(["tollgate-entry/2", undefined])
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("leave those of an earlier version as they are, also if versions take turns", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      // Creates the empty log.
      yield* add
      yield* history
      const old = yield* call("req_old")
      yield* calls(300)
      expect(yield* addAsBefore).toBe(303)
      yield* isProven
      expect(yield* verify).toEqual([])
      const ids: Array<string> = []
      for (const turn of [add, add, addAsBefore, add, addAsBefore, add]) {
        ids.push(yield* call("req_1"))
        yield* calls(100)
        expect(yield* turn).toBe(101)
        expect(yield* verify).toEqual([])
      }
      expect(yield* formOf(old)).toEqual(["tollgate-entry/1", undefined])
      const second = ["tollgate-entry/2", '"req_1"']
      const first = ["tollgate-entry/1", undefined]
      expect(yield* Effect.forEach(ids, formOf)).toEqual([second, second, first, second, first, second])
      // Consecutive pieces share a range.
      expect(yield* Forms.ranges(sql)).toHaveLength(3)
      yield* isProven
    }).pipe(Effect.provide(layer))
  )
})

/** Changes one byte of a text, to another that the database can store. */
const changedText = (text: string, at: number, by: number): string => {
  const i = at % text.length
  const code = 33 + ((text.charCodeAt(i) - 33 + 1 + (by % 92) + 94) % 94)
  return text.slice(0, i) + String.fromCharCode(code) + text.slice(i + 1)
}

const columns = [
  "billing_account_id",
  "type",
  "amount",
  "balance",
  "giftable",
  "reference_id",
  "description",
  "at"
] as const

/** A change of one byte of the history: of an entry, a tile or the checkpoint. */
const plans = fc.record({
  what: fc.constantFrom("entry", "tile", "head", ...(["entry", "tile"] as const)),
  row: fc.nat(),
  column: fc.constantFrom(...columns),
  field: fc.constantFrom("origin", "salt", "checkpoint"),
  at: fc.nat(),
  by: fc.integer({ min: 1, max: 255 })
})
type Plan = typeof plans extends fc.Arbitrary<infer A> ? A : never

const apply = Effect.fnUntraced(function* ({ at, by, column, field, row, what }: Plan) {
  const sql = yield* SqlClient
  if (what === "tile") {
    const tiles = yield* sql<{
      level: number
      n: number
      hashes: Uint8Array
    }>`SELECT level, n, hashes FROM tollgate_log_tiles
      ORDER BY level, n`
    const { hashes, level, n } = tiles[row % tiles.length]!
    const bytes = Buffer.from(hashes)
    bytes[at % bytes.length]! ^= by
    return yield* sql`UPDATE tollgate_log_tiles SET hashes = ${bytes} WHERE level = ${level} AND n = ${n}`
  }
  if (what === "head") {
    const [head] = yield* sql<Record<typeof field, string>>`SELECT origin, salt, checkpoint FROM tollgate_log_head`
    return yield* sql`UPDATE tollgate_log_head SET ${sql(field)} = ${changedText(head![field]!, at, by)}`
  }
  const entries = yield* all
  const entry = entries[row % entries.length]!
  const value = entry[column]
  const isNumber = ["amount", "balance", "giftable", "at"].includes(column)
  if (isNumber) {
    // Giftable credit is never above the balance.
    const changed = Number(value) + (column === "giftable" ? -by : by)
    return yield* sql`UPDATE tollgate_ledger_entries SET ${sql(column)} = ${changed} WHERE seq = ${entry.seq}`
  }
  if (column === "type") {
    const turned = value === "credit" ? "debit" : "credit"
    return yield* sql`UPDATE tollgate_ledger_entries SET type = ${turned} WHERE seq = ${entry.seq}`
  }
  const text = String(value) === "" ? "x" : changedText(String(value), at, by)
  return yield* sql`UPDATE tollgate_ledger_entries SET ${sql(column)} = ${text} WHERE seq = ${entry.seq}`
})

describe("a change of the history", () => {
  it.scoped("of any single byte is found", () =>
    Effect.gen(function* () {
      yield* history
      yield* calls(300)
      yield* calls(9, other)
      yield* add
      const sql = yield* SqlClient
      class Undo extends Error {}
      for (const plan of fc.sample(plans, { numRuns: 80, seed: 7 })) {
        const found = yield* Effect.flip(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* apply(plan)
              const findings = yield* lookAt(checks)
              expect([plan, findings.length > 0]).toEqual([plan, true])
              return yield* Effect.fail(new Undo())
            })
          )
        )
        expect(found).toBeInstanceOf(Undo)
      }
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )
})

describePostgres("the log with several writers", () => {
  it.scoped("keeps form 1 while a node of an earlier version runs", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* history
      yield* sql`INSERT INTO tollgate_sql_nodes (run, name, version, knows, started_at, until)
        VALUES ('run_old', 'old', '1', 27, 0, now() + interval '1 hour')`
      const early = yield* call("req_1")
      yield* add
      yield* sql`UPDATE tollgate_sql_nodes SET ended = true WHERE run = 'run_old'`
      const late = yield* call("req_2")
      yield* add
      expect(yield* formOf(early)).toEqual(["tollgate-entry/1", undefined])
      expect(yield* formOf(late)).toEqual(["tollgate-entry/2", '"req_2"'])
      // It comes back, but the range goes on, because the other nodes could not issue these receipts either way.
      yield* sql`UPDATE tollgate_sql_nodes SET ended = false WHERE run = 'run_old'`
      const later = yield* call("req_3")
      yield* add
      expect(yield* formOf(later)).toEqual(["tollgate-entry/2", '"req_3"'])
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("passes a gap of rows that stays, and waits for one that a batch may fill", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* history
      yield* add
      // A batch that was rolled back, or is still open.
      yield* sql`SELECT nextval('tollgate_ledger_entries_seq')`
      yield* calls(3)
      expect(yield* add).toBe(0)
      expect(yield* add).toBe(3)
      expect(yield* verify).toEqual([])
      yield* isProven
    }).pipe(Effect.provide(layer))
  )

  it.scoped("misses no entry that commits after a later one", () =>
    Effect.gen(function* () {
      yield* history
      const { add } = yield* ChargeLog
      for (let round = 0; round < 4; round++) {
        const adding = yield* Effect.fork(Effect.forever(Effect.zipRight(add, Effect.yieldNow())))
        yield* Effect.all([calls(150), calls(150, other), calls(150), calls(150, other)], { concurrency: "unbounded" })
        yield* Fiber.interrupt(adding)
        expect(yield* verify).toEqual([])
      }
      // A gap takes two turns.
      while ((yield* add) + (yield* add) > 0);
      yield* isProven
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )
})
