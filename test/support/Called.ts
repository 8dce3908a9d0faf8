/**
 * Calls a room's service like a program, without HTTP. The books are in memory, and the sandbox's vendors are the upstreams. `person` creates a
 * caller with a balance.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Exit, Fiber, Layer, Logger, Redacted } from "effect"
import { accountsTable } from "../../src/books/ledger/rows/Rows.ts"
import { Gate } from "../../src/books/gate/Gate.ts"
import { Payers } from "../../src/books/gate/Payers.ts"
import { billingAccountOf } from "../../src/kernel/Ids.ts"
import type { AccountId, TenantId } from "../../src/kernel/Ids.ts"
import type { Caller } from "../../src/kernel/Caller.ts"
import type { Nano } from "../../src/kernel/Money.ts"
import { verify } from "../../src/app/Checks.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import { PriceFactors } from "../../src/books/prices/PriceFactors.ts"
import { PriceVersions } from "../../src/books/prices/PriceVersions.ts"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { Upstreams } from "../../src/upstream/models/Upstreams.ts"
import * as TestDatabase from "./database.ts"

export class Outside extends Context.Tag("test/Outside")<Outside, Sandbox.Sandbox>() {
  static readonly layer = Layer.scoped(Outside, Sandbox.make({}))
}

/** The sandbox's vendor at this path, named `vendor`. */
const vendorAt = (path: string) =>
  Layer.unwrapEffect(
    Effect.map(Outside, ({ url }) =>
      Upstreams.layer({
        vendor: { base_url: `${url}/${path}`, api_key: Redacted.make("sandbox"), silence_ms_max: 60_000 }
      })
    )
  )

/** Runs a room with the sandbox's vendor at this path as its only upstream. It logs nothing, because vendors fail often in tests. */
export const over = <A, E, R>(
  room: Layer.Layer<A, E, R>,
  path: string,
  factors: Layer.Layer<PriceFactors> = PriceFactors.layerNone
) =>
  room.pipe(
    Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer, factors)),
    Layer.provide(Payers.layerOwnOnly),
    Layer.provideMerge(vendorAt(path)),
    Layer.provideMerge(Outside.layer),
    Layer.provideMerge(TestDatabase.writer),
    Layer.provideMerge(TestDatabase.sql),
    Layer.provideMerge(Logger.remove(Logger.defaultLogger))
  )

// ---- callers --------------------------------------------------------------------------------------------------------------------

let people = 0

/** Creates a caller whose tenant has this balance. */
export const person = Effect.fnUntraced(function* (balance: Nano) {
  const name = `person${++people}`
  const caller: Caller = {
    account_id: `acc_${name}` as AccountId,
    tenant_id: `ten_${name}` as TenantId,
    application_id: null,
    credential: "user_token",
    team_first: false
  }
  const account = billingAccountOf(caller.tenant_id)
  const { submit } = yield* Writer
  yield* submit({
    postings: [
      { _tag: "Open", account, tenant: caller.tenant_id },
      { _tag: "Credit", account, amount: balance, source: "purchase", reference: "order 1", description: "paid" }
    ],
    statements: []
  })
  return caller
})

/** Returns the caller's balance and the outcome of each call. The caller must have no open calls. */
export const booksOf = Effect.fnUntraced(function* (caller: Caller) {
  const sql = yield* SqlClient
  const [account] = yield* sql<{ balance: string; reserved: string }>`
    SELECT CAST(giftable + granted AS TEXT) AS balance, CAST(reserved AS TEXT) AS reserved
    FROM ${sql.literal(accountsTable)} WHERE id = ${billingAccountOf(caller.tenant_id)}`
  const records = yield* sql<Ended & { readonly cost: string; readonly success: number }>`
    SELECT id, success, error_type, units, usage_source, CAST(cost AS TEXT) AS cost
    FROM tollgate_usage_records WHERE tenant_id = ${caller.tenant_id} ORDER BY number`
  return {
    balance: BigInt(account!.balance),
    reserved: BigInt(account!.reserved),
    calls: records.map((record) => ({ ...record, cost: BigInt(record.cost), success: record.success === 1 })),
    findings: yield* verify
  }
})

interface Ended {
  readonly id: string
  readonly error_type: string | null
  readonly units: number
  readonly usage_source: string
}

/** Waits until all of the caller's calls are settled. */
export const settled = Effect.fnUntraced(function* (caller: Caller) {
  const sql = yield* SqlClient
  const open = sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_ledger_reservations r
    JOIN tollgate_usage_dimensions d ON d.number = r.dimensions WHERE d.tenant_id = ${caller.tenant_id}`
  while ((yield* open)[0]!.n > 0) yield* Effect.sleep(10)
  return yield* booksOf(caller)
})

// ---- vendors --------------------------------------------------------------------------------------------------------------------

const control = (method: string, path: string, json?: object) =>
  Effect.flatMap(Outside, (sandbox) =>
    Effect.promise(async () => {
      const response = await fetch(sandbox.control + path, {
        method,
        headers: { "content-type": "application/json" },
        ...(json !== undefined && { body: JSON.stringify(json) })
      })
      return (await response.json()) as unknown
    })
  )

/** Sets a fault for the next call to this vendor. */
export const fault = (service: string, more: object) => control("POST", "/faults", { service, times: 1, ...more })

/** Clears all faults and releases the calls that they hold. */
export const forgetFaults = control("DELETE", "/faults")

export interface Received {
  // oxlint-disable-next-line typescript/no-explicit-any -- tests inspect responses of any shape
  readonly body: any
  readonly aborted: boolean
}

/** Returns the calls that this vendor has received, newest first. */
export const received = (service: string) =>
  Effect.map(control("GET", `/calls?service=${service}`), (calls) => calls as ReadonlyArray<Received>)

// ---- interruption ---------------------------------------------------------------------------------------------------------------

/** A fault that holds a call until `interruptedAtWork` has interrupted it. */
export const holds = { delay_ms: 600_000 }

/** Starts a call and interrupts it while its vendor holds it (`holds`). Then releases the vendor's response and waits for the call to end. */
export const interruptedAtWork = Effect.fnUntraced(function* <A, E, R>(service: string, call: Effect.Effect<A, E, R>) {
  const before = (yield* received(service)).length
  const fiber = yield* Effect.fork(call)
  while ((yield* received(service)).length === before) yield* Effect.sleep(5)
  yield* Fiber.interruptFork(fiber)
  yield* Effect.yieldNow()
  yield* forgetFaults
  return { interrupted: Exit.isInterrupted(yield* Fiber.await(fiber)) }
})
