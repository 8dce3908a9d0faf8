/** Videos as a program orders them, without HTTP: quotes, charges as Nano, refusals by their tags, and a loop that is turned by hand. */
import { SqlClient } from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { Nano } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { statement } from "../../../src/books/ledger/rules/Transaction.ts"
import { failure, Gate } from "../../../src/books/gate/Gate.ts"
import { Jobs } from "../../../src/calls/media/Jobs.ts"
import * as Rows from "../../../src/calls/media/Rows.ts"
import { Media } from "../../../src/calls/media/Media.ts"
import type { VideoModel } from "../../../src/calls/media/Model.ts"
import { MediaModels } from "../../../src/calls/media/Settings.ts"
import { booksOf, fault, forgetFaults, holds, interruptedAtWork, over, person, received } from "../../support/Called.ts"
import { atSandboxTime, move, pass } from "../../support/generation.ts"

/** 0.05 USD a second, half more with sound. */
const model: VideoModel = {
  type: "video",
  id: "sea",
  display_name: "Sea",
  pricing_note: "",
  upstream: "vendor",
  endpoint: "sandbox/video",
  passes: ["negative_prompt"],
  prompt_required: true,
  resolutions: [
    {
      tier: "480p",
      price: 50_000_000_000_000_000n as UnitPrice,
      price_with_audio: 75_000_000_000_000_000n as UnitPrice
    }
  ],
  duration: { min: 1, max: 10 },
  default_duration: 5,
  audio: "off",
  from_image: false
}
const quote: Nano = usd / 4n

const room = Media.layer.pipe(Layer.provideMerge(Jobs.layer), Layer.provide(Layer.succeed(MediaModels, [model])))
const job = { model: "sea", prompt: "waves against a lighthouse" }

/** What stands in the books of a caller whose jobs have all ended. */
const ended = (balance: Nano, ...calls: ReadonlyArray<object>) => ({ balance, reserved: 0n, calls, findings: [] })

layer(over(room, "media-queue"), { excludeTestServices: true })("a video", (it) => {
  it.effect("is quoted in Nano, of which nothing is reserved", () =>
    Effect.gen(function* () {
      const media = yield* Media
      expect(yield* media.quote(job)).toEqual({ model: "sea", provider: "vendor", quote, units: 5, unit: "second" })
      const loud = yield* media.quote({ ...job, duration: 3, audio: true, resolution: "480p" })
      expect(loud).toMatchObject({ quote: (usd * 225n) / 1_000n, units: 3 })
    })
  )

  it.effect("has its quote reserved while it runs, and charged once it is done, whoever looks", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const media = yield* Media
      const submitted = yield* media.submit({ caller, job: { ...job, seed: 7, negative_prompt: "boats" } })
      const { request_id } = submitted
      expect(submitted).toMatchObject({
        model: "sea",
        provider: "vendor",
        status: "IN_QUEUE",
        quote,
        charge: undefined
      })
      const [order] = yield* received("media")
      expect(order!.body).toMatchObject({ prompt: job.prompt, seed: 7, negative_prompt: "boats", duration: 5 })
      yield* move(request_id, "IN_PROGRESS")
      expect(yield* media.status({ caller, request_id })).toMatchObject({ status: "IN_PROGRESS", charge: undefined })
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd, reserved: quote, calls: [] })
      const early = yield* Effect.catchTag(media.result({ caller, request_id }), "MediaNotCompleted", Effect.succeed)
      expect(early).toMatchObject({ request_id, state: "IN_PROGRESS" })

      yield* move(request_id, "COMPLETED")
      const results = yield* Effect.all([media.result({ caller, request_id }), media.result({ caller, request_id })], {
        concurrency: 2
      })
      const [record] = (yield* booksOf(caller)).calls
      for (const { charge, output } of results) {
        expect(charge).toEqual({ usage_id: record!.id, charged: quote })
        expect(output).toMatchObject({ video: { content_type: "video/mp4" } })
      }
      expect(yield* booksOf(caller)).toMatchObject(ended(usd - quote, { cost: quote, units: 5, success: true }))
      const late = yield* Effect.flip(media.cancel({ caller, request_id }))
      expect(late).toMatchObject({ _tag: "MediaAlreadyCompleted", request_id })
    })
  )

  it.effect("is settled by a turn of the service's own, though nobody asks", () =>
    atSandboxTime(
      Effect.gen(function* () {
        const caller = yield* person(usd)
        const { request_id } = yield* (yield* Media).submit({ caller, job })
        const { turn } = yield* Jobs
        yield* move(request_id, "COMPLETED")
        // Its first look is not due yet.
        yield* turn
        expect(yield* booksOf(caller)).toMatchObject({ reserved: quote, calls: [] })
        yield* pass(2_500)
        yield* turn
        expect(yield* booksOf(caller)).toMatchObject(ended(usd - quote, { cost: quote, success: true }))
      })
    )
  )

  it.effect("that fails, or is cancelled in time, costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const media = yield* Media
      const failing = yield* media.submit({ caller, job })
      yield* move(failing.request_id, "FAILED")
      expect(yield* media.result({ caller, request_id: failing.request_id })).toMatchObject({
        error_type: "media_failed",
        error: "the sandbox was configured to fail",
        output: null,
        charge: { charged: 0n }
      })
      const { request_id } = yield* media.submit({ caller, job })
      expect(yield* media.cancel({ caller, request_id })).toMatchObject({
        status: "CANCELLED",
        charge: { charged: 0n }
      })
      expect(yield* booksOf(caller)).toMatchObject(
        ended(usd, { cost: 0n, error_type: "media_failed" }, { cost: 0n, error_type: "cancelled" })
      )
    })
  )

  it.effect("whose result is too long says so at once, and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const media = yield* Media
      const { request_id } = yield* media.submit({ caller, job })
      const url = `data:video/mp4;base64,${"A".repeat(9 * 1024 * 1024)}`
      yield* fault("media", { body: { status: "COMPLETED" } })
      yield* fault("media", { body: { video: { url } } })
      expect(yield* media.result({ caller, request_id })).toMatchObject({
        error_type: "media_failed",
        error: "the result is longer than 8 MiB",
        charge: { charged: 0n }
      })
      expect(yield* booksOf(caller)).toMatchObject(ended(usd, { cost: 0n, error_type: "media_failed" }))
    })
  )

  it.effect("is listed without what it made", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const media = yield* Media
      const { request_id } = yield* media.submit({ caller, job })
      yield* move(request_id, "COMPLETED")
      expect(yield* media.result({ caller, request_id })).toMatchObject({ output: { video: {} } })
      const { records } = yield* media.list({ caller, page: 1, per_page: 50 })
      expect(records).toMatchObject([{ request_id, charge: { charged: quote }, output: null }])
      // SQLite reads through an output to the columns after it, so the list needs all that it shows in its index.
      const sql = yield* SqlClient
      const elsewhere = yield* sql.onDialectOrElse({
        sqlite: () => sql<{ name: string }>`SELECT name FROM pragma_table_info('tollgate_media_jobs')
          WHERE name NOT IN (SELECT name FROM pragma_index_info('tollgate_media_jobs_account'))`,
        orElse: () => Effect.succeed([{ name: "output" }, { name: "updated_at" }])
      })
      expect(elsewhere).toEqual([{ name: "output" }, { name: "updated_at" }])
    })
  )

  it.effect("that cannot be paid is refused with amounts, and reaches no vendor", () =>
    Effect.gen(function* () {
      const caller = yield* person(quote - 1n)
      const before = (yield* received("media")).length
      const refused = yield* Effect.catchTag(
        (yield* Media).submit({ caller, job }),
        "InsufficientCredits",
        Effect.succeed
      )
      const payer = billingAccountOf(caller.tenant_id)
      expect(refused).toMatchObject({ available: quote - 1n, required: quote, payer, reason: "balance" })
      expect((yield* received("media")).length).toBe(before)
      expect(yield* booksOf(caller)).toMatchObject(ended(quote - 1n))
    })
  )

  it.effect("that its model does not make is refused by field and rule", () =>
    Effect.gen(function* () {
      const media = yield* Media
      const field = (asked: object) =>
        Effect.map(Effect.flip(media.quote({ ...job, ...asked })), ({ field, rule }) => `${field}: ${rule}`)
      expect(
        yield* Effect.all([
          field({ model: "land" }),
          field({ prompt: " " }),
          field({ duration: 11 }),
          field({ duration: Number.NaN }),
          field({ resolution: "720p" }),
          field({ start_image_url: "https://example.com/a.png" })
        ])
      ).toEqual([
        "model: must be one of sea",
        "prompt: must be a non-empty string for this model",
        "duration: must be a whole number of seconds from 1 to 10",
        "duration: must be a whole number of seconds from 1 to 10",
        "resolution: must be one of 480p",
        "start_image_url: must be omitted; use an image-to-video model"
      ])
    })
  )

  it.effect("that the vendor does not take is refused by what the vendor says, and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const media = yield* Media
      const refused = Effect.flip(media.submit({ caller, job }))
      yield* fault("media", { status: 422, body: { detail: [{ loc: ["body", "prompt"], msg: "no lighthouses" }] } })
      expect(yield* refused).toMatchObject({ _tag: "MediaRejected", field: "prompt", rule: "no lighthouses" })
      yield* fault("media", { status: 429, headers: { "retry-after": "7" } })
      expect(yield* refused).toMatchObject({ _tag: "MediaRateLimited", retry_after: 7 })
      yield* fault("media", { drop: true })
      expect(yield* refused).toMatchObject({ _tag: "MediaUnavailable" })
      expect(yield* booksOf(caller)).toMatchObject(
        ended(
          usd,
          { cost: 0n, error_type: "media_rejected" },
          { cost: 0n, error_type: "media_rate_limited" },
          { cost: 0n, error_type: "media_unavailable" }
        )
      )
      const sql = yield* SqlClient
      expect(yield* sql`SELECT id FROM tollgate_media_jobs WHERE account_id = ${caller.account_id}`).toEqual([])
    })
  )

  it.effect("whose caller leaves while the vendor takes it is made and charged all the same", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const media = yield* Media
      yield* fault("media", holds)
      const { interrupted } = yield* interruptedAtWork("media", media.submit({ caller, job }))
      expect(interrupted).toBe(true)
      const sql = yield* SqlClient
      const [row] = yield* sql<{ id: string }>`
        SELECT id FROM tollgate_media_jobs WHERE account_id = ${caller.account_id} AND status = 'IN_QUEUE'`
      yield* move(row!.id, "COMPLETED")
      expect(yield* media.status({ caller, request_id: row!.id })).toMatchObject({ charge: { charged: quote } })
    })
  )

  it.effect("that another node ended while it was submitted, since this one was taken to have ended, stays ended", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const sql = yield* SqlClient
      const rows = Rows.make(sql)
      const before = (yield* received("media")).length
      yield* fault("media", holds)
      const submitting = yield* Effect.fork((yield* Media).submit({ caller, job }))
      while ((yield* received("media")).length === before) yield* Effect.sleep("10 millis")
      const row = (yield* rows.submitting).find(({ account_id }) => account_id === caller.account_id)
      const admission = yield* (yield* Gate).resume(row!.call)
      const end = {
        status: "COMPLETED",
        cost: 0n,
        error_type: "media_failed",
        error: "the submission was interrupted"
      } as const
      yield* admission!.settleBeside(failure("media_failed"), [rows.end(row!.id, end, 1)])
      yield* forgetFaults
      const failed = { status: "COMPLETED", error_type: "media_failed", charge: { charged: 0n } }
      const { request_id, ...submitted } = yield* submitting
      expect(submitted).toMatchObject(failed)
      expect(yield* (yield* Media).status({ caller, request_id })).toMatchObject(failed)
      expect(yield* booksOf(caller)).toMatchObject(ended(usd, { cost: 0n, error_type: "media_failed" }))
    })
  )

  it.effect("is its account's own, and is found by the call that made it", () =>
    Effect.gen(function* () {
      const [caller, other] = [yield* person(usd), yield* person(usd)]
      const media = yield* Media
      const sql = yield* SqlClient
      const calls: Array<string> = []
      // A host's statement stands or falls with the reservation.
      yield* sql`CREATE TABLE IF NOT EXISTS orders (call TEXT)`
      const { request_id } = yield* media.submit({
        caller,
        job,
        beside: (call) => {
          calls.push(call)
          return [statement(sql`INSERT INTO orders VALUES (${call})`)]
        }
      })
      expect(yield* sql`SELECT call FROM orders`).toEqual([{ call: calls[0] }])
      expect(yield* media.ofCall({ caller, call: calls[0]! })).toMatchObject({ request_id })
      expect(yield* media.ofCall({ caller: other, call: calls[0]! })).toBeUndefined()
      const theirs = { caller: other, request_id }
      expect(
        yield* Effect.all(
          [media.status(theirs), media.result(theirs), media.cancel(theirs)].map((one) =>
            Effect.flip<unknown, unknown, never>(one)
          )
        )
      ).toMatchObject(Array.from({ length: 3 }, () => ({ _tag: "MediaNotFound", request_id })))
      yield* move(request_id, "COMPLETED")
      yield* media.status({ caller, request_id })
    })
  )
})
