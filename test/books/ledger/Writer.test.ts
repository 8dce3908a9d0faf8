/** The writer on its thread, over a file: what others do to the file, to the thread, and to those who wait. */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { describe, expect, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Cause, Context, Deferred, Duration, Effect, Either, Exit, Fiber, Layer, Logger, Scope } from "effect"
import fc from "fast-check"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  outcomeReceiver,
  outcomeSender,
  transactionReceiver,
  transactionSender
} from "../../../src/books/ledger/write/Codec.ts"
import { verify } from "../../../src/app/Checks.ts"
import {
  AccountExists,
  AccountInactive,
  BooksUnavailable,
  InsufficientCredits
} from "../../../src/books/ledger/rules/Problems.ts"
import type { CallFacts, Posting, Statement, Transaction } from "../../../src/books/ledger/rules/Transaction.ts"
import { CommitLimit } from "../../../src/books/ledger/write/Submitting.ts"
import { untilWritten, Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Sql from "../../../src/storage/sqlite/Sql.ts"
import { root } from "../../support/Service.ts"

/** A place for a database, gone with the scope. */
const file = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tollgate-writer-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
).pipe(Effect.map((folder) => join(folder, "books.db")))

type Service = Context.Tag.Service<typeof Writer>

/** A writer on the file, with the connection that reads beside it. */
const writerOn = (path: string, limit: Duration.DurationInput = "10 seconds") =>
  Layer.build(Writer.layerThread(path).pipe(Layer.provideMerge(Sql.layer(path)))).pipe(
    Effect.provideService(CommitLimit, Duration.decode(limit)),
    Effect.map((context) => ({
      writer: Context.get(context, Writer),
      sql: Context.get(context, SqlClient),
      findings: Effect.provide(verify, context)
    }))
  )

const of = (...postings: ReadonlyArray<Posting>): Transaction => ({ postings, statements: [] })
const run = (...statements: ReadonlyArray<Statement>): Transaction => ({ postings: [], statements })

const open: Posting = { _tag: "Open", account: "ada", tenant: "ten_ada" }

const credit = (amount: bigint): Posting => ({
  _tag: "Credit",
  account: "ada",
  amount,
  source: "purchase",
  reference: "r",
  description: "d"
})

const facts: CallFacts = {
  account_id: "acc_ada",
  tenant_id: "ten_ada",
  application_id: null,
  usage_type: "inference",
  endpoint: "chat",
  model: "small",
  provider: "p"
}

const reserve = (call: string, amount: bigint): Posting => ({
  _tag: "Reserve",
  call,
  sources: [{ billing_account_id: "ada", tenant_id: "ten_ada", kind: "own", why: "own" }],
  least: amount,
  most: amount,
  run: "now",
  facts
})

const settle = (call: string, cost: bigint): Posting => ({
  _tag: "Settle",
  call,
  outcome: {
    cost,
    prompt_tokens: 1,
    completion_tokens: 1,
    units: 2,
    success: true,
    error_type: null,
    usage_source: "provider",
    latency_ms: 1
  }
})

const balance = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly balance: number; readonly reserved: number }>`
      SELECT giftable + granted AS balance, reserved FROM tollgate_ledger_amounts`,
    ([row]) => ({ ...row })
  )

/** A whole call: admitted, then ended. */
const call = (writer: Service, id: string, amount: bigint, cost: bigint) =>
  Effect.zipRight(writer.submit(of(reserve(id, amount))), writer.submit(of(settle(id, cost))))

const all = <A, E>(effects: ReadonlyArray<Effect.Effect<A, E>>) => Effect.all(effects, { concurrency: "unbounded" })

const times = <A>(count: number, make: (i: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, i) => make(i))

const died = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isFailure(exit) && Cause.isDie(exit.cause) ? Cause.pretty(exit.cause) : `it did not die: ${exit}`

/** What a transaction comes to while the books cannot be written. */
const unavailable = (submitted: ReturnType<Service["submit"]>): Effect.Effect<string> =>
  Effect.match(submitted, {
    onSuccess: (results) => `it was committed: ${results.map(({ _tag }) => _tag)}`,
    onFailure: (error) =>
      error instanceof BooksUnavailable
        ? error.maybe_written
          ? "it may have been written"
          : "nothing was written"
        : `it was refused: ${error._tag}`
  })

/** Another process's connection, which holds the lock on the file until it is closed with the scope, or before. */
const lockOn = (path: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const other = new Sqlite(path)
      other.exec("BEGIN IMMEDIATE; UPDATE tollgate_ledger_accounts SET status = status")
      return other
    }),
    (other) => Effect.sync(() => other.close())
  )

/** So many that they do not fit into two commits; it goes on when all of them have been handed in. */
const crowd = (writer: Service) =>
  Effect.gen(function* () {
    const handedIn = yield* Deferred.make<void>()
    let asked = 0
    const ask = Effect.suspend(() => {
      if (++asked === 1_500) Deferred.unsafeDone(handedIn, Exit.void)
      return Effect.exit(writer.submit(of(credit(1n))))
    })
    const fiber = yield* Effect.fork(all(times(1_500, () => ask)))
    yield* Deferred.await(handedIn)
    return fiber
  })

describe("the file", () => {
  it.scopedLive("is known as another writer left it, whatever one remembers", () =>
    Effect.gen(function* () {
      const path = yield* file
      const [one, other] = [yield* writerOn(path), yield* writerOn(path)]
      yield* one.writer.submit(of(open, credit(100n)))
      yield* one.writer.submit(of(reserve("call_1", 60n)))
      expect(yield* Effect.either(other.writer.submit(of(reserve("call_2", 60n))))).toEqual(
        Either.left(new InsufficientCredits({ available: 40n }))
      )
      yield* other.writer.submit(of(settle("call_1", 10n)))
      expect(yield* one.writer.submit(of(settle("call_1", 10n)))).toEqual([{ _tag: "AlreadySettled" }])
      yield* other.writer.submit(of({ _tag: "SetStatus", account: "ada", status: "suspended" }))
      expect(yield* Effect.either(one.writer.submit(of(reserve("call_3", 1n))))).toEqual(
        Either.left(new AccountInactive({ account: "ada" }))
      )
      yield* other.writer.submit(of({ _tag: "SetStatus", account: "ada", status: "active" }))
      yield* call(other.writer, "call_4", 20n, 15n)
      yield* call(one.writer, "call_5", 20n, 15n)
      expect(yield* balance(one.sql)).toEqual({ balance: 60, reserved: 0 })
      expect(yield* one.findings).toEqual([])
    })
  )

  it.scopedLive("is what counts after a batch that failed, not what the batch had seen", () =>
    Effect.gen(function* () {
      const { findings, sql, writer } = yield* writerOn(yield* file)
      yield* writer.submit(of(open, credit(100n)))
      yield* call(writer, "call_1", 10n, 10n)
      // Another name for the record that is there already.
      yield* writer.submit(of(reserve("other_1", 10n)))
      const novel = { ...reserve("call_2", 30n), facts: { ...facts, model: "large" } } as Posting
      // Handed in together, they are one batch, which fails as it is written; each is then tried by itself.
      const exits = yield* all([novel, settle("other_1", 1n)].map((one) => Effect.exit(writer.submit(of(one)))))
      expect(exits.map(Exit.isSuccess)).toEqual([true, false])
      expect(yield* balance(sql)).toEqual({ balance: 90, reserved: 40 })
      expect((yield* findings).map(({ message }) => message)).toEqual([
        "call other_1 is both settled and open: it has a reservation and the record use_1"
      ])
    })
  )

  it.scopedLive("keeps everything from one writer to the next", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { writer } = yield* writerOn(path)
          yield* writer.submit(of(open, credit(100n)))
          yield* writer.submit(of(reserve("call_1", 30n)))
          yield* call(writer, "call_2", 20n, 15n)
        })
      )
      const { findings, sql, writer } = yield* writerOn(path)
      expect(yield* balance(sql)).toEqual({ balance: 85, reserved: 30 })
      // The call that was under way then can still end, and the next entry takes the next number.
      expect(yield* writer.submit(of(settle("call_1", 5n)))).toEqual([
        { _tag: "Settled", usage_id: "use_1", collected: 5n, balance: 80n }
      ])
      expect(yield* balance(sql)).toEqual({ balance: 80, reserved: 0 })
      expect(yield* findings).toEqual([])
    })
  )

  it.scopedLive("is written with full durability, ahead of a log", () =>
    Effect.gen(function* () {
      const { writer } = yield* writerOn(yield* file)
      // Both are asked on the writer's own connection, where alone they count.
      const asks = (text: string): Statement => ({ text, params: [], rows: 1 })
      yield* writer.submit(run(asks("SELECT 1 FROM pragma_synchronous WHERE synchronous = 2")))
      yield* writer.submit(run(asks("SELECT 1 FROM pragma_journal_mode WHERE journal_mode = 'wal'")))
    })
  )

  it.scopedLive("cannot be written through the connection that reads", () =>
    Effect.gen(function* () {
      const { sql, writer } = yield* writerOn(yield* file)
      yield* writer.submit(of(open))
      const refused = yield* Effect.exit(sql`UPDATE tollgate_ledger_amounts SET giftable = 1`)
      expect(Exit.isFailure(refused)).toBe(true)
    })
  )

  it.scopedLive("may be locked by another for a moment, which only delays", () =>
    Effect.gen(function* () {
      const path = yield* file
      const { sql, writer } = yield* writerOn(path)
      yield* writer.submit(of(open))
      const other = new Sqlite(path)
      other.exec("BEGIN IMMEDIATE; UPDATE tollgate_ledger_accounts SET status = status")
      const waiting = yield* Effect.fork(all(times(5, () => writer.submit(of(credit(1n))))))
      yield* Effect.sleep("200 millis")
      expect(yield* Fiber.poll(waiting)).toMatchObject({ _tag: "None" })
      other.exec("COMMIT")
      other.close()
      yield* Fiber.join(waiting)
      expect(yield* balance(sql)).toMatchObject({ balance: 5 })
    })
  )

  it.scopedLive("may have two writers at once, and their sums are right", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* writerOn(path)
      const other = yield* writerOn(path)
      yield* one.writer.submit(of(open, credit(1_000n)))
      // Turn by turn, so that the batches of the two interleave.
      const work = (writer: Service, who: string) =>
        Effect.forEach(
          times(25, (i) => i),
          (i) =>
            all([
              call(writer, `call_${who}${i}a`, 10n, 3n),
              call(writer, `call_${who}${i}b`, 10n, 4n),
              writer.submit(of(credit(2n)))
            ]),
          { discard: true }
        )
      yield* all([work(one.writer, "x"), work(other.writer, "y")])
      expect(yield* balance(one.sql)).toEqual({ balance: 1_000 + 2 * 25 * (2 - 3 - 4), reserved: 0 })
      expect(yield* one.findings).toEqual([])
    })
  )
})

describe("those who wait", () => {
  it.scopedLive("are all answered when the writer is closed, and what they asked for is done", () =>
    Effect.gen(function* () {
      const path = yield* file
      const scope = yield* Scope.make()
      const { writer } = yield* Scope.extend(writerOn(path), scope)
      yield* writer.submit(of(open))
      const asked = yield* crowd(writer)
      yield* Scope.close(scope, Exit.void)
      const answers = yield* Fiber.join(asked)
      const done = answers.filter(Exit.isSuccess).length
      expect(done).toBe(1_500)
      const { findings, sql } = yield* writerOn(path)
      expect(yield* balance(sql)).toMatchObject({ balance: done })
      expect(yield* findings).toEqual([])
    })
  )

  it.scopedLive("are told at once when they come too late", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { writer } = yield* Scope.extend(writerOn(yield* file), scope)
      yield* Scope.close(scope, Exit.void)
      expect(yield* unavailable(writer.submit(of(open)))).toBe("nothing was written")
    })
  )

  it.scopedLive("may leave, without a word to the others", () =>
    Effect.gen(function* () {
      const path = yield* file
      const { findings, sql, writer } = yield* writerOn(path)
      yield* writer.submit(of(open))
      const other = new Sqlite(path)
      other.exec("BEGIN IMMEDIATE")
      const waiting = yield* Effect.forEach(
        times(20, (i) => BigInt(i + 1)),
        (amount) => Effect.fork(writer.submit(of(credit(amount))))
      )
      yield* Effect.sleep("20 millis")
      for (const [i, fiber] of waiting.entries()) if (i % 2 === 0) yield* Fiber.interrupt(fiber)
      other.exec("ROLLBACK")
      other.close()
      // Each of those who stayed has the answer to its own question.
      const balances = times(20, (i) => BigInt(((i + 1) * (i + 2)) / 2))
      for (const [i, fiber] of waiting.entries()) {
        const exit = yield* Fiber.await(fiber)
        if (i % 2 === 0) expect(Exit.isInterrupted(exit)).toBe(true)
        else expect(exit).toEqual(Exit.succeed([{ _tag: "Credited", balance: balances[i] }]))
      }
      // What was handed in is done, whoever still cares.
      expect(yield* balance(sql)).toMatchObject({ balance: 210 })
      expect(yield* findings).toEqual([])
    })
  )

  it.scopedLive("are told which of them broke a rule of the database, and the others stand", () =>
    Effect.gen(function* () {
      const { sql, writer } = yield* writerOn(yield* file)
      yield* writer.submit(of(open))
      yield* writer.submit(run({ text: "CREATE TABLE beside (id TEXT PRIMARY KEY) STRICT", params: [] }))
      const insert: Statement = { text: "INSERT INTO beside (id) VALUES (?)", params: ["one"] }
      const exits = yield* all(
        [of(credit(1n)), run(insert, insert), of(credit(2n)), run({ text: "no SQL", params: [] }), of(credit(4n))].map(
          (one) => Effect.exit(writer.submit(one))
        )
      )
      expect(exits.map(Exit.isSuccess)).toEqual([true, false, true, false, true])
      expect(died(exits[1]!)).toContain("UNIQUE constraint failed")
      expect(died(exits[3]!)).toContain("syntax error")
      expect(yield* balance(sql)).toMatchObject({ balance: 7 })
      expect(yield* sql`SELECT * FROM beside`).toEqual([])
    })
  )
})

describe("a database that cannot be written", () => {
  it.scopedLive(
    "is locked by another: all who wait are told, then each at once, and the first after it is written",
    () =>
      Effect.gen(function* () {
        const path = yield* file
        const { findings, sql, writer } = yield* writerOn(path)
        yield* writer.submit(of(open, credit(100n)))
        const other = yield* lockOn(path)
        const told = yield* all(times(20, () => unavailable(writer.submit(of(credit(1n))))))
        expect(told).toEqual(times(20, () => "nothing was written"))
        // Were each of these waited for, the test would last too long.
        for (const one of yield* Effect.forEach(
          times(50, () => credit(1n)),
          (one) => unavailable(writer.submit(of(one)))
        )) {
          expect(one).toBe("nothing was written")
        }
        expect(yield* balance(sql)).toMatchObject({ balance: 100 })
        other.close()
        yield* call(writer, "call_1", 60n, 10n)
        expect(yield* balance(sql)).toEqual({ balance: 90, reserved: 0 })
        expect(yield* findings).toEqual([])
      })
  )

  it.scopedLive("is full: nothing of a batch stays, and it goes on when there is room", () =>
    Effect.gen(function* () {
      const { findings, sql, writer } = yield* writerOn(yield* file)
      yield* writer.submit(of(open, credit(100n)))
      const room = (pages: number) => writer.submit(run({ text: `PRAGMA max_page_count = ${pages}`, params: [] }))
      yield* room(1)
      const long = "x".repeat(10_000)
      const large: Posting = { ...credit(1n), description: long } as Posting
      const told = yield* all(times(3, () => unavailable(writer.submit(of(large, large, large)))))
      expect(told).toEqual(times(3, () => "nothing was written"))
      yield* room(1_000_000)
      yield* writer.submit(of(large))
      expect(yield* balance(sql)).toMatchObject({ balance: 101 })
      expect(yield* findings).toEqual([])
    })
  )
})

describe("a commit that takes too long", () => {
  it.scopedLive("keeps nobody waiting, and is known when it comes to an end", () =>
    Effect.gen(function* () {
      const path = yield* file
      const { findings, sql, writer } = yield* writerOn(path, "300 millis")
      yield* writer.submit(of(open, credit(100n)))
      const long =
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000000) SELECT count(*) FROM c"
      const told = yield* all([
        unavailable(writer.submit({ ...of(credit(1n)), statements: [{ text: long, params: [] }] })),
        unavailable(writer.submit(of(reserve("call_1", 10n))))
      ])
      expect(told).toEqual(times(2, () => "it may have been written"))
      // While it lasts, others are refused at once; and then they are not.
      expect(yield* unavailable(writer.submit(of(credit(2n))))).toBe("nothing was written")
      yield* untilWritten(writer.submit(of(credit(4n))))
      yield* writer.submit(of(settle("call_1", 5n)))
      expect(yield* balance(sql)).toEqual({ balance: 100, reserved: 0 })
      expect(yield* findings).toEqual([])
    }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)))
  )
})

describe("a thread that dies", () => {
  /** Not a transaction: the thread cannot read it, and ends by that. */
  const unreadable = of({ ...reserve("call_1", 1n), least: "no number" as unknown as bigint } as Posting)

  it.scopedLive("tells all who wait that it may be written or not, and another takes its place", () =>
    Effect.gen(function* () {
      const { findings, sql, writer } = yield* writerOn(yield* file)
      yield* writer.submit(of(open, credit(100n)))
      // What the first thread knew by its number, the second learns anew.
      yield* call(writer, "call_2", 10n, 5n)
      const told = yield* all(
        [of(credit(1n)), unreadable, of(credit(2n))].map((one) => unavailable(writer.submit(one)))
      )
      expect(told).toEqual(times(3, () => "it may have been written"))
      yield* untilWritten(writer.submit(of(credit(4n))))
      yield* call(writer, "call_3", 10n, 5n)
      expect(yield* balance(sql)).toEqual({ balance: 94, reserved: 0 })
      expect(yield* findings).toEqual([])
    }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)))
  )

  it.scopedLive("does not, of one that cannot be told what to do: only who asked for that is told", () =>
    Effect.gen(function* () {
      const { sql, writer } = yield* writerOn(yield* file)
      yield* writer.submit(of(open))
      const unspeakable = of({
        ...reserve("call_1", 1n),
        facts: { ...facts, model: 1n as unknown as string }
      } as Posting)
      const exits = yield* all(
        [of(credit(1n)), unspeakable, of(credit(2n))].map((one) => Effect.exit(writer.submit(one)))
      )
      expect(exits.map(Exit.isSuccess)).toEqual([true, false, true])
      expect(died(exits[1]!)).toContain("a transaction cannot be encoded")
      yield* writer.submit(of(credit(4n)))
      expect(yield* balance(sql)).toMatchObject({ balance: 7 })
    })
  )

  it.scopedLive("leaves books that another opens, and lets its scope be closed", () =>
    Effect.gen(function* () {
      const path = yield* file
      const scope = yield* Scope.make()
      const { writer } = yield* Scope.extend(writerOn(path), scope)
      yield* writer.submit(of(open, credit(5n)))
      expect(yield* unavailable(writer.submit(unreadable))).toBe("it may have been written")
      // Long after, too, when the thread is over.
      yield* Effect.sleep("200 millis")
      const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* Fiber.join(closing).pipe(Effect.timeoutFail({ duration: "5 seconds", onTimeout: () => "it hangs" }))
      const { findings, sql } = yield* writerOn(path)
      expect(yield* balance(sql)).toMatchObject({ balance: 5 })
      expect(yield* findings).toEqual([])
    }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)))
  )

  it.scopedLive("before it begins, says which file it could not open", () =>
    Effect.gen(function* () {
      const path = join(yield* file, "nowhere", "books.db")
      const exit = yield* Effect.exit(Layer.build(Layer.provide(Writer.layerThread(path), Sql.layerMemory)))
      expect(died(exit)).toContain(`the writer could not open ${path}`)
    }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)))
  )
})

describe("the writer in this thread", () => {
  const layer = Layer.provideMerge(Writer.layer, Sql.layerMemory)

  it.scopedLive("disturbs nobody when one who waits leaves", () =>
    Effect.gen(function* () {
      const { submit } = yield* Writer
      yield* submit(of(open))
      const waiting = yield* Effect.forEach(
        times(10, (i) => i),
        () => Effect.fork(submit(of(credit(1n))))
      )
      yield* Effect.forEach(waiting.slice(0, 5), Fiber.interruptFork)
      yield* Effect.forEach(waiting.slice(5), Fiber.join)
      const [last] = yield* submit(of(credit(1n)))
      // Those who left before they were heard left nothing; those who stayed were heard.
      expect(last?._tag === "Credited" && last.balance >= 6n && last.balance <= 11n).toBe(true)
      expect(yield* verify).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scopedLive("answers all who wait when it is closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Scope.extend(Layer.build(layer), scope)
      const writer = Context.get(context, Writer)
      yield* writer.submit(of(open))
      const asked = yield* crowd(writer)
      yield* Scope.close(scope, Exit.void)
      const answers = yield* Fiber.join(asked).pipe(
        Effect.timeoutFail({ duration: "5 seconds", onTimeout: () => "it hangs" })
      )
      expect(answers.length).toBe(1_500)
    })
  )
})

describe("the writer in this thread, over a file", () => {
  /** A writer of a host's own client on the file, migrated. */
  const hostOn = (path: string) => {
    const client = SqliteClient.layer({ filename: path })
    const migrated = Layer.effectDiscard(Effect.suspend(() => Sql.migrate(path)))
    return Layer.build(Writer.layer.pipe(Layer.provideMerge(migrated), Layer.provideMerge(client))).pipe(
      Effect.map((context) => ({
        writer: Context.get(context, Writer),
        sql: Context.get(context, SqlClient),
        findings: Effect.provide(verify, context)
      }))
    )
  }

  it.scopedLive("waits for another process's lock without holding up this one, and not for long", () =>
    Effect.gen(function* () {
      const path = yield* file
      const { findings, sql, writer } = yield* hostOn(path)
      yield* writer.submit(of(open, credit(100n)))
      const other = yield* lockOn(path)
      const waiting = yield* Effect.fork(writer.submit(of(credit(1n))))
      // This thread and the connection are free meanwhile.
      for (let turn = 0; turn < 5; turn++) {
        yield* Effect.sleep("20 millis")
        expect(yield* balance(sql)).toMatchObject({ balance: 100 })
      }
      other.close()
      yield* Fiber.join(waiting)
      yield* lockOn(path)
      for (const one of yield* all(times(20, () => unavailable(writer.submit(of(credit(1n))))))) {
        expect(one).toBe("nothing was written")
      }
      expect(yield* balance(sql)).toMatchObject({ balance: 101 })
      expect(yield* findings).toEqual([])
    })
  )

  it.scopedLive("takes turns with another process, and both are right", () =>
    Effect.gen(function* () {
      const path = yield* file
      const [one, other] = [yield* hostOn(path), yield* hostOn(path)]
      yield* one.writer.submit(of(open, credit(1_000n)))
      const work = (writer: Service, who: string) =>
        Effect.forEach(
          times(20, (i) => i),
          (i) => call(writer, `call_${who}${i}`, 10n, 3n),
          { concurrency: 5 }
        )
      yield* all([work(one.writer, "x"), work(other.writer, "y")])
      expect(yield* balance(one.sql)).toEqual({ balance: 1_000 - 2 * 20 * 3, reserved: 0 })
      expect(yield* one.findings).toEqual([])
    })
  )

  it.scopedLive("does a transaction as a part of the caller's own, which takes it along", () =>
    Effect.gen(function* () {
      const { findings, sql, writer } = yield* hostOn(yield* file)
      yield* sql`CREATE TABLE mine (id TEXT PRIMARY KEY)`
      yield* writer.submit(of(open, credit(100n)))
      const both = (id: string) =>
        Effect.gen(function* () {
          yield* sql`INSERT INTO mine (id) VALUES (${id})`
          // Several at once are done one after the other.
          return yield* all(times(3, () => writer.submit(of(credit(1n)))))
        })
      const [first] = yield* sql.withTransaction(both("kept"))
      expect(first).toMatchObject([{ _tag: "Credited" }])
      expect(yield* balance(sql)).toMatchObject({ balance: 103 })
      yield* Effect.exit(sql.withTransaction(Effect.zipRight(both("undone"), Effect.fail("changed their mind"))))
      expect(yield* balance(sql)).toMatchObject({ balance: 103 })
      // A refusal undoes only what it refused.
      const refused = yield* sql.withTransaction(
        Effect.zipLeft(
          Effect.either(writer.submit(of(credit(1n), reserve("call_1", 1_000n)))),
          writer.submit(of(credit(2n)))
        )
      )
      expect(refused).toMatchObject({ _tag: "Left", left: { _tag: "InsufficientCredits" } })
      const [broken, after] = yield* sql.withTransaction(
        all([writer.submit(run({ text: "no SQL", params: [] })), writer.submit(of(credit(4n)))].map(Effect.exit))
      )
      expect(died(broken!)).toContain("syntax error")
      expect(Exit.isSuccess(after!)).toBe(true)
      expect(yield* balance(sql)).toMatchObject({ balance: 109 })
      expect(yield* sql`SELECT id FROM mine`).toEqual([{ id: "kept" }])
      expect(yield* findings).toEqual([])
      // Outside of it the writer is as it was.
      yield* call(writer, "call_2", 10n, 9n)
      expect(yield* balance(sql)).toEqual({ balance: 100, reserved: 0 })
    })
  )

  it.scopedLive("does not mind a transaction of another client", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* hostOn(yield* file), yield* hostOn(yield* file)]
      yield* one.writer.submit(of(open))
      yield* Effect.exit(
        other.sql.withTransaction(Effect.zipRight(one.writer.submit(of(credit(5n))), Effect.fail("no")))
      )
      expect(yield* balance(one.sql)).toMatchObject({ balance: 5 })
    })
  )

  it.scopedLive("refuses at once while the host's own transaction lasts too long, and goes on after it", () =>
    Effect.gen(function* () {
      const { findings, sql, writer } = yield* Effect.provideService(
        hostOn(yield* file),
        CommitLimit,
        Duration.millis(300)
      )
      yield* writer.submit(of(open))
      const held = yield* Deferred.make<void>()
      const host = yield* Effect.fork(sql.withTransaction(Effect.zipRight(sql`SELECT 1`, Deferred.await(held))))
      yield* Effect.sleep("50 millis")
      const told = yield* all(times(3, () => unavailable(writer.submit(of(credit(1n))))))
      expect(told).toEqual(times(3, () => "it may have been written"))
      const before = performance.now()
      expect(yield* unavailable(writer.submit(of(credit(2n))))).toBe("nothing was written")
      expect(performance.now() - before).toBeLessThan(250)
      yield* Deferred.succeed(held, undefined)
      yield* Fiber.join(host)
      yield* untilWritten(writer.submit(of(credit(4n))))
      // Those who were told that it may be written had kept their places.
      expect(yield* balance(sql)).toMatchObject({ balance: 7 })
      expect(yield* findings).toEqual([])
    }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)))
  )

  /** The same over a client of which a commit fails once with this code, after it was done or instead. */
  const failingOn = (path: string, code: string, isDone: boolean) =>
    Effect.gen(function* () {
      const client = Context.get(yield* Layer.build(SqliteClient.layer({ filename: path })), SqlClient)
      yield* Effect.provideService(Sql.migrate(path), SqlClient, client)
      const fails = { next: false }
      const failing = (connection: Connection): Connection => ({
        ...connection,
        executeUnprepared: (text, params, transform) => {
          const run = connection.executeUnprepared(text, params, transform)
          if (text !== "COMMIT" || !fails.next) return run
          fails.next = false
          const error = new SqlError({ cause: Object.assign(new Error("it fails"), { code }) })
          return isDone ? Effect.zipRight(run, error) : error
        }
      })
      const sql = new Proxy(client, {
        get: (target, name) =>
          name === "reserve" ? Effect.map(target.reserve, failing) : Reflect.get(target, name, target)
      })
      const context = yield* Layer.build(Layer.provide(Writer.layer, Layer.succeed(SqlClient, sql)))
      return { fails, sql: client, writer: Context.get(context, Writer) }
    })

  it.scopedLive.each([
    { code: "SQLITE_IOERR_FSYNC", isDone: true, told: "it may have been written" },
    { code: "ECONNRESET", isDone: true, told: "it may have been written" },
    { code: "SQLITE_FULL", isDone: false, told: "nothing was written" }
  ])("says of a commit that failed with $code: $told", ({ code, isDone, told }) =>
    Effect.gen(function* () {
      const { fails, sql, writer } = yield* failingOn(yield* file, code, isDone)
      yield* writer.submit(of(open))
      fails.next = true
      expect(yield* unavailable(writer.submit(of(credit(5n))))).toBe(told)
      expect(yield* balance(sql)).toMatchObject({ balance: isDone ? 5 : 0 })
      yield* writer.submit(of(credit(1n)))
      expect(yield* balance(sql)).toMatchObject({ balance: isDone ? 6 : 1 })
    })
  )

  it.scopedLive("does not stay in a transaction that could not be committed", () =>
    Effect.gen(function* () {
      const { sql, writer } = yield* hostOn(yield* file)
      yield* writer.submit(of(open))
      yield* writer.submit(
        run({
          text: "CREATE TABLE child (id TEXT REFERENCES tollgate_ledger_accounts (id) DEFERRABLE INITIALLY DEFERRED)",
          params: []
        })
      )
      yield* sql`PRAGMA foreign_keys = ON`
      const exit = yield* Effect.exit(
        writer.submit(run({ text: "INSERT INTO child (id) VALUES ('nobody')", params: [] }))
      )
      expect(died(exit)).toContain("FOREIGN KEY")
      yield* writer.submit(of(credit(5n)))
      expect(yield* balance(sql)).toMatchObject({ balance: 5 })
    })
  )
})

describe("the thread", () => {
  it("loads no driver of PostgreSQL, which took each start a fifth of a second", () => {
    const text = readFileSync(join(root, "dist", "WriterThread.js"), "utf8")
    expect(text).not.toContain("node_modules/pg")
    expect(text.length).toBeLessThan(150_000)
  })
})

describe("what crosses to the thread", () => {
  const text = fc.oneof(fc.string(), fc.constantFrom("nano", "R", "S", "—\u0000\n", "\u{1f600}"))
  const nano = fc.bigInt(-(10n ** 30n), 10n ** 30n)
  const kind = fc.constantFrom("own" as const, "team" as const)
  const why = fc.constantFrom("own" as const, "pinned" as const, "team_first" as const, "fall_through" as const)
  const source = fc.record({ billing_account_id: text, tenant_id: text, kind, why })
  const orNull = (one: fc.Arbitrary<string>) => fc.option(one)
  const count = fc.nat()
  /** An id or a hash. Neither is ever empty. */
  const given = fc.option(fc.string({ minLength: 1 }), { nil: undefined })
  const callFacts = fc.record({
    account_id: text,
    tenant_id: text,
    application_id: orNull(text),
    usage_type: fc.constantFrom("inference" as const, "tool" as const),
    endpoint: text,
    model: text,
    provider: text
  })
  const often = fc.sample(callFacts, { numRuns: 2, seed: 1 })
  const posting: fc.Arbitrary<Posting> = fc.oneof(
    fc.record({ _tag: fc.constant("Open" as const), account: text, tenant: text }),
    fc.record({
      _tag: fc.constant("SetStatus" as const),
      account: text,
      status: fc.constantFrom("active" as const, "suspended" as const, "closed" as const)
    }),
    fc.record({
      _tag: fc.constant("Credit" as const),
      account: text,
      amount: nano,
      source: fc.constantFrom("purchase" as const, "admin" as const),
      reference: text,
      description: text
    }),
    fc.record(
      {
        _tag: fc.constant("Reserve" as const),
        call: text,
        sources: fc.array(source),
        least: nano,
        enough: nano,
        most: nano,
        run: text,
        facts: fc.oneof(callFacts, fc.constantFrom(...often)),
        tokens: fc.record({ least: count, most: count })
      },
      { requiredKeys: ["_tag", "call", "sources", "least", "most", "run", "facts"] }
    ),
    fc.record({
      _tag: fc.constant("Settle" as const),
      call: text,
      outcome: fc.record({
        cost: nano,
        prompt_tokens: count,
        completion_tokens: count,
        units: fc.double({ noNaN: true, noDefaultInfinity: true }).map((units) => units + 0),
        provider: orNull(text),
        success: fc.boolean(),
        error_type: orNull(text),
        usage_source: fc.constantFrom("provider" as const, "none" as const),
        latency_ms: count,
        request_id: given,
        vendor_request: given,
        request_hash: given,
        answer_hash: given,
        token_details: fc.option(
          fc.record(
            { cached_tokens: count, reasoning_tokens: count, completion_image_tokens: count },
            { requiredKeys: [] }
          ),
          { nil: undefined }
        )
      })
    })
  )
  const statement: fc.Arbitrary<Statement> = fc.record(
    { text, params: fc.array(fc.oneof(text, count, nano, fc.constant(null))), rows: count },
    { requiredKeys: ["text", "params"] }
  )
  const transaction = fc.record({
    postings: fc.array(posting, { maxLength: 2 }),
    statements: fc.array(statement, { maxLength: 2 })
  })

  it("comes out as it went in", () => {
    fc.assert(
      fc.property(fc.array(fc.array(transaction), { maxLength: 3 }), (messages) => {
        const [sender, receiver] = [transactionSender(), transactionReceiver()]
        for (const transactions of messages) {
          expect(receiver.decode(sender.encode(transactions))).toEqual(transactions)
        }
      }),
      { numRuns: 200 * Number(process.env.FC_RUNS ?? 1) }
    )
  })

  it("names who pays and what is called once, for however many calls and kinds of them", () => {
    const [sender, receiver] = [transactionSender(), transactionReceiver()]
    const sources = [{ billing_account_id: "ada", tenant_id: "ten_ada", kind: "own", why: "own" }] as const
    const call = (facts: CallFacts) =>
      of({ _tag: "Reserve", call: "call_1", sources, least: 1n, most: 1n, run: "run_1", facts })
    const facts = (model: string): CallFacts => ({ ...often[0]!, model })
    const same = facts("same")
    const tapes = [1, 2].map(() => sender.encode([call(same)]))
    expect(tapes.map(({ terms }) => terms.includes("ten_ada"))).toEqual([true, false])
    for (const tape of tapes) expect(receiver.decode(tape)).toEqual([call(same)])
    for (let kind = 0; kind < 10_000; kind++) {
      const transactions = [call(facts(`model-${kind}`)), call(same)]
      expect(receiver.decode(sender.encode(transactions))).toEqual(transactions)
    }
  })

  it("leaves nothing of a message that could not be written down", () => {
    const [sender, receiver] = [transactionSender(), transactionReceiver()]
    const [first, second] = [of(settle("call_1", 1n)), of(reserve("call_2", 1n))]
    expect(receiver.decode(sender.encode([first]))).toHaveLength(1)
    const circle: Array<unknown> = []
    circle.push(circle)
    expect(() => sender.encode([second, first, run({ text: "SELECT ?", params: [circle] })])).toThrow()
    expect(receiver.decode(sender.encode([second]))).toEqual([second])
  })

  it("comes back as it was", () => {
    const rate = fc.record({ limit: count, remaining: count, resets_at: count })
    const rates = fc.record({ requests: rate, tokens: rate }, { requiredKeys: [] })
    const shortage = fc.record(
      {
        _tag: fc.constant("BudgetReached" as const),
        budget: text,
        name: text,
        unit: fc.constantFrom("usd" as const, "requests" as const),
        period: fc.constantFrom("minute" as const, "total" as const),
        limit: nano,
        left: nano,
        renews_at: count
      },
      { requiredKeys: ["_tag", "budget", "name", "unit", "period", "limit", "left"] }
    )
    const left = { tokens: fc.option(count, { nil: undefined }), rates }
    const within = fc.oneof(
      fc.record({ ...left, barred: fc.constant([]) }),
      fc.record({ ...left, barred: fc.array(count, { minLength: 1 }), refusal: shortage })
    )
    const result = fc.oneof(
      fc.constant({ _tag: "Opened" as const }),
      fc.constant({ _tag: "AlreadySettled" as const }),
      fc.record({ _tag: fc.constant("Credited" as const), balance: nano }),
      fc.record(
        { _tag: fc.constant("Reserved" as const), source, amount: nano, within },
        { requiredKeys: ["_tag", "source", "amount"] }
      ),
      fc.record({ _tag: fc.constant("Settled" as const), usage_id: text, collected: nano, balance: nano })
    )
    const refusal = fc.oneof(
      fc.record({ _tag: fc.constant("InsufficientCredits" as const), available: nano }),
      fc.record({ _tag: fc.constant("AccountMissing" as const), account: text }),
      fc.record({ _tag: fc.constant("Conflict" as const), statement: count })
    )
    const outcome = fc.oneof(
      fc.record({ _tag: fc.constant("Committed" as const), results: fc.array(result, { maxLength: 3 }) }),
      fc.record({ _tag: fc.constant("Refused" as const), refusal }),
      fc.record({ _tag: fc.constant("Broken" as const), reason: text }),
      fc.record({ _tag: fc.constant("Unavailable" as const), reason: text, maybe_written: fc.boolean() })
    )
    fc.assert(
      fc.property(fc.array(fc.array(outcome), { maxLength: 3 }), (messages) => {
        const [sender, receiver] = [outcomeSender(), outcomeReceiver()]
        for (const outcomes of messages) expect(receiver.decode(sender.encode(outcomes))).toEqual(outcomes)
      }),
      { numRuns: 200 * Number(process.env.FC_RUNS ?? 1) }
    )
  })

  it.scopedLive("is refused alike on either side of it", () =>
    Effect.gen(function* () {
      const { writer } = yield* writerOn(yield* file)
      yield* writer.submit(of(open, credit(5n)))
      expect(yield* Effect.either(writer.submit(of(reserve("call_1", 6n))))).toEqual(
        Either.left(new InsufficientCredits({ available: 5n }))
      )
      expect(yield* Effect.either(writer.submit(of(open)))).toEqual(Either.left(new AccountExists({ account: "ada" })))
    })
  )
})
