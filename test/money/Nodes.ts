/** Two nodes that grant allowances and redeem vouchers over one database, under a clock that a test moves as it likes. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Exit, Layer, ManagedRuntime } from "effect"
import { verify } from "../../src/app/Checks.ts"
import { trialBalance } from "../../src/books/ledger/audit/Invariants.ts"
import { Ledger } from "../../src/books/ledger/Ledger.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import type { WriterContract } from "../../src/books/ledger/write/Writer.ts"
import { billingAccountOf } from "../../src/kernel/Ids.ts"
import type { TenantId } from "../../src/kernel/Ids.ts"
import { Allowances } from "../../src/money/allowances/Allowances.ts"
import { Plans } from "../../src/money/allowances/Settings.ts"
import type { PlansByName } from "../../src/money/allowances/Settings.ts"
import { Vouchers } from "../../src/money/vouchers/Vouchers.ts"
import * as TestDatabase from "../support/database.ts"

export type Rooms = Allowances | Vouchers | Ledger | Writer | SqlClient
type Run = <A, E>(effect: Effect.Effect<A, E, Rooms>) => Promise<A>

export interface Scene {
  /** Each has a writer of its own. */
  readonly nodes: readonly [Run, Run]
  now: number
  /** Where a node is killed at its next transaction: before it is handed in, or once it is committed and not answered. */
  kill: "before" | "after" | undefined
  readonly close: () => Promise<void>
}

export const make = async (now: number, plans: PlansByName = {}): Promise<Scene> => {
  const scene: { now: number; kill: Scene["kill"] } = { now, kill: undefined }
  const mortal = ({ submit, watch }: WriterContract): WriterContract => ({
    watch,
    submit: ((transaction) =>
      Effect.suspend(() => {
        const { kill } = scene
        if (kill === undefined) return submit(transaction)
        scene.kill = undefined
        return kill === "before" ? Effect.interrupt : Effect.zipRight(submit(transaction), Effect.interrupt)
      })) as WriterContract["submit"]
  })
  const writer = Layer.map(TestDatabase.writer, (context) =>
    Context.add(context, Writer, mortal(Context.get(context, Writer)))
  )
  const clock = Object.assign(Object.create(Clock.make()) as Clock.Clock, {
    currentTimeMillis: Effect.sync(() => scene.now),
    unsafeCurrentTimeMillis: () => scene.now
  })
  const shared = ManagedRuntime.make(Layer.provideMerge(TestDatabase.sql, Layer.setClock(clock)))
  const { context } = await shared.runtime()
  const node = (): { readonly run: Run; readonly dispose: () => Promise<void> } => {
    const runtime = ManagedRuntime.make(
      Layer.fresh(Layer.merge(Allowances.layer, Vouchers.layer)).pipe(
        Layer.provideMerge(Layer.fresh(Ledger.layer)),
        Layer.provideMerge(Layer.fresh(writer)),
        Layer.provideMerge(Layer.succeedContext(context)),
        Layer.provide(Layer.succeed(Plans, plans)),
        Layer.provideMerge(Layer.setClock(clock))
      )
    )
    return { run: (effect) => runtime.runPromise(effect), dispose: () => runtime.dispose() }
  }
  const [a, b] = [node(), node()]
  return Object.assign(scene, {
    nodes: [a.run, b.run] as const,
    close: async () => {
      await a.dispose()
      await b.dispose()
      await shared.dispose()
    }
  })
}

export const open = (tenant: TenantId) =>
  Effect.flatMap(Ledger, (ledger) => ledger.open({ account: billingAccountOf(tenant), tenant }))

/** A turn of the loop; answers whether the node lived to its end. */
export const renewDue = Effect.map(Effect.exit(Effect.flatMap(Allowances, ({ renewDue }) => renewDue)), Exit.isSuccess)

export const entries = (tenant: TenantId) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.map(ledger.entries(billingAccountOf(tenant), { page: 1, per_page: 100_000 }), ({ records }) =>
      records.toReversed()
    )
  )

/** Credit that was granted since the last grant of the allowance, less what was taken back: a renewal leaves it. */
export const grantedSince = (tenant: TenantId) =>
  Effect.map(entries(tenant), (all) => {
    const last = all.findLastIndex(({ source, type }) => source === "allowance" && type === "credit")
    let sum = 0n
    for (const { amount, source, type } of all.slice(last + 1)) {
      if (source === "admin" || source === "purchase" || source === "voucher")
        sum += type === "debit" ? -amount : source === "purchase" ? 0n : amount
      if (sum < 0n) sum = 0n
    }
    return sum
  })

export const account = (tenant: TenantId) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.map(ledger.accounts([billingAccountOf(tenant)]), (found) => found.get(billingAccountOf(tenant))!)
  )

/** A call that is admitted with this much. */
export const reserve = (tenant: TenantId, call: string, most: bigint, run = "run_1") =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.reserve({
      call,
      sources: [{ billing_account_id: billingAccountOf(tenant), tenant_id: tenant, kind: "own", why: "own" }],
      least: 1n,
      most,
      run,
      facts: {
        account_id: "acc_1",
        tenant_id: tenant,
        application_id: null,
        usage_type: "inference",
        endpoint: "chat/completions",
        model: "small",
        provider: "sandbox"
      }
    })
  )

/** Answers the charge. */
export const settle = (call: string, cost: bigint) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.map(
      ledger.settle({
        call,
        outcome: {
          cost,
          prompt_tokens: 1,
          completion_tokens: 1,
          units: 0,
          success: true,
          error_type: null,
          usage_source: "provider",
          latency_ms: 1
        }
      }),
      (settled) => (settled._tag === "Settled" ? settled.collected : 0n)
    )
  )

export const findings = Effect.zipWith(verify, trialBalance, (found, { customers, escrow, revenue, world }) => ({
  found: found.map(({ message }) => message),
  sum: customers + escrow + revenue + world
}))
