/** Whose an Idempotency-Key is, and which streams are stored for one. */
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { describe, expect, it, layer } from "@effect/vitest"
import { Duration, Effect, Layer, TestClock } from "effect"
import { randomBytes } from "node:crypto"
import { Readable } from "node:stream"
import { text } from "node:stream/consumers"
import { json } from "../../../src/http/transport/Reply.ts"
import { capture, lost } from "../../../src/http/idempotency/Answers.ts"
import type { Refusal } from "../../../src/http/idempotency/Answers.ts"
import { Idempotency, lifetime } from "../../../src/http/idempotency/Idempotency.ts"
import { StoredAnswersConfig } from "../../../src/http/idempotency/StoredAnswers.ts"
import type { StoredAnswer } from "../../../src/http/idempotency/Keys.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import type { AccountId, ApplicationId, TenantId } from "../../../src/kernel/Ids.ts"
import { BooksUnavailable } from "../../../src/books/ledger/rules/Problems.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Sql from "../../../src/storage/sqlite/Sql.ts"
import * as TestDatabase from "../../support/database.ts"

const signIn: Caller = {
  account_id: "acc_ada" as AccountId,
  tenant_id: "ten_ada" as TenantId,
  application_id: null,
  credential: "user_token",
  team_first: false
}
const apiKey = (application: string): Caller => ({
  ...signIn,
  application_id: application as ApplicationId,
  credential: "api_key"
})
const oauth = (oauth_client: string): Caller => ({ ...signIn, team_first: true, oauth_client })

const world = Idempotency.layer.pipe(Layer.provideMerge(TestDatabase.writer), Layer.provideMerge(TestDatabase.sql))

/** Answers which of its calls it was that made the answer. */
const counted = Effect.gen(function* () {
  const { once } = yield* Idempotency
  let calls = 0
  return (caller: Caller, key: string) =>
    Effect.map(
      once(
        caller,
        key,
        () => "the request",
        () => Effect.sync(() => json(200, ++calls))
      ),
      ({ body, headers }) => `${String(body)}${"idempotency-replayed" in headers ? " again" : ""}`
    )
})

layer(world)("a key", (it) => {
  it.effect("is its application's, its OAuth client's, or of the person's own sign-ins", () =>
    Effect.gen(function* () {
      const call = yield* counted
      const key = "the-same-key-0123"
      const holders = [signIn, apiKey("app_one"), apiKey("app_two"), oauth("one"), oauth("two")]
      expect(yield* Effect.forEach(holders, (caller) => call(caller, key))).toEqual(["1", "2", "3", "4", "5"])
      const again = ["1 again", "2 again", "3 again", "4 again", "5 again"]
      expect(yield* Effect.forEach(holders, (caller) => call(caller, key))).toEqual(again)
      // A sign-in anew is another caller, and the same holder.
      expect(yield* call({ ...signIn }, key)).toBe("1 again")
    })
  )

  it.effect("of before keys had holders is answered for every credential of its account", () =>
    Effect.gen(function* () {
      const call = yield* counted
      const sql = yield* SqlClient
      const [answered, abandoned] = ["an-answered-key-01", "an-abandoned-key-1"]
      expect(yield* call(signIn, answered)).toBe("1")
      yield* sql`UPDATE tollgate_idempotency_keys SET holder = 'any' WHERE key = ${answered}`
      expect(yield* call(apiKey("app_one"), answered)).toBe("1 again")
      yield* sql`INSERT INTO tollgate_idempotency_keys (tenant_id, account_id, holder, key, request_hash, run, created_at)
        VALUES ('ten_ada', 'acc_ada', 'any', ${abandoned}, 'another request', 'req_x', 1)`
      // It is one holder's from then on.
      expect(yield* call(apiKey("app_one"), abandoned)).toBe("2")
      expect(yield* call(apiKey("app_two"), abandoned)).toBe("3")
      expect(yield* call(apiKey("app_one"), abandoned)).toBe("2 again")
    })
  )

  it.effect(
    "that another process took over, since this one was taken to have ended, makes no call here and stays there",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { submit } = yield* Writer
        const { once } = yield* Idempotency
        const key = "a-key-taken-over"
        const tied = once(
          signIn,
          key,
          () => "the request",
          (beside) =>
            Effect.gen(function* () {
              // This process wakes when the other one has done so.
              yield* Effect.orDie(sql`UPDATE tollgate_idempotency_keys SET run = 'run_other' WHERE key = ${key}`)
              yield* submit({ postings: [], statements: beside!("call_here") })
              return json(200, "made twice")
            }).pipe(Effect.catchTag("Conflict", () => new BooksUnavailable()))
        )
        expect(yield* Effect.flip(tied)).toMatchObject({ _tag: "BooksUnavailable" })
        expect(yield* sql`SELECT run, call FROM tollgate_idempotency_keys WHERE key = ${key}`).toEqual([
          { run: "run_other", call: null }
        ])
      })
  )

  it.effect("is forgotten after its lifetime by a turn of the job", () =>
    Effect.gen(function* () {
      const call = yield* counted
      const { jobs } = yield* Idempotency
      const turn = Effect.forEach(jobs, (job) => job.turn)
      const key = "a-key-to-be-forgotten"
      expect(yield* call(signIn, key)).toBe("1")
      yield* TestClock.adjust(lifetime)
      yield* turn
      expect(yield* call(signIn, key)).toBe("1 again")
      yield* TestClock.adjust(Duration.millis(1))
      expect(yield* turn).toEqual([Duration.hours(1)])
      expect(yield* call(signIn, key)).toBe("2")
    })
  )
})

const roomy = { answers_per_account: 8, bytes_per_account: 16 * 1024 * 1024 }
const small = Idempotency.layer.pipe(
  Layer.provide(Layer.succeed(StoredAnswersConfig, roomy)),
  Layer.provideMerge(TestDatabase.writer),
  Layer.provideMerge(TestDatabase.sql)
)

/** How much of the answers of the account is stored. */
const keptOf = (account: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ keys: number; answers: number; bytes: number }>`SELECT count(*) AS keys, count(body) AS answers,
        CAST(COALESCE(sum(length(body)), 0) AS BIGINT) AS bytes FROM tollgate_idempotency_keys WHERE account_id = ${account}`,
      ([row]) => row!
    )
  )

layer(small)("the stored answers of an account", (it) => {
  const key = (n: number) => `a-key-with-number-${n}`
  const other: Caller = { ...signIn, account_id: "acc_grace" as AccountId }

  it.effect("have a number: the oldest give way, their keys are answered so, and nothing is called twice", () =>
    Effect.gen(function* () {
      const call = yield* counted
      expect(yield* call(other, key(0))).toBe("1")
      for (let n = 1; n <= 30; n++) {
        expect(yield* call(signIn, key(n))).toBe(String(n + 1))
        yield* TestClock.adjust(Duration.seconds(1))
        expect((yield* keptOf("acc_ada")).answers).toBeLessThanOrEqual(8)
      }
      expect((yield* keptOf("acc_ada")).keys).toBe(30)
      expect(yield* call(signIn, key(30))).toBe("31 again")
      const gone = {
        error:
          "the call with this Idempotency-Key was made once, but its response was not stored: see its usage record",
        code: "idempotency_answer_lost"
      }
      for (let i = 0; i < 2; i++) expect(JSON.parse(yield* call(signIn, key(1)))).toEqual(gone)
      // What one account stores takes no room of another's.
      expect(yield* call(other, key(0))).toBe("1 again")
    })
  )

  it.effect("have an amount, compressed", () =>
    Effect.gen(function* () {
      const { once } = yield* Idempotency
      const caller: Caller = { ...signIn, account_id: "acc_joan" as AccountId }
      const answers = [
        ...Array.from({ length: 5 }, () => randomBytes(7 * 1024 * 1024)),
        Buffer.from("the same words, ".repeat(400_000))
      ]
      const send = (n: number) =>
        once(
          caller,
          key(n),
          () => "the request",
          () => Effect.succeed({ status: 200, headers: { "content-type": "text/plain" }, body: answers[n]! })
        )
      for (const n of answers.keys()) {
        yield* send(n)
        yield* TestClock.adjust(Duration.seconds(1))
        expect((yield* keptOf("acc_joan")).bytes).toBeLessThanOrEqual(roomy.bytes_per_account)
      }
      expect((yield* send(0)).status).toBe(409)
      for (const n of [4, 5]) {
        const { body, headers, status } = yield* send(n)
        expect([status, headers]).toEqual([200, { "content-type": "text/plain", "idempotency-replayed": "true" }])
        expect(Buffer.compare(body as Buffer, answers[n]!)).toBe(0)
      }
      // The last one is stored in a hundredth of its length.
      expect((yield* keptOf("acc_joan")).bytes).toBeLessThan(2 * 7.1 * 1024 * 1024)
    })
  )

  it.effect("that another process stored count too, and those of an earlier version, which are not compressed", () =>
    Effect.gen(function* () {
      const call = yield* counted
      const sql = yield* SqlClient
      const caller: Caller = { ...signIn, account_id: "acc_anna" as AccountId }
      for (let n = 1; n <= 20; n++)
        yield* sql`INSERT INTO tollgate_idempotency_keys VALUES ('ten_ada', 'acc_anna', 'sign_in', ${key(n)}, 'the request',
          'run_other', ${`call_${n}`}, 200, '{}', ${Buffer.from(`old ${n}`)}, ${n}, ${n})`
      expect(yield* call(caller, key(20))).toBe("old 20 again")
      yield* TestClock.adjust(Duration.minutes(1))
      expect(yield* call(caller, key(21))).toBe("1")
      expect((yield* keptOf("acc_anna")).answers).toBe(7)
      expect(yield* call(caller, key(20))).toBe("old 20 again")
      // Of a call that the books do not know there is no usage record to name.
      const { code, details } = JSON.parse(yield* call(caller, key(1))) as { code: string; details?: object }
      expect([code, details]).toEqual(["idempotency_answer_lost", undefined])
    })
  )
})

it.effect("a database of an earlier version keeps its keys, for every credential of their account", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* Sql.migrations["0008_idempotency"]
    yield* sql`INSERT INTO tollgate_idempotency_keys
      VALUES ('ten_ada', 'acc_ada', 'a-key', 'hash', 'run_1', 'call_1', 200, '{}', x'6f6e65', 5, 6)`
    yield* Sql.migrations["0020_holders"]
    expect(yield* sql`SELECT * FROM tollgate_idempotency_keys`).toEqual([
      {
        tenant_id: "ten_ada",
        account_id: "acc_ada",
        holder: "any",
        key: "a-key",
        request_hash: "hash",
        run: "run_1",
        call: "call_1",
        status: 200,
        headers: "{}",
        body: Buffer.from("one"),
        created_at: 5,
        answered_at: 6
      }
    ])
  }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" })))
)

describe("a stream", () => {
  const refusal: Refusal = ({ body, status }) => ({ status, headers: {}, body: JSON.stringify(body) })

  /** What was stored of this body, and what its client got: the chunks as they came, `left` after the first of them. */
  const stored = (body: Readable, read: (body: Readable) => Promise<unknown>) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const answers: Array<StoredAnswer> = []
        const over: Array<Promise<void>> = []
        const reply = yield* capture(
          { status: 200, headers: {}, body },
          refusal,
          (answer) =>
            Effect.as(
              Effect.sync(() => answers.push(answer)),
              undefined
            ),
          (effect) => over.push(Effect.runPromise(effect))
        )
        const got = yield* Effect.promise(() => read(reply.body as Readable).catch(({ message }: Error) => message))
        yield* Effect.promise(() => Promise.all(over))
        return { got, stored: answers.map(({ body, status }) => [status, String(body)]) }
      })
    )
  const { body, status } = lost(refusal)
  const conflict = [status, body]

  it("is stored once it has passed", async () => {
    expect(await stored(Readable.from([Buffer.from("one "), Buffer.from("two")]), text)).toEqual({
      got: "one two",
      stored: [[200, "one two"]]
    })
  })

  it("that breaks off, or is longer than may be stored, is not, and is cut off for its client as for everybody", async () => {
    const broken = Readable.from(
      (async function* () {
        yield Buffer.from("one ")
        await Promise.resolve()
        throw new Error("the upstream broke off")
      })()
    )
    expect(await stored(broken, text)).toEqual({ got: "the response ended early", stored: [conflict] })
    const mebibyte = Buffer.alloc(1024 * 1024, "x")
    const long = await stored(Readable.from(Array.from({ length: 9 }, () => mebibyte)), text)
    expect([(long.got as string).length, long.stored]).toEqual([9 * 1024 * 1024, [conflict]])
  })

  it("whose client leaves is not, and is left too", async () => {
    const source = new Readable({ read() {} })
    source.push(Buffer.from("one "))
    const left = await stored(source, async (body) => {
      for await (const chunk of body) return String(chunk)
    })
    expect(left).toEqual({ got: "one ", stored: [conflict] })
    expect(source.destroyed).toBe(true)
  })
})
