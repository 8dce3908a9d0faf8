/** The rows of auto-reload: how long attempts are kept. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import { expect, it } from "vitest"
import * as Statements from "../../../src/books/ledger/write/Statements.ts"
import { statement } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import * as Ids from "../../../src/kernel/Ids.ts"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { unset } from "../../../src/money/autoreload/AutoReload.ts"
import * as Storage from "../../../src/money/autoreload/Storage.ts"
import * as TestDatabase from "../../support/database.ts"

const day = 86_400_000
const tenant_id = "ten_1" as TenantId
const change = {
  auto_reload: { enabled: true, threshold_usd: usd, amount_credits: 10n * usd, payment_method_id: "pm_1" },
  alerts: { enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null }
}

it("attempts are deleted 90 days after they began, unless their outcome is unknown", () =>
  Effect.runPromise(
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const writer = yield* Writer
      const storage = Storage.make(sql)
      const now = Date.UTC(2026, 5, 1)
      const old = (status: string, age: number) =>
        statement(sql`INSERT INTO tollgate_autoreload_attempts (id, tenant_id, amount_credits, payment_method_id, status, created_at)
          VALUES (${Ids.at("pay", now - age)}, ${tenant_id}, 10, 'pm_1', ${status}, ${now - age})`)
      yield* Statements.write(
        writer,
        storage.replace(tenant_id, change, 0n, now),
        ...["in_flight", "failed", "paid"].flatMap((status) => [91 * day, 89 * day].map((age) => old(status, age)))
      )
      const attempt = {
        id: Ids.at("pay", now),
        tenant_id,
        amount: 10n * usd,
        payment_method_id: "pm_1",
        created_at: now
      }
      yield* Statements.write(writer, ...storage.begin(attempt, { ...unset, updated_at: now }, 0n))
      const kept = yield* sql<{ age: number; status: string }>`SELECT (${now} - created_at) / ${day} AS age, status
        FROM tollgate_autoreload_attempts ORDER BY id, status`
      expect(kept.map(({ age, status }) => `${age} ${status}`).toSorted()).toEqual([
        "0 in_flight",
        "89 failed",
        "89 in_flight",
        "89 paid",
        "91 in_flight"
      ])
    }).pipe(Effect.provide(Layer.fresh(TestDatabase.writer.pipe(Layer.provideMerge(TestDatabase.sql)))))
  ))
