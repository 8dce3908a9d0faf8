/** Attempts of auto-reload whose beginning the books wrote without an answer, or whose charge they could not write at once. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Option, TestClock } from "effect"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { AutoReloads } from "../../../src/money/autoreload/AutoReloads.ts"
import * as AutoReloadEntry from "../../../src/app/entry/autoreload.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import { BooksUnavailable } from "../../../src/books/ledger/rules/Problems.ts"
import { balanceOf } from "../../../src/books/ledger/rules/Transaction.ts"
import type { Transaction } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import type { Paid } from "../../../src/upstream/payments/Payments.ts"
import { Payments } from "../../../src/upstream/payments/Payments.ts"
import * as TestDatabase from "../../support/database.ts"

const never = Effect.die("nobody asks this here")

/** Over PostgreSQL it may be another node's, to which it is left for a while. */
const older = { text: "UPDATE tollgate_autoreload_attempts SET created_at = created_at - 120000", params: [] }

/** What the books say to a transaction, before or after it is written. */
type Faulty = (submit: Writer["Type"]["submit"]) => Writer["Type"]["submit"]

const isBeginning = ({ statements }: Transaction) =>
  statements.some(({ text }) => text.includes("INSERT INTO tollgate_autoreload_attempts"))

/** The beginning of an attempt is written, and not answered. */
const unanswered: Faulty = (submit) => (transaction) =>
  isBeginning(transaction)
    ? submit(transaction).pipe(
        Effect.zipRight(submit({ postings: [], statements: [older] })),
        Effect.zipRight(new BooksUnavailable({ maybe_written: true }))
      )
    : submit(transaction)

/** The first credit of a payment finds the database locked. */
const lockedOnce = (): Faulty => {
  let tries = 0
  return (submit) => (transaction) =>
    transaction.postings.some(({ _tag }) => _tag === "Credit") && tries++ === 0
      ? new BooksUnavailable({ maybe_written: false })
      : submit(transaction)
}

const world = (charged: Array<string>) =>
  AutoReloadEntry.layerJobs.pipe(Layer.provideMerge(worldOver(charged, unanswered)))

const worldOver = (charged: Array<string>, faulty: Faulty) => {
  const writer = Layer.effect(
    Writer,
    Effect.map(Writer, ({ submit, watch }): Writer["Type"] => ({ watch, submit: faulty(submit) }))
  ).pipe(Layer.provide(TestDatabase.writer))
  const payments = new Map<string, Paid>()
  const method = { id: "pm_one", type: "card", brand: null, last4: null, exp_month: null, exp_year: null }
  return AutoReloadEntry.layer.pipe(
    Layer.provide([PriceList.layerNone, Mail.layerNone]),
    Layer.provideMerge(DeploymentSecret.layer(new Uint8Array(32).fill(1))),
    Layer.provideMerge(
      Layer.succeed(Payments, {
        customer: () => Effect.succeed("cus_one"),
        checkout: () => never,
        setup: () => never,
        methods: () => Effect.succeed([method]),
        charge: ({ attempt, cents, tenant_id }) =>
          Effect.sync(() => {
            charged.push(attempt)
            payments.set(attempt, { payment_id: `pi_${attempt}`, tenant_id, kind: "auto_reload", cents, attempt })
            return payments.get(attempt)!
          }),
        found: ({ attempt }) => Effect.succeed(payments.get(attempt)),
        event: () => Effect.succeed(undefined)
      })
    ),
    Layer.provideMerge(writer),
    Layer.provideMerge(TestDatabase.sql),
    Layer.provide(Logger.remove(Logger.defaultLogger))
  )
}

const settings = (enabled: boolean) => ({
  auto_reload: { enabled, threshold_usd: usd, amount_credits: 10n * usd, payment_method_id: "pm_one" },
  alerts: { enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null }
})

const callerWithReload = Effect.gen(function* () {
  const person = {
    provider: "google" as const,
    subject: "ada",
    email: "ada@example.com",
    email_verified: true,
    name: "ada"
  }
  const { account_id, home_tenant_id: tenant_id } = yield* (yield* Tenants).welcome(person)
  const caller: Caller = { account_id, tenant_id, application_id: null, credential: "user_token", team_first: false }
  yield* (yield* AutoReloads).change({ caller, change: settings(true) })
  return caller
})

describe("an attempt that may be on disk", () => {
  it.live("is made without a restart, and charged once", () => {
    const charged: Array<string> = []
    return Effect.gen(function* () {
      const reloads = yield* AutoReloads
      const caller = yield* callerWithReload
      expect(yield* Effect.flip(reloads.charge({ caller }))).toMatchObject({
        _tag: "BooksUnavailable",
        maybe_written: true
      })
      const state = Effect.map(reloads.find(caller.tenant_id), ({ auto_reload }) => auto_reload.state)
      for (let i = 0; i < 100 && (yield* state) === "in_flight"; i++) yield* Effect.sleep(20)
      expect(yield* state).toBe("cooldown")
      expect(charged).toHaveLength(1)
    }).pipe(Effect.provide(world(charged)))
  })
})

describe("a charge that the books could not take at once", () => {
  it.scoped("begins the ten minutes all the same", () => {
    const charged: Array<string> = []
    return Effect.gen(function* () {
      const began = 1_800_000_000_000
      yield* TestClock.setTime(began)
      const reloads = yield* AutoReloads
      const caller = yield* callerWithReload
      expect(yield* Effect.flip(reloads.charge({ caller }))).toMatchObject({ _tag: "BooksUnavailable" })
      const { auto_reload: flying } = yield* reloads.find(caller.tenant_id)
      expect([flying.state, charged.length]).toEqual(["in_flight", 1])
      yield* TestClock.adjust("4 minutes")
      // As the job does once the attempt is to be asked again.
      const found = Effect.map(reloads.find(caller.tenant_id), ({ auto_reload }) => auto_reload)
      while ((yield* found).state === "in_flight") {
        yield* reloads.job.turn
        yield* Effect.promise(() => new Promise((go) => setTimeout(go, 1)))
      }
      expect(yield* found).toMatchObject({ state: "cooldown", last_charged_at: began, free_at: began + 600_000 })
      expect(charged).toHaveLength(1)
    }).pipe(Effect.provide(worldOver(charged, lockedOnce())))
  })

  it.scoped("shows settings that are disabled meanwhile as disabled at once, and is credited", () => {
    const charged: Array<string> = []
    return Effect.gen(function* () {
      const reloads = yield* AutoReloads
      const caller = yield* callerWithReload
      yield* Effect.flip(reloads.charge({ caller }))
      const { auto_reload: disabled } = yield* reloads.change({ caller, change: settings(false) })
      expect(disabled).toMatchObject({ state: "disabled", disabled_reason: null })
      expect(disabled.in_flight_started_at).not.toBeNull()
      yield* TestClock.adjust("1 minute")
      const ledger = yield* Ledger
      const balance = Effect.map(ledger.accountOfTenant(caller.tenant_id), (account) =>
        balanceOf(Option.getOrThrow(account))
      )
      while ((yield* balance) === 0n) {
        yield* reloads.job.turn
        yield* Effect.promise(() => new Promise((go) => setTimeout(go, 1)))
      }
      expect(yield* balance).toBe(10n * usd)
      const { auto_reload } = yield* reloads.find(caller.tenant_id)
      expect(auto_reload).toMatchObject({ state: "disabled", in_flight_started_at: null })
    }).pipe(Effect.provide(worldOver(charged, lockedOnce())))
  })
})
