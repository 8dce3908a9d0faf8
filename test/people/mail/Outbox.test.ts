/** Letters from their transaction to a real mail server, and every failure on the way. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Logger } from "effect"
import type { Scope } from "effect"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import type { AccountId } from "../../../src/kernel/Ids.ts"
import type { BooksUnavailable } from "../../../src/books/ledger/rules/Problems.ts"
import type { Refusal, Statement } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { plainName } from "../../../src/people/mail/Letter.ts"
import { LetterLimits } from "../../../src/people/mail/Settings.ts"
import { Outbox } from "../../../src/people/mail/Outbox.ts"
import type { Letter } from "../../../src/people/mail/Outbox.ts"
import * as Calls from "../../../src/sandbox/Calls.ts"
import * as Bills from "../../../src/sandbox/Bills.ts"
import * as Faults from "../../../src/sandbox/Faults.ts"
import type { Fault } from "../../../src/sandbox/Faults.ts"
import * as SandboxMail from "../../../src/sandbox/Mail.ts"
import type { Whole } from "../../../src/sandbox/Outside.ts"
import * as SteeredClock from "../../../src/sandbox/SteeredClock.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import type { MailContract } from "../../../src/upstream/mail/Mail.ts"
import * as TestDatabase from "../../support/database.ts"

interface Town {
  readonly outbox: Context.Tag.Service<typeof Outbox>
  readonly submit: (...statements: ReadonlyArray<Statement>) => Effect.Effect<unknown, Refusal | BooksUnavailable>
  readonly post: (letter: Letter) => Effect.Effect<void>
  readonly fail: (fault: Partial<Fault>) => void
  readonly pass: (millis: number) => Effect.Effect<number>
  readonly caught: () => ReadonlyArray<{ readonly to: string; readonly subject: string; readonly text: string }>
  readonly tried: () => number
  readonly sql: SqlClient
  readonly port: MailContract
  /** Waits until a letter has the status. Only the test's timeout ends it. */
  readonly until: (key: string, status: string) => Effect.Effect<void>
}

const books = Layer.provideMerge(TestDatabase.writer, TestDatabase.sql)
const secret = DeploymentSecret.layer(new Uint8Array(32).fill(7))

/** An outbox and a mail server with one clock. */
const inTown = <A>(
  story: (town: Town) => Effect.Effect<A, unknown, Scope.Scope>,
  before: (sql: SqlClient) => Effect.Effect<unknown, unknown> = () => Effect.void
) =>
  Effect.gen(function* () {
    const clock = yield* SteeredClock.make(undefined)
    return yield* Effect.gen(function* () {
      const calls = Calls.make()
      const faults = Faults.make()
      const server = yield* SandboxMail.make({
        origin: "",
        data_dir: undefined,
        clock,
        calls,
        faults,
        bills: Bills.make()
      })
      const { from, host, port } = server.configuration.mail as { from: string; host: string; port: number }
      const { sql, writer } = yield* Effect.map(Layer.build(books), (context) => ({
        sql: Context.get(context, SqlClient),
        writer: Context.get(context, Writer),
        context
      }))
      yield* before(sql)
      const built = yield* Layer.build(
        Outbox.layerJobs.pipe(
          Layer.provideMerge(Outbox.layer),
          Layer.provide(secret),
          Layer.provideMerge(Mail.layerSmtp({ host, port, from, secure: false })),
          Layer.provide(Layer.succeed(LetterLimits, { per_hour: 4, per_day_to_one_address: 2 })),
          Layer.provide(Layer.mergeAll(Layer.succeed(SqlClient, sql), Layer.succeed(Writer, writer)))
        )
      )
      const outbox = Context.get(built, Outbox)
      const list = server.levers!.find(({ method }) => method === "GET")!
      return yield* story({
        outbox,
        submit: (...statements) => writer.submit({ postings: [], statements }),
        post: (letter) =>
          Effect.gen(function* () {
            yield* writer.submit({ postings: [], statements: [yield* outbox.letter(letter)] }).pipe(Effect.orDie)
            yield* outbox.wake
          }),
        fail: (fault) => faults.add({ service: "mail", times: 1, ...fault }),
        pass: clock.advance,
        caught: () => JSON.parse((list.answer({} as never) as Whole).body as string),
        tried: () => JSON.parse(calls.list("mail", 1_000)).length,
        sql,
        port: Context.get(built, Mail)!,
        until: (key, status) => {
          const look: Effect.Effect<void> = Effect.flatMap(
            sql<{ status: string }>`SELECT status FROM tollgate_mail_outbox WHERE key = ${key}`.pipe(Effect.orDie),
            ([row]) => (row?.status === status ? Effect.void : Effect.andThen(realPause, look))
          )
          return look
        }
      })
    }).pipe(Effect.withClock(clock.clock))
  }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)))

const realPause = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))

/** Waits until the letter has had this number of attempts and waits for the next. */
const attempts = (sql: SqlClient, count: number): Effect.Effect<void> =>
  Effect.flatMap(
    sql`SELECT 1 FROM tollgate_mail_outbox WHERE attempts = ${count} AND status = 'waiting'`.pipe(Effect.orDie),
    (rows) => (rows.length === 1 ? Effect.void : Effect.andThen(realPause, attempts(sql, count)))
  )

const toAda: Letter = {
  key: "transfer/1/1",
  to: "ada@example.com",
  subject: "Credit for you",
  text: "https://x/tok_secret"
}

describe("a letter", () => {
  it.scopedLive("is sent as it was written", () =>
    inTown(({ caught, post, until }) =>
      Effect.gen(function* () {
        yield* post({ ...toAda, subject: "Grüße — 1 €", text: "Line one\nLine two ✓\n.\nend" })
        yield* until(toAda.key, "sent")
        expect(caught()).toEqual([
          { to: "ada@example.com", subject: "Grüße — 1 €", text: "Line one\nLine two ✓\n.\nend" }
        ])
      })
    )
  )

  it.scopedLive("is sent after a late commit that woke no loop", () =>
    inTown(({ outbox, pass, post, submit, until }) =>
      Effect.gen(function* () {
        // The loop has had its turn, and waits.
        yield* post({ ...toAda, key: "transfer/0/1" })
        yield* until("transfer/0/1", "sent")
        yield* submit(yield* outbox.letter(toAda))
        yield* pass(60_000)
        yield* until(toAda.key, "sent")
      })
    )
  )

  it.scopedLive("with a used key is ignored", () =>
    inTown(({ caught, post, until }) =>
      Effect.gen(function* () {
        yield* post(toAda)
        yield* post({ ...toAda, text: "another" })
        yield* until(toAda.key, "sent")
        yield* post({ ...toAda, text: "a third" })
        yield* post({ ...toAda, key: "transfer/2/1", text: "of another key" })
        yield* until("transfer/2/1", "sent")
        expect(caught().map(({ text }) => text)).toEqual([toAda.text, "of another key"])
      })
    )
  )

  it.scopedLive("that several nodes find due is sent by one of them", () =>
    inTown(({ caught, outbox, submit, tried }) =>
      Effect.gen(function* () {
        const keys = ["1", "2", "3", "4"]
        for (const key of keys) yield* submit(yield* outbox.letter({ ...toAda, key, to: `ada${key}@example.com` }))
        const [job] = outbox.jobs
        yield* Effect.all([job!.turn, job!.turn, job!.turn], { concurrency: "unbounded" })
        yield* job!.turn
        expect([tried(), caught().length]).toEqual([keys.length, keys.length])
      })
    )
  )

  it.scopedLive("is stored sealed, and emptied once it has left", () =>
    inTown(({ fail, post, sql, until, pass }) =>
      Effect.gen(function* () {
        fail({ status: 451 })
        yield* post(toAda)
        const rows = () => Effect.map(sql`SELECT * FROM tollgate_mail_outbox`, (all) => JSON.stringify(all))
        expect(yield* rows()).not.toContain("tok_secret")
        yield* attempts(sql, 1)
        yield* pass(60_000)
        yield* until(toAda.key, "sent")
        expect(yield* sql`SELECT sealed FROM tollgate_mail_outbox`).toEqual([{ sealed: "" }])
      })
    )
  )

  it.scopedLive("is retried with growing pauses if the server says not now", () =>
    inTown(({ caught, fail, pass, post, sql, tried, until }) =>
      Effect.gen(function* () {
        fail({ status: 421, times: 2 })
        yield* post(toAda)
        yield* attempts(sql, 1)
        expect(tried()).toBe(1)
        yield* pass(30_000)
        yield* attempts(sql, 2)
        yield* pass(30_000)
        yield* attempts(sql, 2)
        expect(tried()).toBe(2)
        yield* pass(90_000)
        yield* until(toAda.key, "sent")
        expect(caught().length).toBe(1)
      })
    )
  )

  it.scopedLive("that is refused for good is not retried", () =>
    inTown(({ caught, fail, pass, post, tried, until }) =>
      Effect.gen(function* () {
        fail({ status: 550 })
        yield* post(toAda)
        yield* until(toAda.key, "failed")
        yield* pass(86_400_000)
        yield* post({ ...toAda, key: "other" })
        yield* until("other", "sent")
        expect([tried(), caught().length]).toEqual([2, 1])
      })
    )
  )

  it.scopedLive("whose answer was lost is not sent again", () =>
    inTown(({ fail, pass, post, tried, until }) =>
      Effect.gen(function* () {
        fail({ drop: true })
        yield* post(toAda)
        yield* until(toAda.key, "unknown")
        yield* pass(86_400_000)
        yield* post({ ...toAda, key: "other" })
        yield* until("other", "sent")
        expect(tried()).toBe(2)
      })
    )
  )

  it.scopedLive("that was being sent when the process ended is not sent again; a waiting letter is sent", () =>
    inTown(
      ({ caught, tried, until }) =>
        Effect.gen(function* () {
          yield* until("cut", "unknown")
          yield* until("old", "failed")
          expect([tried(), caught()]).toEqual([0, []])
        }),
      (sql) =>
        sql`INSERT INTO tollgate_mail_outbox ${sql.insert([
          { key: "cut", recipient: "a@b.c", sealed: "x", status: "sending", attempts: 1, due_at: 0, created_at: 0 },
          { key: "old", recipient: "a@b.c", sealed: "x", status: "waiting", attempts: 9, due_at: 0, created_at: 0 }
        ])}`
    )
  )
})

describe("the loop", () => {
  const waiting = (key: string, sealed: string) => ({
    key,
    recipient: "a@b.c",
    sealed,
    status: "waiting",
    attempts: 0,
    due_at: 0,
    created_at: Date.now()
  })

  it.scopedLive("fails letters that cannot be read, and sends the others", () =>
    inTown(
      ({ caught, post, sql, until }) =>
        Effect.gen(function* () {
          for (const key of ["cut", "foreign", "no-letter"]) yield* until(key, "failed")
          const rows = yield* sql<{ last_error: string }>`SELECT last_error FROM tollgate_mail_outbox WHERE key = 'cut'`
          expect(rows[0]!.last_error).toContain("the email cannot be read")
          yield* post(toAda)
          yield* until(toAda.key, "sent")
          expect(caught().map(({ to }) => to)).toEqual([toAda.to])
        }),
      (sql) =>
        Effect.gen(function* () {
          const other = yield* Effect.provide(
            DeploymentSecret.DeploymentSecret,
            DeploymentSecret.layer(new Uint8Array(32).fill(8))
          )
          const own = yield* Effect.provide(DeploymentSecret.DeploymentSecret, secret)
          yield* sql`INSERT INTO tollgate_mail_outbox ${sql.insert([
            waiting("cut", "x"),
            waiting("foreign", yield* other.seal("{}")),
            waiting("no-letter", yield* own.seal("not JSON"))
          ])}`
        })
    )
  )

  it.scopedLive("survives a letter whose row cannot be written, and retries it", () =>
    inTown(({ caught, pass, post, sql, until }) =>
      Effect.gen(function* () {
        yield* Effect.provideService(
          TestDatabase.trigger("stuck", {
            on: "BEFORE UPDATE ON tollgate_mail_outbox",
            when: "new.key = 'stuck'",
            body: TestDatabase.isPostgres ? "RAISE EXCEPTION 'not this one';" : "SELECT RAISE(ABORT, 'not this one');"
          }),
          SqlClient,
          sql
        )
        yield* post({ ...toAda, key: "stuck" })
        yield* post({ ...toAda, key: "other" })
        yield* until("other", "sent")
        expect(caught().length).toBe(1)
        yield* sql.unsafe(`DROP TRIGGER stuck${TestDatabase.isPostgres ? " ON tollgate_mail_outbox" : ""}`)
        const look: Effect.Effect<void> = Effect.gen(function* () {
          yield* pass(10_000)
          yield* realPause
          const [row] = yield* Effect.orDie(
            sql<{ status: string }>`SELECT status FROM tollgate_mail_outbox WHERE key = 'stuck'`
          )
          if (row?.status !== "sent") yield* look
        })
        yield* look
        expect(caught().length).toBe(2)
      })
    )
  )
})

describe("rows of letters", () => {
  const ended = (key: string, status: string, created_at: number) => ({
    key,
    recipient: "a@b.c",
    sealed: "",
    status,
    attempts: 1,
    due_at: 0,
    created_at
  })
  const keys = (sql: SqlClient) =>
    Effect.map(sql<{ key: string }>`SELECT key FROM tollgate_mail_outbox ORDER BY key`, (rows) =>
      rows.map(({ key }) => key)
    )
  const days = 86_400_000

  it.scopedLive("are deleted 30 days after the letter was written, once it has ended", () =>
    inTown(({ outbox, sql, pass }) =>
      Effect.gen(function* () {
        const now = yield* pass(0)
        yield* sql`INSERT INTO tollgate_mail_outbox ${sql.insert([
          ended("failed", "failed", now - 31 * days),
          ended("new", "sent", now - 29 * days),
          ended("sent", "sent", now - 31 * days),
          ended("unknown", "unknown", now - 31 * days)
        ])}`
        yield* outbox.jobs[0]!.turn
        expect(yield* keys(sql)).toEqual(["new"])
      })
    )
  )

  it.scopedLive("of letters to oneself are deleted once they have left", () =>
    inTown(({ caught, fail, outbox, port, sql, pass, until }) =>
      Effect.gen(function* () {
        expect(yield* outbox.post(port, { ...toAda, key: "self/1" })).toBe("sent")
        fail({ status: 550 })
        expect(yield* outbox.post(port, { ...toAda, key: "self/2" })).toBe("failed")
        expect(yield* keys(sql)).toEqual([])
        fail({ status: 451 })
        expect(yield* outbox.post(port, { ...toAda, key: "self/3" })).toBe("waiting")
        yield* pass(30_000)
        yield* until("self/3", "sent")
        expect(caught().length).toBe(2)
      })
    )
  )

  it.scopedLive("number 100 at most for letters to oneself that wait", () =>
    inTown(({ outbox, port, sql, tried }) =>
      Effect.gen(function* () {
        const waiting = (n: number) => ({ ...ended(`self/${n}`, "waiting", 0), recipient: toAda.to, due_at: 1e15 })
        yield* sql`INSERT INTO tollgate_mail_outbox ${sql.insert(Array.from({ length: 99 }, (_, n) => waiting(n)))}`
        expect(yield* outbox.post(port, { ...toAda, key: "self/last" })).toBe("sent")
        yield* sql`INSERT INTO tollgate_mail_outbox ${sql.insert(waiting(99))}`
        const refused = yield* Effect.flip(outbox.post(port, { ...toAda, key: "self/more" }))
        expect([refused._tag, tried()]).toEqual(["TooManyLetters", 1])
        expect(yield* outbox.post(port, { ...toAda, key: "self/other", to: "bob@example.com" })).toBe("sent")
      })
    )
  )

  it.scopedLive("of letters that no mail server takes fail after three days", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const outbox = yield* Outbox
      const now = yield* Clock.currentTimeMillis
      yield* sql`INSERT INTO tollgate_mail_outbox ${sql.insert([
        { ...ended("new", "waiting", now), sealed: "x" },
        { ...ended("old", "waiting", now - 4 * days), sealed: "x" }
      ])}`
      yield* outbox.jobs[0]!.turn
      expect(yield* sql`SELECT key, status, sealed FROM tollgate_mail_outbox ORDER BY key`).toEqual([
        { key: "new", status: "waiting", sealed: "x" },
        { key: "old", status: "failed", sealed: "" }
      ])
    }).pipe(Effect.provide(Outbox.layer.pipe(Layer.provide([secret, Mail.layerNone]), Layer.provideMerge(books))))
  )
})

describe("letters of one account", () => {
  const ada = "acc_ada" as AccountId
  const by = (key: string, to: string): Letter => ({ ...toAda, key, to, caused_by: ada })
  const hours = 3_600_000

  it.scopedLive("is limited in an hour, and in a day to one address", () =>
    inTown(({ outbox, pass, sql, submit }) =>
      Effect.gen(function* () {
        const required = (key: string, to: string) =>
          Effect.flatMap(outbox.requiredLetter(by(key, to)), submit).pipe(
            Effect.as("taken"),
            Effect.catchAll(({ _tag }) => Effect.succeed(_tag))
          )
        const room = (to: string) =>
          Effect.match(outbox.room(ada, to), {
            onFailure: ({ body, retry_after }) => [body.code, retry_after],
            onSuccess: () => "room"
          })
        expect(yield* Effect.all([required("1", "x@y.z"), required("2", "x@y.z")])).toEqual(["taken", "taken"])
        expect(yield* required("3", "x@y.z")).toBe("Conflict")
        const [code, wait] = yield* room("x@y.z")
        expect([code, Number(wait) > 23 * 3_600]).toEqual(["too_many_letters", true])
        expect(yield* room("other@y.z")).toBe("room")
        // Concurrent letters count too.
        const many = yield* Effect.all(
          Array.from({ length: 20 }, (_, i) => required(`many ${i}`, `${i}@y.z`)),
          { concurrency: "unbounded" }
        )
        expect(many.filter((one) => one === "taken").length).toBe(2)
        const [, soon] = yield* room("other@y.z")
        expect(Number(soon) > 3_500 && Number(soon) <= 3_600).toBe(true)
        // The letter is left out, and its transaction succeeds.
        yield* Effect.flatMap(outbox.letter(by("extra", "other@y.z")), submit)
        expect(yield* sql`SELECT 1 FROM tollgate_mail_outbox WHERE key = 'extra'`).toEqual([])
        // Other accounts and the service itself have their own limits.
        yield* Effect.flatMap(
          outbox.requiredLetter({ ...by("bob", "x@y.z"), caused_by: "acc_bob" as AccountId }),
          submit
        )
        yield* Effect.flatMap(outbox.requiredLetter({ ...toAda, key: "own", to: "x@y.z" }), submit)
        yield* pass(hours)
        expect([yield* room("other@y.z"), yield* required("later", "other@y.z")]).toEqual(["room", "taken"])
        expect(yield* required("still", "x@y.z")).toBe("Conflict")
        yield* pass(23 * hours)
        expect(yield* required("next day", "x@y.z")).toBe("taken")
      })
    )
  )

  it.each([
    ["Ada Lovelace", "Ada Lovelace"],
    ["  J. R. R. Tolkien ", "J. R. R. Tolkien"],
    ["Acme Inc.", "Acme Inc."],
    ["Jürgen O'Neil-Müller", "Jürgen O'Neil-Müller"],
    ["Win now https://evil.example/x?y=1 quick", "Win now quick"],
    ["HTTPS://EVIL.EXAMPLE", "Somebody"],
    ["see www.evil.example", "see"],
    ["evil.example/login", "evil example/login"],
    ["evil。example", "evil example"],
    ["ada@evil.example", "ada@evil example"],
    ["mailto:ada@evil", "Somebody"],
    ["Ada\r\nBcc: x\u2028y\tz", "Ada Bcc: x y z"],
    ["\u202egnp.Ada", "gnp Ada"],
    ["", "Somebody"],
    ["x".repeat(500), "x".repeat(100)]
  ])("is told under the name %j as %j", (name, shown) => {
    expect(plainName(name, "Somebody")).toBe(shown)
  })
})
