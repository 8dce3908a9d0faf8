/** Any changed byte of the history is found by `verify`: of an entry, a record, a sum, a tile, a checkpoint, or a proof of liabilities. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, TestClock } from "effect"
import fc from "fast-check"
import { verify } from "../../../src/app/Checks.ts"
import { bodyHash } from "../../../src/upstream/wire/BodyHash.ts"
import { ChargeLog } from "../../../src/books/log/ChargeLog.ts"
import { Cosigning } from "../../../src/books/log/Cosigning.ts"
import { Liabilities } from "../../../src/books/log/Liabilities.ts"
import * as Note from "../../../src/books/log/Note.ts"
import { LogSettings } from "../../../src/books/log/Settings.ts"
import { Witness } from "../../../src/sandbox/Witness.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, other } from "../../money/usage/Scene.ts"
import { logOf } from "./LogScene.ts"

/** Changes one byte of a text, to another that the database can store. */
const changedText = (text: string, at: number, by: number): string => {
  if (text === "") return "x"
  const i = at % text.length
  const code = 33 + ((text.charCodeAt(i) - 33 + 1 + (by % 92) + 94) % 94)
  return text.slice(0, i) + String.fromCharCode(code) + text.slice(i + 1)
}

/** The columns that are the history, with the key that finds a row again. */
const columns = [
  ["tollgate_ledger_entries", "seq", "billing_account_id"],
  ["tollgate_ledger_entries", "seq", "type"],
  ["tollgate_ledger_entries", "seq", "amount"],
  ["tollgate_ledger_entries", "seq", "balance"],
  ["tollgate_ledger_entries", "seq", "reference_id"],
  ["tollgate_ledger_entries", "seq", "description"],
  ["tollgate_ledger_entries", "seq", "at"],
  ["tollgate_usage_records", "seq", "id"],
  ["tollgate_usage_records", "seq", "cost"],
  ["tollgate_usage_records", "seq", "number"],
  ["tollgate_usage_records", "seq", "vendor_request"],
  ["tollgate_usage_records", "seq", "request_hash"],
  ["tollgate_usage_records", "seq", "answer_hash"],
  ["tollgate_usage_by_tenant", "tenant_id", "cost"],
  ["tollgate_usage_by_tenant", "tenant_id", "prompt_tokens"],
  ["tollgate_log_tiles", "level, n", "hashes"],
  ["tollgate_log_tiles", "level, n", "first"],
  ["tollgate_log_forms", "first", "first"],
  ["tollgate_log_forms", "first", "last"],
  ["tollgate_log_head", "id", "origin"],
  ["tollgate_log_head", "id", "salt"],
  ["tollgate_log_head", "id", "checkpoint"],
  ["tollgate_log_published", "id", "size"],
  ["tollgate_log_published", "id", "entry"],
  ["tollgate_log_published", "id", "checkpoint"],
  ["tollgate_log_published", "id", "checkpoint"],
  ["tollgate_log_published", "id", "cosignatures"],
  ["tollgate_log_witnesses", "witness", "witness"],
  ["tollgate_log_liabilities", "day", "day"],
  ["tollgate_log_liabilities", "day", "entry"],
  ["tollgate_log_liabilities", "day", "entries"],
  ["tollgate_log_liabilities", "day", "statement"],
  ["tollgate_log_liabilities", "day", "statement"],
  ["tollgate_log_liability_blocks", "day, n", "day"],
  ["tollgate_log_liability_blocks", "day, n", "n"],
  ["tollgate_log_liability_blocks", "day, n", "first"],
  ["tollgate_log_liability_blocks", "day, n", "last"],
  ["tollgate_log_liability_blocks", "day, n", "width"],
  ["tollgate_log_liability_blocks", "day, n", "sum"],
  ["tollgate_log_liability_blocks", "day, n", "hash"]
] as const

const plans = fc.record({ row: fc.nat(), at: fc.nat(), by: fc.integer({ min: 1, max: 255 }) })

type Value = string | number | bigint | Uint8Array | null

const changed = (column: string, value: Value, at: number, by: number): Value => {
  if (column === "type") return value === "credit" ? "debit" : "credit"
  if (typeof value === "string") return changedText(value, at, by)
  // A key that no other row has.
  if (typeof value === "number" || typeof value === "bigint") return Number(value) + (column === "n" ? 1_000 : 0) + by
  const bytes = Buffer.from(value!)
  bytes[at % bytes.length]! ^= by
  return bytes
}

/** A row of the table that has a value in the column. */
const rowOf = Effect.fnUntraced(function* (table: string, keys: string, column: string, row: number) {
  const sql = yield* SqlClient
  const rows = yield* sql.unsafe<Record<string, Value>>(
    `SELECT ${keys}, ${column} FROM ${table} WHERE ${column} IS NOT NULL ORDER BY ${keys}`
  )
  return rows[row % rows.length]!
})

/** Makes the change. Returns the effect that takes it back. */
const change = Effect.fnUntraced(function* (
  [table, keys, column]: (typeof columns)[number],
  { at, by, row }: { readonly at: number; readonly by: number; readonly row: number }
) {
  const sql = yield* SqlClient
  const before = yield* rowOf(table, keys, column, row)
  const after = { ...before, [column]: changed(column, before[column]!, at, by) }
  const move = (from: Record<string, Value>, to: Record<string, Value>) => {
    const where = keys.split(", ").map((key) => sql`${sql(key)} = ${from[key] as string}`)
    return sql`UPDATE ${sql(table)} SET ${sql(column)} = ${to[column]!} WHERE ${sql.and(where)}`
  }
  yield* move(before, after)
  return move(after, before)
})

/** Accounts, calls, two cosigned checkpoints and the proofs of two days. */
const history = Effect.gen(function* () {
  yield* Scene.now("2026-03-01T10:00:00Z")
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
  let keys: ReadonlyArray<string> = []
  const known = async () => keys.flatMap((key) => Note.logKeyOf(key) ?? [])
  const witnesses = ["w1.example", "w2.example"].map((name) => new Witness(name, known, () => 1_772_359_200_000))
  const settings = Layer.succeed(LogSettings, {
    witnesses: witnesses.map(({ key, verifier }) => ({ url: "http://127.0.0.1", key, verifier })),
    required: 2,
    cosign_ms: 1_000,
    liabilities: true
  })
  const log = Layer.provideMerge(Liabilities.layer, logOf("https://pay.example.com/gate"))
  const context = yield* Layer.build(Layer.fresh(Layer.provideMerge(Layer.merge(log, Cosigning.layer), settings)))
  const [charges, cosigning, liabilities] = [
    Context.get(context, ChargeLog),
    Context.get(context, Cosigning),
    Context.get(context, Liabilities)
  ]
  const turn = Effect.gen(function* () {
    yield* Effect.zipRight(charges.add, charges.add)
    keys = yield* charges.keys
    yield* cosigning.round(({ verifier }, body) =>
      Effect.promise(async () => {
        const reply = await witnesses.find((witness) => witness.verifier === verifier)!.add(body)
        expect(reply.status).toBe(200)
        return { _tag: "Cosigned", lines: String(reply.body) } as const
      })
    )
  })
  const call = (cost: number, tenant_id = acme) =>
    Scene.call({
      cost: BigInt(cost),
      tenant_id,
      vendor_request: `req_${cost}`,
      request_hash: bodyHash(`request ${cost}`),
      answer_hash: bodyHash(`answer ${cost}`)
    })
  yield* Effect.forEach(Array.from({ length: 300 }), (_, i) => call(i + 1), { discard: true })
  yield* turn
  yield* liabilities.build
  yield* Effect.forEach(Array.from({ length: 9 }), (_, i) => call(i + 1, other), { discard: true })
  yield* turn
  yield* TestClock.adjust("1 day")
  yield* call(5)
  yield* turn
  yield* liabilities.build
})

describe("a changed byte of the history", () => {
  it.scoped("is found", () =>
    Effect.gen(function* () {
      yield* history
      expect(yield* verify).toEqual([])
      for (const column of columns) {
        for (const plan of fc.sample(plans, { numRuns: 4, seed: 11 })) {
          const takenBack = yield* change(column, plan)
          const findings = yield* verify
          expect([column, plan, findings.length > 0]).toEqual([column, plan, true])
          yield* takenBack
        }
      }
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )
})
