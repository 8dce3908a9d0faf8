/** The log with two witnesses over HTTP: cosigned checkpoints, witnesses that fail, and histories that were rewritten. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, TestClock } from "effect"
import { verify } from "../../../src/app/Checks.ts"
import { entriesAfter } from "../../../src/books/ledger/rows/EntriesInOrder.ts"
import { ChargeLog } from "../../../src/books/log/ChargeLog.ts"
import type { ChargeLogContract } from "../../../src/books/log/ChargeLog.ts"
import { Cosigning } from "../../../src/books/log/Cosigning.ts"
import * as Note from "../../../src/books/log/Note.ts"
import type { NoteKey } from "../../../src/books/log/Note.ts"
import { LogSettings } from "../../../src/books/log/Settings.ts"
import { verify as verifyReceipt } from "../../../src/money/receipts/Verifier.ts"
import { Witnesses } from "../../../src/money/receipts/Witnesses.ts"
import { unchecked } from "../../support/database.ts"
import { serve } from "../../support/Witnesses.ts"
import type { Served } from "../../support/Witnesses.ts"
import { logOf } from "../../books/log/LogScene.ts"
import * as Scene from "../usage/Scene.ts"
import { acme, other } from "../usage/Scene.ts"

const origin = "pay.example.com/gate"

/** A node that makes the log and asks witnesses. */
interface Node {
  readonly log: ChargeLogContract
  /** Adds the entries, and lets the witnesses' loop turn once. */
  readonly turn: Effect.Effect<void>
  readonly figures: Witnesses["Type"]["figures"]
}

const nodeWith = (witnesses: ReadonlyArray<Served>, required = witnesses.length) =>
  Effect.gen(function* () {
    const settings = Layer.succeed(LogSettings, {
      witnesses: witnesses.map(({ configured }) => configured),
      required,
      cosign_ms: 1_000,
      liabilities: true
    })
    const log = logOf(`https://${origin}`)
    const node = Layer.fresh(Layer.provide(Witnesses.layer, Cosigning.layer))
    const context = yield* Layer.build(Layer.provide(Layer.merge(log, node), settings))
    const chargeLog = Context.get(context, ChargeLog)
    const { figures, job } = Context.get(context, Witnesses)
    const turn = Effect.gen(function* () {
      // On PostgreSQL, a gap of rows takes two turns.
      yield* Effect.zipRight(chargeLog.add, chargeLog.add)
      yield* TestClock.adjust("2 seconds")
      yield* job.turn
    }).pipe(Effect.orDie, Effect.asVoid)
    return { log: chargeLog, turn, figures } satisfies Node
  })

const keysIn = (log: ChargeLogContract) => async (): Promise<ReadonlyArray<NoteKey>> =>
  (await Effect.runPromise(log.keys)).flatMap((key) => Note.logKeyOf(key) ?? [])

/** Two witnesses that trust the log of this database. */
const witnessed = Effect.gen(function* () {
  yield* Scene.now("2026-03-01T10:00:00Z")
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
  const plain = Context.get(yield* Layer.build(logOf(`https://${origin}`)), ChargeLog)
  const one = yield* serve("w1.example", keysIn(plain))
  const two = yield* serve("w2.example", keysIn(plain))
  return [one, two] as const
})

const calls = (count: number) =>
  Effect.forEach(Array.from({ length: count }), (_, i) => Scene.call({ cost: BigInt(i + 1) }), {
    concurrency: "unbounded"
  })

const newest = (log: ChargeLogContract) =>
  Effect.gen(function* () {
    const entries = yield* entriesAfter(yield* SqlClient, 0, Number.MAX_SAFE_INTEGER, 1_000_000)
    return yield* log.receipt(entries.at(-1)!)
  })

/** The witnesses that cosigned the receipt of the newest entry. */
const cosigners = (log: ChargeLogContract, witnesses: ReadonlyArray<Served>, least: number) =>
  Effect.gen(function* () {
    const receipt = (yield* newest(log))!
    const keys = [...(yield* log.keys), ...witnesses.map(({ witness }) => witness.verifier)]
    const { cosigned } = yield* Effect.tryPromise({
      try: () => verifyReceipt(receipt, keys, { witnesses: least }),
      catch: (error) => (error as Error).message
    })
    return cosigned.map(({ name }) => name)
  })

const sizeIn = (checkpoint: string | undefined): number => Number(checkpoint?.split("\n")[1])

describe("witnesses", () => {
  it.scoped("cosign every published checkpoint, and receipts prove it", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const { figures, log, turn } = yield* nodeWith(witnesses)
      for (const count of [1, 1, 250, 3, 300, 1]) {
        yield* calls(count)
        yield* turn
        expect((yield* cosigners(log, witnesses, 2)).toSorted()).toEqual(["w1.example", "w2.example"])
        expect(yield* verify).toEqual([])
      }
      expect(sizeIn(yield* log.checkpoint)).toBe(558)
      expect(yield* figures).toEqual([
        { witness: "w1.example", lag_seconds: 0, conflict: false },
        { witness: "w2.example", lag_seconds: 0, conflict: false }
      ])
      // Nothing new: nothing is sent.
      const before = witnesses[0].requests.length
      yield* turn
      expect(witnesses[0].requests.length).toBe(before)
      expect(witnesses[0].requests.at(-1)!.split("\n")[0]).toBe("old 557")
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("are asked from the size that they state", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const node = yield* nodeWith(witnesses)
      yield* calls(5)
      yield* node.turn
      // One forgets the log, and a node that starts does not know what either has seen.
      witnesses[0].witness.logs.clear()
      yield* unchecked("DELETE FROM tollgate_log_witnesses")
      yield* calls(300)
      const { log, turn } = yield* nodeWith(witnesses)
      yield* turn
      expect(yield* cosigners(log, witnesses, 2)).toHaveLength(2)
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("that are down stop neither the log nor, after ten seconds, its receipts", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const { figures, log, turn } = yield* nodeWith(witnesses)
      yield* turn
      const [, two] = witnesses
      two.instead = (_, response) => void response.destroy()
      yield* calls(7)
      yield* turn
      // The receipt waits for the second witness.
      expect(yield* newest(log)).toBeUndefined()
      expect(sizeIn(yield* log.checkpoint)).toBe(2)
      expect((yield* figures)[1]).toMatchObject({ lag_seconds: 2, conflict: false })
      yield* TestClock.adjust("10 seconds")
      yield* turn
      expect(sizeIn(yield* log.checkpoint)).toBe(9)
      expect(yield* cosigners(log, witnesses, 1)).toEqual(["w1.example"])
      expect(yield* Effect.flip(cosigners(log, witnesses, 2))).toContain(
        "1 witnesses cosigned the checkpoint, but 2 must"
      )
      expect(yield* verify).toEqual([])
      two.instead = undefined
      yield* TestClock.adjust("61 seconds")
      yield* turn
      expect(yield* cosigners(log, witnesses, 2)).toHaveLength(2)
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("need not all cosign if fewer are required", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const { log, turn } = yield* nodeWith(witnesses, 1)
      witnesses[0].instead = (_, response) => void response.writeHead(500).end()
      yield* calls(3)
      yield* turn
      expect(yield* cosigners(log, witnesses, 1)).toEqual(["w2.example"])
      // A cosignature that comes later is added to the same checkpoint.
      witnesses[0].instead = undefined
      yield* turn
      expect((yield* cosigners(log, witnesses, 2)).toSorted()).toEqual(["w1.example", "w2.example"])
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("are not believed if their reply is no cosignature", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const [one] = witnesses
      const { log, turn } = yield* nodeWith(witnesses, 1)
      yield* turn
      const valid = (yield* log.checkpoint)!.split("\n").slice(-3, -1)
      expect(valid.every((line) => line.startsWith("— w"))).toBe(true)
      const replies: ReadonlyArray<readonly [status: number, body: string, headers?: Record<string, string>]> = [
        [200, ""],
        [200, `${valid[0]}\n`],
        [200, "— w1.example AAAA\n"],
        [200, "x".repeat(100_000)],
        [307, "", { location: one.configured.url }],
        [400, ""],
        [403, ""],
        [404, ""],
        [409, ""],
        [409, "-1\n"],
        [409, "99999999999999999999\n"],
        [409, "2\n"],
        [503, ""]
      ]
      for (const [status, body, headers = {}] of replies) {
        one.instead = (_, response) => void response.writeHead(status, headers).end(body)
        yield* calls(1)
        yield* TestClock.adjust("61 seconds")
        yield* turn
        expect([status, body.slice(0, 9), yield* cosigners(log, witnesses, 1)]).toEqual([
          status,
          body.slice(0, 9),
          ["w2.example"]
        ])
      }
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("that leave the configuration leave nothing behind", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const node = yield* nodeWith(witnesses)
      yield* node.turn
      yield* unchecked("UPDATE tollgate_log_witnesses SET conflict = 'it knows more'")
      expect((yield* verify).map(({ check }) => check)).toEqual(Array(2).fill("no witness contradicts the log"))
      const { log, turn } = yield* nodeWith([])
      yield* calls(1)
      yield* turn
      expect(yield* verify).toEqual([])
      expect((yield* log.checkpoint)!.split("\n")).toHaveLength(6)
      expect(sizeIn(yield* log.checkpoint)).toBe(3)
    }).pipe(Effect.provide(Scene.layer))
  )
})

/** Rewrites the last entries and makes a log of them again with the same key, so that the books and the log agree. */
const rewritten = (log: ChargeLogContract) =>
  Effect.gen(function* () {
    yield* unchecked(
      "UPDATE tollgate_ledger_entries SET description = 'never happened' WHERE seq IN (SELECT max(seq) FROM tollgate_ledger_entries)"
    )
    yield* unchecked("DELETE FROM tollgate_log_tiles")
    yield* unchecked("DELETE FROM tollgate_log_published")
    yield* unchecked("UPDATE tollgate_log_head SET size = 0, entry = 0, checkpoint = 'rewritten'")
    while ((yield* log.add) + (yield* log.add) > 0);
    expect(yield* verify).toEqual([])
  })

/** The tiles and the head of the log at this moment. */
const keptLog = Effect.gen(function* () {
  const sql = yield* SqlClient
  const tiles = yield* sql`SELECT level, n, first, hashes FROM tollgate_log_tiles`
  const [head] = yield* sql<{
    readonly size: number
    readonly entry: number
    readonly checkpoint: string
  }>`SELECT size, entry, checkpoint FROM tollgate_log_head`
  return { tiles, head: head! }
})

/** Puts an earlier log back, as if the later one had never been. */
const restored = ({ head, tiles }: Effect.Effect.Success<typeof keptLog>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`DELETE FROM tollgate_log_tiles`
    yield* sql`DELETE FROM tollgate_log_published`
    for (const row of tiles) yield* sql`INSERT INTO tollgate_log_tiles ${sql.insert(row)}`
    yield* sql`UPDATE tollgate_log_head SET ${sql.update(head)}`
  })

const conflicts = Effect.map(verify, (findings) =>
  findings.filter(({ check }) => check === "no witness contradicts the log")
)

/** The witnesses refuse, customers who require them notice, and `verify` says so. */
const isCaught = (node: Node, witnesses: ReadonlyArray<Served>, reason: string) =>
  Effect.gen(function* () {
    yield* node.turn
    yield* TestClock.adjust("20 seconds")
    yield* node.turn
    const findings = yield* conflicts
    expect(findings).toHaveLength(2)
    for (const { message } of findings) expect(message).toContain(reason)
    expect((yield* node.figures).map(({ conflict }) => conflict)).toEqual([true, true])
    expect(yield* Effect.flip(cosigners(node.log, witnesses, 1))).toContain("0 witnesses cosigned")
  })

describe("a ledger that was rewritten and is consistent in itself", () => {
  it.scoped("is found by the witnesses, if the log has the same size", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const before = yield* nodeWith(witnesses)
      yield* calls(300)
      yield* before.turn
      const node = yield* nodeWith(witnesses)
      yield* rewritten(node.log)
      yield* isCaught(node, witnesses, "it knows another root of the log of 302 entries")
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("is found by the witnesses, if the log has grown since", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const before = yield* nodeWith(witnesses)
      yield* calls(300)
      yield* before.turn
      const node = yield* nodeWith(witnesses)
      yield* rewritten(node.log)
      yield* calls(12)
      yield* isCaught(node, witnesses, "it refuses the proof that the log of 302 entries grew")
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("is found by the witnesses, if the last entries are gone", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const before = yield* nodeWith(witnesses)
      yield* calls(3)
      yield* before.turn
      const kept = yield* keptLog
      yield* calls(3)
      yield* before.turn
      yield* restored(kept)
      yield* unchecked(`DELETE FROM tollgate_ledger_entries WHERE seq > ${kept.head.entry}`)
      const node = yield* nodeWith(witnesses)
      yield* isCaught(node, witnesses, "it knows 8 entries, but the log has only 5")
    }).pipe(Effect.provide(Scene.layer))
  )
})

describe("a service with two histories", () => {
  it.scoped("gets cosignatures for only one of them", () =>
    Effect.gen(function* () {
      const witnesses = yield* witnessed
      const honest = yield* nodeWith(witnesses)
      yield* calls(40)
      yield* honest.turn
      const kept = yield* keptLog
      // The history for one customer.
      yield* Scene.call({ cost: 5n })
      yield* honest.turn
      expect(yield* cosigners(honest.log, witnesses, 2)).toHaveLength(2)
      const shown = (yield* newest(honest.log))!
      // The history for another one continues from the same tree with another entry, signed by the same key.
      yield* unchecked(`UPDATE tollgate_ledger_entries SET reference_id = 'use_other' WHERE seq > ${kept.head.entry}`)
      yield* restored(kept)
      const forked = yield* nodeWith(witnesses)
      yield* forked.log.add
      const fork = (yield* newest((yield* nodeWith([])).log))!
      expect(fork.leaf).not.toBe(shown.leaf)
      const keys = [...(yield* forked.log.keys), ...witnesses.map(({ witness }) => witness.verifier)]
      // Without witnesses, both customers would accept what they see.
      yield* Effect.promise(() => verifyReceipt(shown, keys, { witnesses: 2 }))
      yield* Effect.promise(() => verifyReceipt(fork, keys))
      yield* forked.turn
      expect(yield* newest(forked.log)).toBeUndefined()
      yield* TestClock.adjust("20 seconds")
      yield* forked.turn
      expect(yield* Effect.flip(cosigners(forked.log, witnesses, 1))).toContain("0 witnesses cosigned")
      yield* Scene.call({ cost: 6n })
      yield* TestClock.adjust("61 seconds")
      yield* forked.turn
      expect(yield* Effect.flip(cosigners(forked.log, witnesses, 1))).toContain("0 witnesses cosigned")
      expect(yield* conflicts).toHaveLength(2)
    }).pipe(Effect.provide(Scene.layer))
  )
})
