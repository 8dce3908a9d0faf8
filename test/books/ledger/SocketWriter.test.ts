/** The writer's thread as other processes reach it: over a local socket, in frames. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Layer, Logger, LogLevel, Schedule, Scope } from "effect"
import fc from "fast-check"
import { mkdtempSync, rmSync } from "node:fs"
import { connect, createServer } from "node:net"
import type { Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { verify } from "../../../src/app/Checks.ts"
import type { Posting, Transaction } from "../../../src/books/ledger/rules/Transaction.ts"
import { BooksUnavailable } from "../../../src/books/ledger/rules/Problems.ts"
import type { Tape } from "../../../src/books/ledger/write/Codec.ts"
import * as Frames from "../../../src/books/ledger/write/Frames.ts"
import type { Door } from "../../../src/books/ledger/write/Thread.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Sql from "../../../src/storage/sqlite/Sql.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tollgate-socket-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const doorIn = (folder: string): Door => ({ path: join(folder, "writer"), token: "the secret of the test" })

type Service = Context.Tag.Service<typeof Writer>

const quiet = Logger.minimumLogLevel(LogLevel.None)

const owner = (folder: string) => {
  const path = join(folder, "books.db")
  return Layer.build(Writer.layerThread(path, doorIn(folder)).pipe(Layer.provideMerge(Sql.layer(path)))).pipe(
    Effect.provide(quiet),
    Effect.map((context) => ({
      writer: Context.get(context, Writer),
      sql: Context.get(context, SqlClient),
      findings: Effect.provide(verify, context)
    }))
  )
}

const worker = (door: Door) =>
  Layer.build(Writer.layerSocket(door)).pipe(
    Effect.provide(quiet),
    Effect.map((context) => Context.get(context, Writer))
  )

const of = (...postings: ReadonlyArray<Posting>): Transaction => ({ postings, statements: [] })
const open = (account: string): Posting => ({ _tag: "Open", account, tenant: `ten_${account}` })
const credit = (account: string, amount: bigint): Posting => ({
  _tag: "Credit",
  account,
  amount,
  source: "purchase",
  reference: "r",
  description: "é – \ud83d\ude00"
})

const callOf = (account: string, call: string): ReadonlyArray<Posting> => [
  {
    _tag: "Reserve",
    call,
    sources: [{ billing_account_id: account, tenant_id: `ten_${account}`, kind: "own", why: "own" }],
    least: 10n,
    most: 10n,
    run: "now",
    facts: {
      account_id: "acc",
      tenant_id: `ten_${account}`,
      application_id: null,
      usage_type: "inference",
      endpoint: "chat",
      model: "small",
      provider: "p"
    }
  },
  {
    _tag: "Settle",
    call,
    outcome: {
      cost: 3n,
      prompt_tokens: 1,
      completion_tokens: 1,
      units: 2,
      success: true,
      error_type: null,
      usage_source: "provider",
      latency_ms: 1
    }
  }
]

const call = (writer: Service, account: string, id: string) =>
  Effect.forEach(callOf(account, id), (posting) => writer.submit(of(posting)), { discard: true })

const balance = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly balance: number }>`SELECT sum(giftable + granted) AS balance FROM tollgate_ledger_amounts`,
    ([row]) => row!.balance
  )

const all = <A, E>(effects: ReadonlyArray<Effect.Effect<A, E>>) => Effect.all(effects, { concurrency: "unbounded" })

describe("frames", () => {
  const tapes = fc
    .record({
      count: fc.nat(1_000),
      numbers: fc.array(fc.double()),
      texts: fc.array(fc.string({ unit: "binary" })),
      first: fc.nat(32_768),
      terms: fc.constantFrom("", '[{"a":"é"}]', "[null]")
    })
    .map(({ numbers, ...rest }): Tape => ({ ...rest, numbers: Float64Array.from(numbers) }))

  it("arrive as they were sent, however the stream cuts them", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.double({ noNaN: true }), tapes)),
        fc.infiniteStream(fc.integer({ min: 1, max: 90 })),
        (sent, cuts) => {
          const bytes = Buffer.concat(sent.map(([now, tape]) => Frames.encode(now, tape)))
          const got: Array<readonly [number, Tape]> = []
          const read = Frames.reader(({ now, tape }) => got.push([now, tape]))
          for (let at = 0; at < bytes.length;) {
            const next = at + cuts.next().value!
            read(bytes.subarray(at, next))
            at = next
          }
          expect(got).toEqual(sent)
        }
      )
    )
  })

  it("are refused where they are something else", () => {
    const read = Frames.reader(() => {})
    expect(() => read(Buffer.alloc(64))).toThrow("this is not a frame")
    const cut = Frames.encode(0, { count: 1, numbers: Float64Array.of(1), texts: [], first: 0, terms: "" })
    cut.writeUInt32LE(9, 12)
    expect(() => Frames.reader(() => {})(cut)).toThrow("a frame is cut short")
  })
})

describe("a worker's writer", () => {
  it.scopedLive("shares the books with the owner's and with other workers'", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const { findings, sql, writer } = yield* owner(at)
      const [one, other] = [yield* worker(doorIn(at)), yield* worker(doorIn(at))]
      const accounts = ["ada", "bob", "cyd"]
      yield* all(accounts.map((account) => writer.submit(of(open(account), credit(account, 1_000n)))))
      const writers = [writer, one, other]
      yield* all(
        Array.from({ length: 90 }, (_, i) => call(writers[i % 3]!, accounts[Math.floor(i / 3) % 3]!, `call_${i}`))
      )
      expect(yield* balance(sql)).toBe(3_000 - 90 * 3)
      // A refusal and a result of each kind find their way back.
      expect(yield* Effect.flip(one.submit(of(open("ada"))))).toMatchObject({ _tag: "AccountExists" })
      expect(yield* other.submit(of(credit("bob", 5n)))).toMatchObject([{ _tag: "Credited" }])
      expect(yield* findings).toEqual([])
    })
  )

  it.scopedLive("answers everything before it closes", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const { sql, writer } = yield* owner(at)
      yield* writer.submit(of(open("ada")))
      const scope = yield* Scope.make()
      const own = yield* Scope.extend(worker(doorIn(at)), scope)
      const asked = yield* Effect.fork(
        all(Array.from({ length: 1_200 }, () => Effect.exit(own.submit(of(credit("ada", 1n))))))
      )
      yield* Effect.sleep("1 millis")
      yield* Scope.close(scope, Exit.void)
      const done = (yield* Fiber.join(asked)).filter(Exit.isSuccess).length
      expect(done).toBeGreaterThan(0)
      expect(yield* balance(sql)).toBe(done)
      expect(yield* Effect.flip(own.submit(of(credit("ada", 1n))))).toEqual(new BooksUnavailable())
    })
  )

  it.scopedLive("without the secret is not let in", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const { sql, writer } = yield* owner(at)
      const exit = yield* Effect.exit(worker({ ...doorIn(at), token: "another secret of a test" }))
      expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toContain("the writer could not open")
      yield* writer.submit(of(open("ada"), credit("ada", 1n)))
      expect(yield* balance(sql)).toBe(1)
    })
  )

  it.scopedLive("that loses its connection says so, refuses meanwhile, and connects again", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const door = doorIn(at)
      const { sql, writer } = yield* owner(at)
      yield* writer.submit(of(open("ada")))
      // Stands between the two, and cuts the connection.
      const sockets = new Set<Socket>()
      const between = { ...door, path: join(at, "between") }
      let isDeaf = false
      const proxy = createServer({ allowHalfOpen: true }, (socket) => {
        if (isDeaf) return void socket.destroy()
        sockets.add(socket.on("error", () => {}))
        const on = connect({ path: door.path, allowHalfOpen: true }).on("error", () => {})
        sockets.add(on)
        socket.pipe(on).pipe(socket)
      })
      yield* Effect.promise(() => new Promise<void>((listening) => proxy.listen(between.path, listening)))
      yield* Effect.addFinalizer(() => Effect.sync(() => proxy.close()))
      const own = yield* worker(between)
      yield* own.submit(of(credit("ada", 1n)))
      isDeaf = true
      const asked = yield* Effect.fork(Effect.flip(own.submit(of(credit("ada", 1n)))))
      yield* Effect.promise(() => new Promise((turn) => setImmediate(() => setImmediate(() => setImmediate(turn)))))
      for (const socket of sockets) socket.destroy()
      expect(yield* Fiber.join(asked)).toEqual(new BooksUnavailable({ maybe_written: true }))
      expect(yield* Effect.flip(own.submit(of(credit("ada", 1n))))).toEqual(new BooksUnavailable())
      isDeaf = false
      yield* Effect.retry(own.submit(of(credit("ada", 100n))), Schedule.spaced("20 millis"))
      // The credit in between may have been written.
      expect([101, 102]).toContain(yield* balance(sql))
    })
  )
})
