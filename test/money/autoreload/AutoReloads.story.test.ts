/**
 * Stories of a tenant that keeps itself funded, over the real books, a steered clock and a processor that pays, declines, loses its
 * answers or sits on what it is asked: people spend, settings change, somebody charges by hand, time passes, events come late and
 * twice, and the process ends at any write. After each step a bystander's notebook says which attempts there may be, what of the
 * processor's money must be on the balance (all that was told, once, and nothing else), and what auto-reload must say of itself.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Clock, Duration, Effect, Exit, Layer, Logger, LogLevel, ManagedRuntime, Redacted } from "effect"
import type { Context } from "effect"
import fc from "fast-check"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accountsTable } from "../../../src/books/ledger/rows/Rows.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { AutoReloads } from "../../../src/money/autoreload/AutoReloads.ts"
import { cooldown, failuresMax } from "../../../src/money/autoreload/AutoReload.ts"
import type { AutoReload, AutoReloadChange, State } from "../../../src/money/autoreload/AutoReload.ts"
import * as AutoReloadEntry from "../../../src/app/entry/autoreload.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { day } from "../../../src/kernel/Moment.ts"
import { fromRow, toDecimal, usd } from "../../../src/kernel/Money.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { Purchases } from "../../../src/money/payments/Purchases.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { connectionsPreset } from "../../../src/storage/database/Location.ts"
import * as Client from "../../../src/storage/postgres/Client.ts"
import * as Sql from "../../../src/storage/sqlite/Sql.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import { ChargeDeclined, Payments, ProcessorSilent } from "../../../src/upstream/payments/Payments.ts"
import type { Paid } from "../../../src/upstream/payments/Payments.ts"
import * as Database from "../../support/database.ts"
import * as Postgres from "../../support/postgres.ts"
import { tell } from "../../support/story.ts"
import type { Step } from "../../support/story.ts"

// ---- the clock ------------------------------------------------------------------------------------------------------------

interface Time {
  now: number
}

/** Stands still until it is moved, from one sleeper to the next. Each life of the process has its own sleepers; time is one. */
class Hands implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  private readonly time: Time
  private readonly sleepers = new Set<{ readonly due: number; readonly wake: () => void }>()

  constructor(time: Time) {
    this.time = time
  }

  unsafeCurrentTimeMillis = () => this.time.now
  unsafeCurrentTimeNanos = () => BigInt(this.time.now) * 1_000_000n
  readonly currentTimeMillis = Effect.sync(this.unsafeCurrentTimeMillis)
  readonly currentTimeNanos = Effect.sync(this.unsafeCurrentTimeNanos)

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async((resume) => {
      const forget = this.after(Duration.toMillis(duration), () => resume(Effect.void))
      return Effect.sync(forget)
    })
  }

  after(millis: number, wake: () => void): () => void {
    const sleeper = { due: this.time.now + millis, wake }
    this.sleepers.add(sleeper)
    return () => this.sleepers.delete(sleeper)
  }

  get next(): number {
    return Math.min(...[...this.sleepers].map(({ due }) => due))
  }

  wake(): void {
    for (const sleeper of this.sleepers) {
      if (sleeper.due > this.time.now) continue
      this.sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
}

// ---- the processor --------------------------------------------------------------------------------------------------------

type Port = NonNullable<Context.Tag.Service<typeof Payments>>
type Order = Parameters<Port["charge"]>[0]
type Fate = "paid" | "declined"

const moods = [
  "pays",
  "declines",
  "pays, and its answers are lost",
  "declines, and its answers are lost",
  "is not reached",
  "pays, and keeps its answers",
  "keeps what it is asked"
] as const
type Mood = (typeof moods)[number]

const words = "Your card was declined."
/** After so long the adapter gives up on an answer. */
const patience = 20_000

interface Payment {
  readonly id: string
  readonly key: string
  readonly cents: number
  /** Whether its event was taken. */
  taken: boolean
}

/**
 * The processor outlives the process. It does once what it is asked under one key, and answers that again; while a request lies there
 * it answers no other of the same key. It forgets a key after a day, and would then do the same once more; what it did is found by
 * the name of the attempt for good.
 */
interface Processor {
  mood: Mood
  readonly asked: Map<string, { readonly order: Order; readonly at: number; fate: Fate | undefined }>
  lying: Array<{ readonly order: Order; readonly answer: () => void }>
  readonly payments: Array<Payment>
  /** What it told the running process for good, and when. */
  readonly heard: Map<string, { readonly fate: Fate; readonly at: number }>
  /** What a processor should never see. */
  readonly protests: Array<string>
}

const methods = ["pm_one", "pm_two"] as const

const decide = (processor: Processor, order: Order, fate: Fate) => {
  const asked = processor.asked.get(order.attempt)!
  if (asked.fate !== undefined) return
  asked.fate = fate
  if (fate === "paid") {
    const id = `pi_${processor.payments.length + 1}`
    processor.payments.push({ id, key: order.attempt, cents: order.cents, taken: false })
  }
}

const paidOf = ({ cents, id, key }: Payment, tenant_id: string): Paid => ({
  payment_id: id,
  tenant_id,
  kind: "auto_reload",
  cents,
  attempt: key
})

const port = (processor: Processor, life: Life, time: Time): Port => {
  const never = Effect.die("nobody asks this here")
  return {
    customer: (tenant) => Effect.succeed(`cus_${tenant}`),
    checkout: () => never,
    setup: () => never,
    methods: () =>
      Effect.succeed(
        methods.map((id) => ({ id, type: "card", brand: null, last4: null, exp_month: null, exp_year: null }))
      ),
    charge: (order) =>
      Effect.async((resume) => {
        const { asked, heard, lying, mood, payments, protests } = processor
        // Nobody listens any more once the process ended or the adapter gave up.
        let listens = !life.over
        const silent = (reason: string) => {
          if (listens && !life.over) resume(new ProcessorSilent({ reason }))
          listens = false
        }
        const answer = () => {
          if (!listens || life.over) return
          listens = false
          const { fate } = asked.get(order.attempt)!
          heard.set(order.attempt, { fate: fate!, at: time.now })
          if (fate === "declined") resume(new ChargeDeclined({ reason: words }))
          else
            resume(
              Effect.succeed(
                paidOf(
                  payments.find(({ key }) => key === order.attempt)!,
                  order.tenant_id
                )
              )
            )
        }
        if (!listens) return
        if (mood === "is not reached") return silent("not reached")
        const known = asked.get(order.attempt)
        const before = known === undefined || time.now >= known.at + day ? undefined : known
        if (before !== undefined && JSON.stringify(before.order) !== JSON.stringify(order)) {
          protests.push(`asked for something else under the same key ${order.attempt}`)
        }
        if (before === undefined) asked.set(order.attempt, { order, at: time.now, fate: undefined })
        if (lying.some((one) => one.order.attempt === order.attempt)) return silent("one of this key is being served")
        if (mood !== "keeps what it is asked") decide(processor, order, mood.startsWith("pays") ? "paid" : "declined")
        if (mood.endsWith("lost")) return silent("the connection was lost")
        if (!mood.includes("keeps")) return answer()
        lying.push({ order, answer })
        return Effect.sync(life.clock.after(patience, () => silent("no answer in time")))
      }),
    found: ({ attempt, tenant_id }) =>
      Effect.suspend((): Effect.Effect<Paid | undefined, ChargeDeclined | ProcessorSilent> => {
        if (life.over) return Effect.never
        const { asked, heard, mood, payments } = processor
        if (mood === "is not reached" || mood.endsWith("lost")) return new ProcessorSilent({ reason: mood })
        const known = asked.get(attempt)
        if (known === undefined) return Effect.succeed(undefined)
        if (known.fate === undefined) return new ProcessorSilent({ reason: "it is being served" })
        heard.set(attempt, { fate: known.fate, at: time.now })
        return known.fate === "declined"
          ? new ChargeDeclined({ reason: words })
          : Effect.succeed(
              paidOf(
                payments.find(({ key }) => key === attempt)!,
                tenant_id
              )
            )
      }),
    event: (body, signature) => {
      if (signature !== "signed") return Effect.succeed(undefined)
      const paid = JSON.parse(body) as Paid
      return Effect.succeed({ _tag: "Paid", id: `evt_${paid.payment_id}`, type: "payment_intent.succeeded", paid })
    }
  }
}

// ---- the process ----------------------------------------------------------------------------------------------------------

type Rooms = AutoReloads | Purchases | Tenants | Writer | SqlClient

/** One run of the process, from its start to its end. */
interface Life {
  readonly clock: Hands
  over: boolean
  /** How many writes were asked for, and of how many there is no answer yet. */
  writes: number
  writing: number
  /** It ends at the write after so many others: before or after that one is on disk. */
  doom: { left: number; readonly written: boolean } | undefined
  readonly ended: Promise<void>
  readonly end: () => void
  /** `undefined`: the process ended before there was an answer. */
  readonly run: <A, E>(effect: Effect.Effect<A, E, Rooms>) => Promise<Exit.Exit<A, unknown> | undefined>
  /** Comes back when nothing moves any more until the clock does or somebody does something. */
  readonly quiet: () => Promise<void>
  readonly close: () => Promise<void>
}

/** The writer of a process that may end at any write: from then on nothing reaches the disk, and nobody is answered. */
const mortal = (life: Life, writer: Layer.Layer<Writer, never, SqlClient>) =>
  Layer.effect(
    Writer,
    Effect.map(Writer, ({ submit, watch }): Writer["Type"] => ({
      watch,
      submit: (transaction) =>
        Effect.suspend(() => {
          if (life.over) return Effect.never
          life.writes++
          life.writing++
          const written = Effect.ensuring(
            submit(transaction),
            Effect.sync(() => life.writing--)
          )
          if (life.doom === undefined || --life.doom.left > 0) return written
          life.end()
          return life.doom.written ? Effect.zipRight(Effect.exit(written), Effect.never) : Effect.never
        })
    }))
  ).pipe(Layer.provide(writer))

/** Where a process has its books: on SQLite in a file, on PostgreSQL in the database that belongs to the file's folder. */
interface Place {
  readonly writer: (file: string) => Layer.Layer<Writer, never, SqlClient>
  readonly sql: (file: string) => Layer.Layer<SqlClient, unknown>
  /** Reads from beside. */
  readonly reader: (file: string) => Layer.Layer<SqlClient, unknown>
  /** Makes the books with nothing in them; or copies books that nobody uses. */
  readonly make: (file: string) => Promise<void>
  readonly copy: (from: string, to: string) => Promise<void>
  readonly drop: (file: string) => Promise<void>
  /** How many reads may follow one another between two writes, and what comes back when each that was asked for before is answered. */
  readonly reads: number
  readonly answered?: Effect.Effect<unknown, never, SqlClient>
}

const inFiles = {
  reader: (filename: string) => SqliteClient.layer({ filename, readonly: true }),
  make: (file: string) => Effect.runPromise(Database.makeFile(file)),
  copy: async (from: string, to: string) => copyFileSync(from, to),
  drop: async () => {},
  // All that happens between two writes happens in one turn of the loop.
  reads: 3
}

/** On one connection; and as in the service, where everybody reads while a thread writes. */
const oneConnection: Place = {
  ...inFiles,
  writer: () => Writer.layer,
  sql: (filename) => SqliteClient.layer({ filename })
}
const writerThread: Place = { ...inFiles, writer: Writer.layerThread, sql: Sql.layer }

/** All reads by one connection, which answers them in their order. */
const onServer = (file: string): Layer.Layer<SqlClient, unknown> =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => Postgres.databaseOf(dirname(file))),
      (url) => Client.layer({ url: Redacted.make(url), ...connectionsPreset, readers: 1 })
    )
  )

const server: Place = {
  writer: Database.writerAt,
  sql: onServer,
  reader: onServer,
  make: async (file) => void (await Postgres.databaseOf(dirname(file), { migrated: true })),
  copy: async (from, to) =>
    void (await Postgres.databaseOf(dirname(to), { template: await Postgres.databaseOf(dirname(from)) })),
  drop: async (file) => void (await Postgres.drop(dirname(file))),
  reads: 15,
  answered: Effect.flatMap(SqlClient, (sql) => Effect.orDie(sql`SELECT 1`))
}

const live = (place: Place, file: string, time: Time, processor: Processor): Life => {
  let end!: () => void
  const ended = new Promise<void>((resolve) => (end = resolve))
  const life: Life = {
    clock: new Hands(time),
    over: false,
    writes: 0,
    writing: 0,
    doom: undefined,
    ended,
    end: () => {
      life.over = true
      end()
    },
    run: (effect) => Promise.race([runtime.runPromiseExit(effect), ended.then(() => undefined)]),
    quiet: async () => {
      // It starts when it is first asked for something.
      await life.run(Effect.void)
      for (let calm = 0; calm < place.reads && !life.over; calm++) {
        const before = life.writes
        if (place.answered !== undefined) await life.run(place.answered)
        await setImmediate()
        if (life.writing > 0 || life.writes > before) calm = -1
      }
    },
    close: () => runtime.dispose()
  }
  // What stumbles in the background is tried again, and would go unnoticed.
  const listener = Logger.make(({ logLevel, message }) => {
    if (LogLevel.greaterThanEqual(logLevel, LogLevel.Error) && !life.over) processor.protests.push(String(message))
  })
  const runtime = ManagedRuntime.make(
    AutoReloadEntry.layerJobs.pipe(
      Layer.provideMerge(AutoReloadEntry.layer),
      Layer.provide([PriceList.layerNone, Mail.layerNone]),
      Layer.provideMerge(DeploymentSecret.layer(new Uint8Array(32).fill(1))),
      Layer.provideMerge(Layer.succeed(Payments, port(processor, life, time))),
      Layer.provideMerge(mortal(life, place.writer(file))),
      Layer.provideMerge(place.sql(file)),
      Layer.provideMerge(Layer.mergeAll(Layer.setClock(life.clock), Logger.replace(Logger.defaultLogger, listener)))
    )
  )
  return life
}

// ---- the notebook ---------------------------------------------------------------------------------------------------------

interface Wish {
  readonly enabled: boolean
  readonly threshold: bigint
  readonly amount: number
  readonly method: string | null
}

interface Attempt {
  readonly id: string
  readonly at: number
  readonly amount_credits: number
  status: "in_flight" | "paid" | "failed"
}

interface Notebook {
  settings: Wish
  /** Of a change whose answer is still to come: when it was asked for. */
  wish: (Wish & { readonly at: number }) | undefined
  readonly attempts: Array<Attempt>
  /** Whether ada sets off an attempt in this step by hand; if the process ends in the middle of it, she may have. */
  begins: boolean
  /**
   * Whether the balance fell below the threshold and no attempt has begun since: then one must begin as soon as it may. "maybe" where
   * that cannot be known: the process ended in the middle of it, or the fall came while an attempt began.
   */
  due: boolean | "maybe"
  last_charged_at: number | null
  last_failed: boolean
  failures: number
  disabled: boolean
  /** How often owners were told that it was switched off. */
  told: number
  spent: bigint
  /** What is being spent, of which nobody knows yet whether it was. */
  spending: ReadonlyArray<bigint>
  /** The payments that are on the balance, and those that may be if the process ends now. */
  readonly credited: Set<string>
  readonly arriving: Set<string>
}

interface World {
  readonly place: Place
  readonly folder: string
  readonly file: string
  readonly time: Time
  readonly processor: Processor
  /** Reads the file from beside, whether the process runs or not. */
  readonly books: ManagedRuntime.ManagedRuntime<SqlClient, unknown>
  life: Life
}

type Deed = Step<Notebook, World>

const openOf = ({ attempts }: Readonly<Notebook>) => attempts.find(({ status }) => status === "in_flight")
const isCooling = ({ attempts, last_charged_at }: Notebook, now: number) =>
  attempts.some(({ at }) => now < at + cooldown) || (last_charged_at !== null && now < last_charged_at + cooldown)

const freeAt = ({ attempts, last_charged_at }: Notebook, now: number): number | null => {
  const at = Math.max(0, ...attempts.map(({ at }) => at), last_charged_at ?? 0) + cooldown
  return now < at ? at : null
}

const stateOf = (notebook: Notebook, now: number): State => {
  if (!notebook.settings.enabled) return "disabled"
  if (openOf(notebook) !== undefined) return "in_flight"
  if (notebook.last_failed) return "failed"
  return notebook.last_charged_at !== null && now < notebook.last_charged_at + cooldown ? "cooldown" : "idle"
}

const noteChange = (notebook: Notebook, { amount, enabled, method, threshold }: Wish) => {
  notebook.settings = { enabled, threshold, amount, method }
  Object.assign(notebook, { last_failed: false, failures: 0, disabled: false, wish: undefined, due: false })
}

const noteEnd = (notebook: Notebook, attempt: Attempt, fate: Fate, at: number) => {
  attempt.status = fate === "paid" ? "paid" : "failed"
  if (fate === "paid") Object.assign(notebook, { last_charged_at: at, last_failed: false, failures: 0 })
  else {
    notebook.last_failed = true
    if (++notebook.failures < failuresMax) return
    Object.assign(notebook, { disabled: true, due: false, settings: { ...notebook.settings, enabled: false } })
    notebook.told++
  }
}

let accountId: AccountId
let tenantId: TenantId
const callerOf = () => ({
  account_id: accountId,
  tenant_id: tenantId,
  application_id: null,
  credential: "user_token" as const,
  team_first: false
})

/** Everything of the file that there is to compare, at one moment. */
const look = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [settings] = yield* sql<{ attempt: string | null; failures: number; updated_at: number }>`
    SELECT attempt, failures, updated_at FROM tollgate_autoreload_settings`
  const attempts = yield* sql<{
    id: string
    status: Attempt["status"]
    amount_credits: number
    created_at: number
    ended_at: number | null
  }>`SELECT id, status, amount_credits, created_at, ended_at FROM tollgate_autoreload_attempts ORDER BY created_at`
  const credits = yield* sql<{ payment: string; amount: string }>`
    SELECT reference_id AS payment, CAST(amount AS TEXT) AS amount FROM tollgate_ledger_entries
    WHERE type = 'credit' AND reference_id != 'start' ORDER BY seq`
  const [account] = yield* sql<{ balance: string }>`
    SELECT CAST(giftable + granted AS TEXT) AS balance FROM ${sql.literal(accountsTable)} WHERE tenant_id = ${tenantId}`
  const [told] = yield* sql<{ count: number }>`
    SELECT count(*) AS count FROM tollgate_notifications_notices WHERE kind = 'auto_reload_failed'`
  return { settings: settings!, attempts, credits, balance: fromRow(account!.balance), told: told!.count }
}).pipe((effect) => Effect.flatMap(SqlClient, (sql) => sql.withTransaction(effect)), Effect.orDie)

/** Takes into the notebook what the step must have led to; of a step in whose middle the process ended, what it came to. */
const follow = async (notebook: Notebook, world: World) => {
  const { books, life, processor, time } = world
  const { heard, payments } = processor
  const cut = life.over
  const seen = await books.runPromise(look)

  if (cut && notebook.wish?.at === seen.settings.updated_at) noteChange(notebook, notebook.wish)
  notebook.wish = undefined

  const ended = () => {
    for (const attempt of notebook.attempts.filter(({ status }) => status === "in_flight")) {
      const now = seen.attempts.find(({ id }) => id === attempt.id)!
      const answer = heard.get(attempt.id)
      if (cut && now.status === "in_flight") continue
      const ended = answer?.fate === "paid" ? "paid" : answer?.fate === "declined" ? "failed" : "in_flight"
      expect([now.status, now.ended_at], "how its attempt ended, and when").toEqual([ended, answer?.at ?? null])
      if (answer !== undefined) noteEnd(notebook, attempt, answer.fate, answer.at)
    }
  }
  const begun = seen.attempts.filter(({ id }) => !notebook.attempts.some((one) => one.id === id))
  // The end of one may be the beginning of the next.
  ended()
  const able = notebook.settings.enabled && openOf(notebook) === undefined && !isCooling(notebook, time.now)
  const below = seen.balance < notebook.settings.threshold
  const may = notebook.begins || (notebook.due !== false && able)
  const must = notebook.begins || (notebook.due === true && able && below)
  if (begun.length > 0) expect([begun.length, may], "an attempt was begun").toEqual([1, true])
  else if (!cut) expect(must, "an attempt had to be begun").toBe(false)
  if (begun.length > 0) notebook.due = notebook.spending.length > 1 || cut ? "maybe" : false
  else if (cut && notebook.due !== false) notebook.due = "maybe"
  else if (able && notebook.due === "maybe") notebook.due = false
  else if (!below) notebook.due = false
  notebook.begins = false
  for (const { amount_credits, created_at, id } of begun) {
    expect(created_at, "when it was begun").toBe(time.now)
    expect(isCooling(notebook, created_at), "whether ten minutes were over").toBe(false)
    expect(amount_credits, "its amount").toBe(notebook.settings.amount)
    notebook.attempts.push({ id, at: created_at, amount_credits, status: "in_flight" })
  }

  // Whatever is asked is asked under the name of an attempt: under another the processor would charge again.
  const names = new Set(notebook.attempts.map(({ id }) => id))
  const strangers = [...processor.asked.keys()].filter((key) => !names.has(key))
  expect(strangers, "what the processor was asked under no attempt's name").toEqual([])
  ended()

  for (const [key, { fate }] of heard) {
    if (fate === "paid") notebook.arriving.add(payments.find((one) => one.key === key)!.id)
  }
  heard.clear()

  const found = seen.credits.map(({ payment }) => payment)
  for (const payment of notebook.arriving) if (!cut || found.includes(payment)) notebook.credited.add(payment)
  notebook.arriving.clear()
  expect(found.toSorted(), "the payments that were credited").toEqual([...notebook.credited].toSorted())
  for (const { amount, payment } of seen.credits) {
    const cents = payments.find(({ id }) => id === payment)?.cents ?? 0
    expect([payment, fromRow(amount)]).toEqual([payment, (BigInt(cents) * usd) / 100n])
  }

  const came = seen.credits.reduce((sum, { amount }) => sum + fromRow(amount), start)
  let possible = [notebook.spent]
  for (const one of notebook.spending) {
    const grown = possible.map((sum) => sum + one)
    possible = cut ? [...possible, ...grown] : grown
  }
  expect(possible, "what was spent").toContain(came - seen.balance)
  notebook.spent = came - seen.balance
  notebook.spending = []
  return seen
}

const balanceOf = ({ credited, spent }: Notebook, { payments }: Processor) =>
  payments.reduce((sum, { cents, id }) => (credited.has(id) ? sum + (BigInt(cents) * usd) / 100n : sum), start - spent)

const compare = async (notebook: Notebook, world: World) => {
  if (world.life.over) await revive(notebook, world)
  const { life, processor, time } = world
  const seen = await follow(notebook, world)
  const open = openOf(notebook)
  expect(processor.protests).toEqual([])
  // Once what it asked for, where the processor took it.
  for (const { amount_credits, id, status } of notebook.attempts) {
    const paid = processor.payments.filter(({ key }) => key === id).map(({ cents }) => cents)
    expect(paid).toEqual(status === "paid" || processor.asked.get(id)?.fate === "paid" ? [amount_credits * 100] : [])
  }
  expect(notebook.attempts.filter(({ status }) => status === "in_flight").length).toBeLessThanOrEqual(1)
  expect({ attempt: seen.settings.attempt, failures: seen.settings.failures, told: seen.told }).toEqual({
    attempt: open?.id ?? null,
    failures: notebook.failures,
    told: notebook.told
  })
  const said = await answered(life.run(Effect.flatMap(AutoReloads, ({ find }) => find(tenantId))))
  const { amount, enabled, method, threshold } = notebook.settings
  const failed = notebook.last_failed ? words : null
  expect(said).toEqual({
    configured: method !== null,
    auto_reload: {
      enabled,
      threshold_usd: threshold,
      amount_credits: dollars(amount),
      payment_method_id: method,
      state: stateOf(notebook, time.now),
      last_charged_at: notebook.last_charged_at,
      last_error: failed,
      disabled_reason: notebook.disabled ? "payment_failed" : null,
      in_flight_started_at: open?.at ?? null,
      failures: notebook.failures,
      free_at: open === undefined ? freeAt(notebook, time.now) : null
    },
    alerts: { enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null },
    alerts_warned: false
  } satisfies AutoReload)
  expect(await world.books.runPromise(verify)).toEqual([])
}

/** The process has ended: what it left is noted, and it starts again on the same file, in front of the same processor. */
const revive = async (notebook: Notebook, world: World) => {
  await world.life.close()
  await follow(notebook, world)
  world.life = live(world.place, world.file, world.time, world.processor)
  await world.life.quiet()
}

/** From one sleeper to the next, so that each does what it does at its time. */
const pass = async (notebook: Notebook, world: World, millis: number) => {
  const { time } = world
  const until = time.now + millis
  while (world.life.clock.next <= until) {
    time.now = Math.max(time.now, world.life.clock.next)
    world.life.clock.wake()
    await world.life.quiet()
    if (world.life.over) await revive(notebook, world)
    await follow(notebook, world)
  }
  time.now = until
}

/** What a process answered that had no reason to end or to refuse. */
const answered = async <A>(asked: Promise<Exit.Exit<A, unknown> | undefined>): Promise<A> => {
  const exit = await asked
  if (exit === undefined) expect.fail("the process ended")
  return Exit.isSuccess(exit) ? exit.value : expect.fail(String(exit.cause))
}

const deed = (
  sentence: string,
  happen: Deed["happen"],
  possible?: (notebook: Readonly<Notebook>) => boolean
): Deed => ({
  sentence,
  ...(possible !== undefined && { possible }),
  happen: async (notebook, world) => {
    // No two steps at one moment: what is on disk tells which of them it is from.
    await pass(notebook, world, 1)
    await follow(notebook, world)
    await happen(notebook, world)
    await world.life.quiet()
    await compare(notebook, world)
  }
})

// ---- the steps ------------------------------------------------------------------------------------------------------------

const start = 12n * usd

/** As the gate does. */
const spend = (call: string, cost: bigint) =>
  Effect.gen(function* () {
    const { submit } = yield* Writer
    const facts = {
      account_id: accountId,
      tenant_id: tenantId,
      application_id: null,
      usage_type: "tool",
      endpoint: "search",
      model: "m",
      provider: "p"
    } as const
    const account = billingAccountOf(tenantId)
    const source = { billing_account_id: account, tenant_id: tenantId, kind: "own", why: "own" } as const
    const outcome = {
      cost,
      prompt_tokens: 0,
      completion_tokens: 0,
      units: 1,
      success: true,
      error_type: null,
      usage_source: "provider",
      latency_ms: 1
    } as const
    yield* submit({
      postings: [
        { _tag: "Reserve", call, sources: [source], least: cost, most: cost, run: "r", facts },
        { _tag: "Settle", call, outcome, payer: account }
      ],
      statements: []
    })
  })

let calls = 0

const spending =
  (wanted: ReadonlyArray<bigint>): Deed["happen"] =>
  async (notebook, world) => {
    let left = balanceOf(notebook, world.processor)
    const costs = wanted.filter((one) => one <= left && ((left -= one), true))
    notebook.spending = costs
    if (notebook.settings.enabled && costs.length > 0 && left < notebook.settings.threshold) notebook.due = true
    await world.life.run(
      Effect.forEach(costs, (one) => spend(`call_${++calls}`, one), { concurrency: "unbounded", discard: true })
    )
  }

const cost = fc.constantFrom(50, 100, 300, 700).map((cents) => (BigInt(cents) * usd) / 100n)
const spends = fc
  .array(cost, { minLength: 1, maxLength: 2 })
  .map((wanted) =>
    deed(`ada spends ${wanted.map(toDecimal).join(" and ")}${wanted.length > 1 ? " at once" : ""}`, spending(wanted))
  )

const change = (sentence: string, wish: Wish) =>
  deed(sentence, async (notebook, world) => {
    const { amount, enabled, method, threshold } = wish
    const body: AutoReloadChange = {
      auto_reload: { enabled, threshold_usd: threshold, amount_credits: dollars(amount), payment_method_id: method },
      alerts: { enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null }
    }
    notebook.wish = { ...wish, at: world.time.now }
    const exit = await world.life.run(
      Effect.flatMap(AutoReloads, (reloads) => reloads.change({ caller: callerOf(), change: body }))
    )
    if (exit === undefined) return
    expect(Exit.isSuccess(exit)).toBe(true)
    noteChange(notebook, wish)
  })

const dollars = (n: number) => BigInt(n) * usd

const enables = fc
  .tuple(fc.constantFrom(2, 5, 20), fc.constantFrom(5, 10), fc.constantFrom(...methods))
  .map(([threshold, amount, method]) =>
    change(`auto-reload is set to ${amount} credits below ${threshold}, by ${method}`, {
      enabled: true,
      threshold: dollars(threshold),
      amount,
      method
    })
  )

const disables = fc.constantFrom(null, methods[0]).map((method) =>
  change(`auto-reload is disabled${method === null ? ", and its method taken away" : ""}`, {
    enabled: false,
    threshold: dollars(2),
    amount: 10,
    method
  })
)

const charges = fc.constant(
  deed("ada charges by hand", async (notebook, world) => {
    const { life, processor, time } = world
    const refusal =
      openOf(notebook) !== undefined
        ? "AutoReloadBusy"
        : !notebook.settings.enabled
          ? "AutoReloadDisabled"
          : isCooling(notebook, time.now)
            ? "AutoReloadBusy"
            : undefined
    notebook.begins = refusal === undefined
    const asked = life.run(
      Effect.flatMap(AutoReloads, (reloads) =>
        Effect.match(reloads.charge({ caller: callerOf() }), {
          onFailure: ({ _tag }): string => _tag,
          onSuccess: ({ auto_reload: { state } }): string => state
        })
      )
    )
    // Where the processor sits on it she waits for longer than this step takes.
    const answer = await Promise.race([asked, life.quiet().then(() => "waiting" as const)])
    if (answer === undefined || answer === "waiting") return
    const said = Exit.isSuccess(answer) ? answer.value : expect.fail(String(answer.cause))
    const outcome = { paid: "cooldown", declined: "PaymentDeclined" } as const
    const [heard] = [...processor.heard.values()]
    expect(said).toBe(refusal ?? (heard === undefined ? "in_flight" : outcome[heard.fate]))
  })
)

const turns = fc.constantFrom(...moods, "pays" as const, "declines" as const).map((mood) =>
  deed(`from now on the processor ${mood}`, async (_, { processor }) => {
    processor.mood = mood
  })
)

const gets = fc.constantFrom("paid" as const, "declined" as const).map((fate) =>
  deed(`the processor gets to what lies there (${fate}, where it was not decided)`, async (_, { processor }) => {
    for (const { answer, order } of processor.lying.splice(0)) {
      decide(processor, order, fate)
      answer()
    }
  })
)

const receive = (notebook: Notebook, { life }: World, payment: Payment) => {
  notebook.arriving.add(payment.id)
  const body = JSON.stringify(paidOf(payment, tenantId))
  return life.run(Effect.flatMap(Purchases, ({ receive }) => receive({ text: body, signature: "signed" })))
}

const events = fc.tuple(fc.nat({ max: 5 }), fc.constantFrom("", ", twice at once", ", twice")).map(([index, how]) =>
  deed(`the event of payment ${index + 1} arrives${how}`, async (notebook, world) => {
    const { payments } = world.processor
    if (payments.length === 0) return
    const payment = payments[index % payments.length]!
    const first = receive(notebook, world, payment)
    if (how === ", twice") await first
    const taken = await Promise.all(how === "" ? [first] : [first, receive(notebook, world, payment)])
    for (const exit of taken) if (exit !== undefined) expect(Exit.isSuccess(exit)).toBe(true)
    if (!world.life.over) payment.taken = true
  })
)

const spans = { "6 seconds": 6_000, "a minute": 60_000, "10 minutes": cooldown, "a day": day } as const
const span = fc.constantFrom(...(["6 seconds", "a minute", "10 minutes", "10 minutes", "a day"] as const))
const passes = span.map((span) => deed(`${span} later`, (notebook, world) => pass(notebook, world, spans[span])))

/** What most stories need to get on: by itself it would seldom be told. */
const returns = cost.map((one) =>
  deed(`10 minutes later ada spends ${toDecimal(one)}`, async (notebook, world) => {
    await pass(notebook, world, cooldown)
    await follow(notebook, world)
    await spending([one])(notebook, world)
  })
)

const restarts = fc.constantFrom(undefined, "a minute" as const, "a day" as const).map((span) =>
  deed(`the process ends and starts again${span === undefined ? "" : `, ${span} later`}`, async (_, world) => {
    world.life.end()
    if (span !== undefined) world.time.now += spans[span]
  })
)

const dooms = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.boolean()).map(([left, written]) =>
  deed(
    `the process is to end at its write ${left} from now, ${written ? "after" : "before"} that is on disk`,
    async (_, world) => {
      world.life.doom = { left, written }
    }
  )
)

// ---- the telling ----------------------------------------------------------------------------------------------------------

const first: Wish = { enabled: true, threshold: dollars(10), amount: 10, method: methods[0] }
const epoch = 1_700_000_000_000

const processorAnew = (): Processor => ({
  mood: "pays",
  asked: new Map(),
  lying: [],
  payments: [],
  heard: new Map(),
  protests: []
})

// A tenant with some credit and auto-reload on: made once, and copied for each story.
const home = mkdtempSync(join(tmpdir(), "tollgate-"))
const template = join(home, "template.db")
const firstPlace = Database.isPostgres ? server : oneConnection

beforeAll(async () => {
  await firstPlace.make(template)
  const life = live(firstPlace, template, { now: epoch }, processorAnew())
  const { account_id, home_tenant_id } = await answered(
    life.run(
      Effect.flatMap(Tenants, ({ welcome }) =>
        welcome({ provider: "google", subject: "ada", email: "ada@example.com", email_verified: true, name: "ada" })
      )
    )
  )
  accountId = account_id
  tenantId = home_tenant_id
  const account = billingAccountOf(tenantId)
  await answered(
    life.run(
      Effect.flatMap(Writer, ({ submit }) =>
        submit({
          postings: [
            { _tag: "Credit", account, amount: start, source: "purchase", reference: "start", description: "d" }
          ],
          statements: []
        })
      )
    )
  )
  const { amount, enabled, method, threshold } = first
  await answered(
    life.run(
      Effect.flatMap(AutoReloads, (reloads) =>
        reloads.change({
          caller: callerOf(),
          change: {
            auto_reload: {
              enabled,
              threshold_usd: threshold,
              amount_credits: dollars(amount),
              payment_method_id: method
            },
            alerts: { enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null }
          }
        })
      )
    )
  )
  await life.close()
})
afterAll(async () => {
  await firstPlace.drop(template)
  rmSync(home, { recursive: true, force: true })
})

const begin = async (place: Place) => {
  const folder = mkdtempSync(join(home, "story-"))
  const file = join(folder, "books.db")
  await place.copy(template, file)
  const time = { now: epoch + day }
  const processor = processorAnew()
  const life = live(place, file, time, processor)
  await life.quiet()
  const world: World = {
    place,
    folder,
    file,
    time,
    processor,
    books: ManagedRuntime.make(place.reader(file)),
    life
  }
  const notebook: Notebook = {
    settings: first,
    wish: undefined,
    attempts: [],
    begins: false,
    due: false,
    last_charged_at: null,
    last_failed: false,
    failures: 0,
    disabled: false,
    told: 0,
    spent: 0n,
    spending: [],
    credited: new Set(),
    arriving: new Set()
  }
  return { notebook, world }
}

/** When everything is well again, every attempt ends and every payment is on the balance. */
const end = async (notebook: Notebook, world: World) => {
  const { processor } = world
  world.life.doom = undefined
  processor.mood = "pays"
  for (const { answer, order } of processor.lying.splice(0)) {
    decide(processor, order, "paid")
    answer()
  }
  await world.life.quiet()
  await pass(notebook, world, cooldown)
  await compare(notebook, world)
  expect(openOf(notebook)).toBeUndefined()
  for (const payment of processor.payments) if (!payment.taken) await answered(receive(notebook, world, payment))
  await compare(notebook, world)
  expect([...notebook.credited].toSorted()).toEqual(processor.payments.map(({ id }) => id).toSorted())
}

describe("a tenant that keeps itself funded", () => {
  it.each(
    Database.isPostgres
      ? [{ where: "on PostgreSQL", place: server, stories: 4 }]
      : [
          { where: "on one connection", place: oneConnection, stories: 50 },
          { where: "through the writer's thread", place: writerThread, stories: 3 }
        ]
  )("gets what it pays for, once, whatever happens and in whichever order, $where", async ({ place, stories }) => {
    await tell<Notebook, World>({
      steps: [
        fc.oneof(spends, returns, returns),
        fc.oneof(spends, returns, returns),
        turns,
        fc.oneof(turns, passes),
        fc.oneof(charges, gets, enables, disables),
        fc.oneof(events, restarts, dooms)
      ],
      begin: () => begin(place),
      end,
      close: async ({ books, file, folder, life }) => {
        life.end()
        await life.close()
        await books.dispose()
        await place.drop(file)
        rmSync(folder, { recursive: true, force: true })
      },
      stories,
      length: 40
    })
  })
})
