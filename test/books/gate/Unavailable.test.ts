/**
 * The gate while the books cannot be written: another process holds the lock on the file. Nobody is admitted; what was measured is
 * written as it was as soon as it can be, whoever still waits for it.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import {
  Context,
  Duration,
  Effect,
  Either,
  Exit,
  Fiber,
  HashMap,
  Layer,
  Logger,
  Option,
  Scope,
  TestClock
} from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { drainLimit, failure, Gate, OnLateSettlement, SettlementPatience } from "../../../src/books/gate/Gate.ts"
import type { Admission, Claim, Measured, Metered } from "../../../src/books/gate/Gate.ts"
import { Payers } from "../../../src/books/gate/Payers.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import { Idempotency } from "../../../src/http/idempotency/Idempotency.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { verify } from "../../../src/app/Checks.ts"
import { BooksUnavailable } from "../../../src/books/ledger/rules/Problems.ts"
import type { Statement, Transaction } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import type { Submitted } from "../../../src/books/ledger/write/Submitting.ts"
import * as Sql from "../../../src/storage/sqlite/Sql.ts"
import { UpstreamFailed } from "../../../src/upstream/wire/Problems.ts"

const caller: Caller = {
  account_id: "acc_ada" as AccountId,
  tenant_id: "ten_ada" as TenantId,
  application_id: null,
  credential: "user_token",
  team_first: false
}

const claim: Claim = {
  caller,
  usage_type: "inference",
  endpoint: "chat/completions",
  model: "m",
  provider: "p",
  least: 50n,
  most: 50n
}

const measured = (cost: bigint): Measured => ({ ...failure(""), cost, success: true, error_type: null })

/** Books in a file with 100 nano-USD in them, a gate, and the lock of another process. */
const world = <A, E>(
  patience: Duration.DurationInput,
  story: (lock: {
    readonly take: Effect.Effect<void>
    readonly give: Effect.Effect<void>
  }) => Effect.Effect<A, E, World>,
  writer: (file: string) => Layer.Layer<Writer, never, SqlClient> = Writer.layerThread
) =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "tollgate-gate-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const file = join(folder, "books.db")
    const layer = Gate.layer.pipe(
      Layer.provide(Payers.layerOwnOnly),
      Layer.provideMerge(writer(file)),
      Layer.provideMerge(Sql.layer(file)),
      Layer.provide(Layer.succeed(SettlementPatience, Duration.decode(patience)))
    )
    return yield* Effect.gen(function* () {
      yield* (yield* Writer).submit({
        postings: [
          { _tag: "Open", account: "bil_ada", tenant: "ten_ada" },
          { _tag: "Credit", account: "bil_ada", amount: 100n, source: "purchase", reference: "r", description: "d" }
        ],
        statements: []
      })
      const other = new Sqlite(file)
      const ran = yield* Effect.ensuring(
        story({
          take: Effect.sync(() => void other.exec("BEGIN IMMEDIATE")),
          give: Effect.sync(() => void other.exec("ROLLBACK"))
        }),
        Effect.sync(() => other.close())
      )
      expect(yield* verify).toEqual([])
      return ran
    }).pipe(Effect.provide(layer))
  }).pipe(Effect.scoped, Effect.provide(Logger.remove(Logger.defaultLogger)))

type World = Gate | Writer | SqlClient

/** How the books stand, once nothing is unsettled. */
const books = Effect.gen(function* () {
  const sql = yield* SqlClient
  const gate = yield* Gate
  while ((yield* gate.unsettled) > 0) yield* Effect.sleep(20)
  const [account] = yield* sql<{ balance: number; reserved: number }>`
    SELECT giftable + granted AS balance, reserved FROM tollgate_ledger_amounts`
  const records = yield* sql<{ cost: number; success: number; error_type: string | null }>`
    SELECT cost, success, error_type FROM tollgate_usage_records ORDER BY seq`
  return { ...account!, records: records.map((record) => ({ ...record })) }
})

const charged = (cost: number) => ({
  balance: 100 - cost,
  reserved: 0,
  records: [{ cost, success: 1, error_type: null }]
})

const call = <A>(make: (admission: Admission) => Effect.Effect<Metered<A>, BooksUnavailable | UpstreamFailed>) =>
  Effect.flatMap(Gate, (gate) => gate.meter(claim, make))

it.live("a gate is not idle while a call waits for its reservation", () =>
  world("10 seconds", ({ give, take }) =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      yield* take
      const calling = yield* Effect.fork(
        call((admission) =>
          Effect.suspend(() => {
            seen.push("admitted")
            return admission.answer(measured(30n), () => "answer")
          })
        )
      )
      // The call has asked for its reservation.
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      const { idle } = yield* Gate
      const waiting = yield* Effect.fork(
        Effect.zipRight(
          idle,
          Effect.sync(() => seen.push("idle"))
        )
      )
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      yield* give
      yield* Fiber.join(calling)
      yield* Fiber.join(waiting)
      expect(seen).toEqual(["admitted", "idle"])
      expect(yield* books).toEqual(charged(30))
    })
  )
)

describe("a settlement that cannot be written", () => {
  it.live("is waited for, and the answer goes out when it is written", () =>
    world("10 seconds", ({ give, take }) =>
      Effect.gen(function* () {
        const answering = yield* Effect.fork(
          call((admission) =>
            Effect.zipRight(
              take,
              admission.answer(measured(30n), ({ balance, charged }) => `${charged} of ${balance}`)
            )
          )
        )
        yield* Effect.sleep("1300 millis")
        expect(yield* Fiber.poll(answering)).toMatchObject({ _tag: "None" })
        yield* give
        expect(yield* Fiber.join(answering)).toBe("30 of 70")
        expect(yield* books).toEqual(charged(30))
      })
    )
  )

  it.live("stays as it was measured when its answer could not wait", () =>
    world("100 millis", ({ give, take }) =>
      Effect.gen(function* () {
        const answer = yield* Effect.either(
          call((admission) =>
            Effect.zipRight(
              take,
              admission.answer(measured(30n), () => "answer")
            )
          )
        )
        expect(answer).toMatchObject(Either.left({ _tag: "BooksUnavailable", status: 503 }))
        yield* give
        expect(yield* books).toEqual(charged(30))
      })
    )
  )

  it.live("of a call that goes on is what its rest measured, not a failure of the rest", () =>
    world("100 millis", ({ give, take }) =>
      Effect.gen(function* () {
        const told: Array<string> = []
        yield* call((admission) =>
          Effect.zipRight(
            take,
            admission.goOn(
              "answer",
              Effect.matchCause(admission.settle(measured(30n)), {
                onFailure: () => void told.push("cut"),
                onSuccess: () => void told.push("finished")
              })
            )
          )
        )
        while (told.length === 0) yield* Effect.sleep(20)
        yield* give
        expect(yield* books).toEqual(charged(30))
        expect(told).toEqual(["cut"])
      })
    )
  )

  it.live("is not replaced by a failure, whoever ends the call again", () =>
    world("100 millis", ({ give, take }) =>
      Effect.gen(function* () {
        const answer = yield* Effect.either(
          call((admission) =>
            Effect.gen(function* () {
              yield* take
              yield* Effect.ignore(admission.settle(measured(30n)))
              yield* Effect.ignore(admission.settle(measured(40n)))
              return yield* new UpstreamFailed()
            })
          )
        )
        expect(answer).toMatchObject(Either.left({ _tag: "UpstreamFailed" }))
        yield* give
        expect(yield* books).toEqual(charged(30))
      })
    )
  )

  it.live("of a call that failed is its failure, and the caller is told that", () =>
    world("100 millis", ({ give, take }) =>
      Effect.gen(function* () {
        const answer = yield* Effect.either(call(() => Effect.zipRight(take, new UpstreamFailed())))
        expect(answer).toMatchObject(Either.left({ _tag: "UpstreamFailed" }))
        yield* give
        expect(yield* books).toEqual({
          balance: 100,
          reserved: 0,
          records: [{ cost: 0, success: 0, error_type: "upstream_error" }]
        })
      })
    )
  )

  it.live("is still waited for by who said that it may be late", () =>
    world("100 millis", ({ give, take }) =>
      Effect.gen(function* () {
        const late: Array<"late"> = []
        const answering = yield* Effect.fork(
          Effect.provideService(
            call((admission) =>
              Effect.zipRight(
                take,
                admission.answer(measured(30n), () => "answer")
              )
            ),
            OnLateSettlement,
            () => void late.push("late")
          )
        )
        while (late.length === 0) yield* Effect.sleep(20)
        yield* give
        expect(yield* Fiber.join(answering)).toBe("answer")
        expect(late).toHaveLength(1)
        expect(yield* books).toEqual(charged(30))
      })
    )
  )

  it.live("keeps what stands or falls with it, and is what a held call is resumed as", () =>
    world("100 millis", ({ give, take }) =>
      Effect.gen(function* () {
        const gate = yield* Gate
        const writer = yield* Writer
        const run = (...statements: ReadonlyArray<Statement>) => writer.submit({ postings: [], statements })
        yield* run({ text: "CREATE TABLE beside (said TEXT PRIMARY KEY) STRICT", params: [] })
        const said = (word: string): Statement => ({ text: "INSERT INTO beside (said) VALUES (?)", params: [word] })
        let id = ""
        const held = yield* Effect.either(
          gate.meter({ ...claim, held: true }, (admission) => {
            id = admission.call
            return Effect.zipRight(take, admission.hold("answer", [said("held")]))
          })
        )
        expect(held).toMatchObject(Either.left({ _tag: "BooksUnavailable" }))
        yield* give
        while ((yield* gate.unsettled) > 0) yield* Effect.sleep(20)
        // It is open, and what it was held by is there.
        yield* run({ text: "SELECT said FROM beside WHERE said = 'held'", params: [], rows: 1 })
        yield* take
        const ended = (yield* gate.resume(id))!
        expect(yield* Effect.either(ended.settleBeside(measured(30n), [said("ended")]))).toMatchObject(
          Either.left({ _tag: "BooksUnavailable" })
        )
        const again = (yield* gate.resume(id))!
        yield* Effect.ignore(again.settleBeside(failure("media_failed"), [said("failed")]))
        yield* give
        expect(yield* books).toEqual(charged(30))
        expect(yield* gate.resume(id)).toBeUndefined()
        yield* run({ text: "SELECT said FROM beside WHERE said = 'ended'", params: [], rows: 1 })
      })
    )
  )
})

describe("an admission while the books cannot be written", () => {
  it.live("is refused, and nothing is called", () =>
    world("10 seconds", ({ give, take }) =>
      Effect.gen(function* () {
        yield* take
        for (let i = 0; i < 20; i++) {
          const refused = yield* Effect.either(call(() => Effect.dieMessage("was called")))
          expect(refused).toMatchObject(Either.left({ _tag: "BooksUnavailable", maybe_written: false }))
        }
        yield* give
        yield* call((admission) => admission.answer(measured(30n), () => "answer"))
        expect(yield* books).toEqual(charged(30))
      })
    )
  )

  describe("that is written after all", () => {
    /** The real writer, but for reservations: the answer to the first of them never comes, and it is written later. */
    const slow = (file: string) =>
      Layer.map(Writer.layerThread(file), (context) => {
        const writer = context.unsafeMap.get(Writer.key) as typeof Writer.Service
        let first = true
        const submit: typeof writer.submit = (transaction) =>
          first && transaction.postings[0]?._tag === "Reserve"
            ? Effect.suspend(() => {
                first = false
                return Effect.forkDaemon(writer.submit(transaction)).pipe(
                  Effect.zipRight(Effect.yieldNow()),
                  Effect.zipRight(new BooksUnavailable({ maybe_written: true }))
                )
              })
            : writer.submit(transaction)
        context.unsafeMap.set(Writer.key, { submit })
        return context
      })
    const released = { cost: 0, success: 0, error_type: "books_unavailable" }

    it.live("is ended as a failure", () =>
      world(
        "10 seconds",
        () =>
          Effect.gen(function* () {
            const refused = yield* Effect.either(call(() => Effect.dieMessage("was called")))
            expect(refused).toMatchObject(Either.left({ _tag: "BooksUnavailable", maybe_written: true }))
            while ((yield* books).records.length === 0) yield* Effect.sleep(20)
            expect(yield* books).toEqual({ balance: 100, reserved: 0, records: [released] })
          }),
        slow
      )
    )

    it.live("gives its Idempotency-Key back", () =>
      world(
        "10 seconds",
        () =>
          Effect.gen(function* () {
            const { once } = yield* Effect.map(Layer.build(Idempotency.layer), Context.get(Idempotency))
            const gate = yield* Gate
            const answer = { status: 200, headers: {}, body: "answer" }
            const ask = Effect.either(
              once(
                caller,
                "key-0123456789abcdef",
                () => "request",
                (beside) =>
                  gate.meter({ ...claim, beside }, (admission) => admission.answer(measured(30n), () => answer))
              )
            )
            expect(yield* ask).toMatchObject(Either.left({ _tag: "BooksUnavailable" }))
            while ((yield* books).records.length === 0) yield* Effect.sleep(20)
            expect(yield* ask).toMatchObject(Either.right({ status: 200, body: "answer" }))
            expect(yield* ask).toMatchObject(Either.right({ headers: { "idempotency-replayed": "true" } }))
            expect(yield* books).toEqual({ ...charged(30), records: [released, ...charged(30).records] })
          }).pipe(Effect.scoped),
        slow
      )
    )
  })
})

describe("the end of the gate", () => {
  it.effect("does not wait for ever for books that cannot be written, and tells what is not in them", () => {
    const told: Array<unknown> = []
    const listener = Logger.make(({ annotations, logLevel }) => {
      if (logLevel._tag === "Fatal") told.push(HashMap.get(annotations, "cost_usd").pipe(Option.getOrNull))
    })
    const submit = ({ postings: [posting] }: Transaction): Submitted =>
      posting?._tag === "Reserve"
        ? Effect.succeed([{ _tag: "Reserved", source: posting.sources[0]!, amount: posting.most }])
        : new BooksUnavailable()
    const closed: Writer["Type"] = { watch: () => Effect.void, submit: submit as Writer["Type"]["submit"] }
    const layer = Gate.layer.pipe(
      Layer.provide(Payers.layerOwnOnly),
      Layer.provide(Layer.succeed(Writer, closed)),
      Layer.provide(Sql.layerMemory),
      Layer.provide(Layer.succeed(SettlementPatience, Duration.zero)),
      Layer.provide(Logger.replace(Logger.defaultLogger, listener))
    )
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { meter } = Context.get(yield* Layer.buildWithScope(layer, scope), Gate)
      let later: Admission | undefined
      yield* Effect.forkDaemon(
        meter(claim, (admission) => {
          later = admission
          return Effect.never
        })
      )
      const answer = yield* Effect.either(meter(claim, (admission) => admission.answer(measured(30n), () => "answer")))
      expect(answer).toMatchObject(Either.left({ _tag: "BooksUnavailable" }))
      const ending = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* TestClock.adjust(drainLimit)
      expect(yield* Fiber.poll(ending)).toMatchObject({ _tag: "Some" })
      expect(told).toEqual(["0.00000003"])
      // Its provider answered when nobody was there any more to write it.
      expect(yield* Effect.either(later!.settle(measured(40n)))).toMatchObject(
        Either.left({ _tag: "BooksUnavailable" })
      )
      expect(told).toEqual(["0.00000003", "0.00000004"])
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, listener)))
  })
})
