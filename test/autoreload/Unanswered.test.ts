/** An attempt of auto-reload to whose beginning the books gave no answer, though it is written. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import * as DeploymentSecret from "../../src/auth/DeploymentSecret.ts"
import { AutoReloads } from "../../src/autoreload/AutoReloads.ts"
import * as AutoReloadEntry from "../../src/entry/autoreload.ts"
import type { Caller } from "../../src/kernel/Caller.ts"
import { usd } from "../../src/kernel/Money.ts"
import { BooksUnavailable } from "../../src/ledger/Problems.ts"
import { Writer } from "../../src/ledger/Writer.ts"
import { PriceList } from "../../src/prices/PriceList.ts"
import { Tenants } from "../../src/tenants/Tenants.ts"
import { Mail } from "../../src/upstream/Mail.ts"
import { Payments } from "../../src/upstream/Payments.ts"
import * as TestDatabase from "../support/database.ts"

const never = Effect.die("nobody asks this here")

/** Over PostgreSQL it may be another node's, to which it is left for a while. */
const older = { text: "UPDATE tollgate_autoreload_attempts SET created_at = created_at - 120000", params: [] }

const world = (charged: Array<string>) => {
  const writer = Layer.effect(
    Writer,
    Effect.map(Writer, ({ submit, watch }): Writer["Type"] => ({
      watch,
      submit: (transaction) =>
        transaction.statements.some(({ text }) => text.includes("INSERT INTO tollgate_autoreload_attempts"))
          ? submit(transaction).pipe(
              Effect.zipRight(submit({ postings: [], statements: [older] })),
              Effect.zipRight(new BooksUnavailable({ maybe_written: true }))
            )
          : submit(transaction)
    }))
  ).pipe(Layer.provide(TestDatabase.writer))
  const method = { id: "pm_one", type: "card", brand: null, last4: null, exp_month: null, exp_year: null }
  return AutoReloadEntry.layerJobs.pipe(
    Layer.provideMerge(AutoReloadEntry.layer),
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
            return { payment_id: `pi_${attempt}`, tenant_id, kind: "auto_reload", cents, attempt } as const
          }),
        found: () => Effect.succeed(undefined),
        event: () => Effect.succeed(undefined)
      })
    ),
    Layer.provideMerge(writer),
    Layer.provideMerge(TestDatabase.sql),
    Layer.provide(Logger.remove(Logger.defaultLogger))
  )
}

describe("an attempt that may be on disk", () => {
  it.live("is made without a restart, and charged once", () => {
    const charged: Array<string> = []
    return Effect.gen(function* () {
      const reloads = yield* AutoReloads
      const person = {
        provider: "google" as const,
        subject: "ada",
        email: "ada@example.com",
        email_verified: true,
        name: "ada"
      }
      const { account_id, home_tenant_id: tenant_id } = yield* (yield* Tenants).welcome(person)
      const caller: Caller = {
        account_id,
        tenant_id,
        application_id: null,
        credential: "user_token",
        team_first: false
      }
      yield* reloads.change({
        caller,
        change: {
          auto_reload: { enabled: true, threshold_usd: usd, amount_credits: 10n * usd, payment_method_id: "pm_one" },
          alerts: { enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null }
        }
      })
      expect(yield* Effect.flip(reloads.charge({ caller }))).toMatchObject({
        _tag: "BooksUnavailable",
        maybe_written: true
      })
      const state = Effect.map(reloads.find(tenant_id), ({ auto_reload }) => auto_reload.state)
      for (let i = 0; i < 100 && (yield* state) === "in_flight"; i++) yield* Effect.sleep(20)
      expect(yield* state).toBe("cooldown")
      expect(charged).toHaveLength(1)
    }).pipe(Effect.provide(world(charged)))
  })
})
