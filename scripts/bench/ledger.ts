// Charges a second at the ledger alone, without HTTP: raw loops of group commits on one side, our Ledger layer under 64 fibers on the
// other. A charge is reserve, then settle. One side a process: `ledger raw|same|ours <folder> <seconds>`.
import "../../src/V8.ts"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import Sqlite from "better-sqlite3"
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { join } from "node:path"
import type { BooksUnavailable } from "../../src/ledger/Problems.ts"
import type { Refusal } from "../../src/ledger/Transaction.ts"
import { Writer } from "../../src/ledger/Writer.ts"
import * as Sql from "../../src/sql/Sql.ts"
import { callPrice, credit, endWithParent, model, report, usage } from "./common.ts"
import { openStore } from "./store.ts"

const fibers = 64

export interface Charges {
  readonly rate: number
  readonly charges: number
}

const account = "bil_06bench0000000000000"
const tenant = "ten_06bench0000000000000"
const application = "app_06bench0000000000000"
const person = "acc_06bench0000000000000"
const endpoint = "/v1/chat/completions"
const provider = "bench"
const bound = callPrice * 3

// Ids as the service makes them: their time first.
const begun = Date.now().toString(32).padStart(9, "0")
const callId = (number: number): string => `call_${begun}${number.toString(32).padStart(11, "0")}`

// ---- raw ----------------------------------------------------------------------------------------------------------------

/** A loop of groups of 64 charges, each group two commits: its reservations, its settlements. */
const loop = (seconds: number, group: (first: number) => void): Charges => {
  let made = 0
  const until = (deadline: number) => {
    for (; performance.now() < deadline; made += fibers) group(made)
  }
  until(performance.now() + 500)
  const before = made
  const start = performance.now()
  until(start + seconds * 1000)
  return { rate: ((made - before) / (performance.now() - start)) * 1000, charges: made }
}

const agree = (
  side: string,
  charges: number,
  books: { readonly records: number; readonly collected: number }
): void => {
  if (books.records === charges && books.collected === charges * callPrice) return
  throw new Error(`WRONG CHARGE on the side "${side}": ${charges} charges, its books say ${JSON.stringify(books)}`)
}

/** The yardstick: the floor's books. */
const raw = (directory: string, seconds: number): Charges => {
  const store = openStore(directory)
  store.open(account, credit * 1e9)
  const charges = loop(seconds, (first) => {
    store.group(() => {
      for (let i = 0; i < fibers; i++) store.reserve(callId(first + i), account, bound)
    })
    store.group(() => {
      for (let i = 0; i < fibers; i++) {
        store.settle({
          call: callId(first + i),
          account,
          tenant,
          application,
          endpoint,
          model,
          provider,
          prompt: usage.prompt_tokens,
          completion: usage.completion_tokens,
          cost: callPrice,
          latency: 1
        })
      }
    })
  })
  agree("raw", charges.charges, store.look(account))
  store.close()
  return charges
}

const source = { billing_account_id: account, tenant_id: tenant, kind: "own", why: "own" } as const
const sources = [source]
const facts = {
  account_id: person,
  tenant_id: tenant,
  application_id: application,
  usage_type: "inference",
  endpoint,
  model,
  provider
} as const

/** The rows that the service keeps, in its own tables, by prepared statements and nothing between: nothing is looked up or decided. */
const same = async (directory: string, seconds: number): Promise<Charges> => {
  const file = join(directory, "same.db")
  await Effect.runPromise(Effect.provide(Sql.migrate(undefined), SqliteClient.layer({ filename: file })))
  const db = new Sqlite(file)
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.pragma("wal_autocheckpoint = 4000")
  if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite did not take synchronous = FULL")

  const into = (table: string, columns: string, conflict = "") =>
    db.prepare(
      `INSERT INTO ${table} (${columns}) VALUES (${columns
        .split(",")
        .map(() => "?")
        .join(", ")}) ${conflict}`
    )
  const sums = ["requests", "successes", "prompt_tokens", "completion_tokens", "units", "cost", "latency_ms"]
  const rollup = (table: string, key: string) =>
    into(
      table,
      `${key}, ${sums.join(", ")}`,
      `ON CONFLICT (${key}) DO UPDATE SET ${sums.map((sum) => `${sum} = ${sum} + excluded.${sum}`).join(", ")}`
    )
  const begin = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const openAccount = into(
    "tollgate_ledger_accounts",
    "id, tenant_id, status, giftable, granted, held, reserved, funded, entries"
  )
  const hold = db.prepare("UPDATE tollgate_ledger_accounts SET reserved = reserved + ? WHERE id = ?")
  const pay = db.prepare(
    "UPDATE tollgate_ledger_accounts SET granted = granted - ?, reserved = reserved - ?, entries = entries + ? WHERE id = ?"
  )
  const dimensions = db
    .prepare(
      `INSERT INTO tollgate_usage_dimensions
        VALUES (NULL, :account_id, :tenant_id, :application_id, :usage_type, :endpoint, :model, :provider, '', :payer, :tenant_id, 'own', 'own')`
    )
    .run({ ...facts, payer: account }).lastInsertRowid
  const putReservation = into("tollgate_ledger_reservations", "id, dimensions, amount, at, run")
  const takeReservation = db.prepare("DELETE FROM tollgate_ledger_reservations WHERE id = ?")
  const putEntry = into(
    "tollgate_ledger_entries",
    "seq, billing_account_id, number, type, amount, balance, giftable, source, reference_id, description, at"
  )
  const putBucket = into(
    "tollgate_ledger_buckets",
    "billing_account_id, bucket, first_number, last_number",
    "ON CONFLICT (billing_account_id, bucket) DO UPDATE SET last_number = excluded.last_number"
  )
  const putUsage = into(
    "tollgate_usage_records",
    `seq, id, tenant_id, number, at, dimensions, prompt_tokens, completion_tokens, units, cost, uncollected, reserved,
     usage_source, latency_ms, success, error_type`
  )
  const putUsageBucket = into(
    "tollgate_usage_buckets",
    "tenant_id, bucket, first_number, last_number, first_at, last_at",
    "ON CONFLICT (tenant_id, bucket) DO UPDATE SET last_number = excluded.last_number, last_at = excluded.last_at"
  )
  const putCounter = into(
    "tollgate_usage_counters",
    "tenant_id, records",
    "ON CONFLICT (tenant_id) DO UPDATE SET records = excluded.records"
  )
  const byTenant = rollup("tollgate_usage_by_tenant", "tenant_id, start, application_id, usage_type, provider")
  const byCaller = rollup("tollgate_usage_by_caller", "tenant_id, account_id, grain, start, model, endpoint")
  const byPayer = rollup("tollgate_usage_by_payer", "billing_account_id, start, account_id, billing_source_kind")

  let balance = credit * 1e9
  let reserved = 0
  openAccount.run(account, tenant, "active", 0, balance, 0, 0, 0, 0)
  const [day, hour] = [86_400_000, 3_600_000]
  const tokens = usage.prompt_tokens + usage.completion_tokens

  const charges = loop(seconds, (first) => {
    begin.run()
    for (let i = 0; i < fibers; i++) {
      if (balance - reserved < bound) throw new Error("out of credit")
      reserved += bound
      putReservation.run(callId(first + i), dimensions, bound, Date.now(), begun)
    }
    hold.run(bound * fibers, account)
    commit.run()

    begin.run()
    const at = Date.now()
    for (let i = 0; i < fibers; i++) {
      const number = first + i + 1
      const call = callId(first + i)
      const record = `use_${call.slice(5)}`
      takeReservation.run(call)
      reserved -= bound
      balance -= callPrice
      putEntry.run([number, account, number, "debit", callPrice, balance, 0, null, record, model, at])
      // prettier-ignore
      putUsage.run([
        number, record, tenant, number, at, dimensions, usage.prompt_tokens, usage.completion_tokens, tokens, callPrice, 0,
        bound, "provider", 1, 1, null
      ])
    }
    pay.run(callPrice * fibers, bound * fibers, fibers, account)
    const last = first + fibers
    putBucket.run(account, last >> 16, first + 1, last)
    putUsageBucket.run(tenant, last >> 16, first + 1, last, at, at)
    putCounter.run(tenant, last)
    // Summed over the group, so that a busy row is written once a commit.
    const summed = [usage.prompt_tokens, usage.completion_tokens, tokens, callPrice, 1].map((value) => value * fibers)
    byTenant.run(tenant, at - (at % day), application, "inference", provider, fibers, fibers, summed)
    for (const grain of [day, hour]) {
      byCaller.run(tenant, person, grain, at - (at % grain), model, endpoint, fibers, fibers, summed)
    }
    byPayer.run(account, at - (at % day), person, "own", fibers, fibers, summed)
    commit.run()
  })
  const look = db.prepare(
    "SELECT (SELECT count(*) FROM tollgate_usage_records) AS records, (SELECT sum(amount) FROM tollgate_ledger_entries) AS collected"
  )
  agree("same", charges.charges, look.get() as { readonly records: number; readonly collected: number })
  db.close()
  return charges
}

// ---- ours ---------------------------------------------------------------------------------------------------------------

/** What our side needs to be driven: one charge as an effect, and a look at the balance afterwards. */
export interface Charging {
  readonly charge: (number: number) => Effect.Effect<void, Refusal | BooksUnavailable>
  /** What all charges together took from the balance, in nano-USD. */
  readonly collected: Effect.Effect<bigint>
}

// Driven at the writer, which every charge of the ledger goes through; to be moved up to `Ledger` when its interface stands.
const ours = (directory: string): Effect.Effect<Charging, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const file = join(directory, "ours.db")
    const layer = Layer.provide(Writer.layerThread(file), Sql.layer(file))
    const writer = yield* Effect.map(Layer.build(layer), Context.get(Writer))
    const amount = BigInt(credit) * 1_000_000_000n
    yield* writer.submit({
      postings: [
        { _tag: "Open", account, tenant },
        { _tag: "Credit", account, amount, source: "admin", reference: "bench", description: "bench" }
      ],
      statements: []
    })
    const most = BigInt(bound)
    const outcome = {
      cost: BigInt(callPrice),
      prompt_tokens: usage.prompt_tokens,
      completion_tokens: usage.completion_tokens,
      units: usage.total_tokens,
      success: true,
      error_type: null,
      usage_source: "provider",
      latency_ms: 1
    } as const
    let last = amount
    const charge = (number: number) => {
      const call = callId(number)
      const reserve = { _tag: "Reserve", call, sources, least: most, most, run: begun, facts } as const
      const settle = { _tag: "Settle", call, outcome } as const
      const settled = writer.submit({ postings: [settle], statements: [] })
      return Effect.map(
        Effect.flatMap(writer.submit({ postings: [reserve], statements: [] }), () => settled),
        ([result]) => {
          if (result?._tag === "Settled" && result.balance < last) last = result.balance
        }
      )
    }
    return { charge, collected: Effect.sync(() => amount - last) }
  })

/** 64 fibers, each charging one call after the other, until the time is over. */
const drive = ({ charge, collected }: Charging, seconds: number): Effect.Effect<Charges, Refusal | BooksUnavailable> =>
  Effect.gen(function* () {
    let made = 0
    const until = (deadline: number) =>
      Effect.forEach(
        Array.from({ length: fibers }),
        () =>
          Effect.whileLoop({ while: () => performance.now() < deadline, body: () => charge(made++), step: () => {} }),
        { concurrency: "unbounded", discard: true }
      )
    yield* until(performance.now() + 500)
    const before = made
    const start = performance.now()
    yield* until(start + seconds * 1000)
    const rate = ((made - before) / (performance.now() - start)) * 1000
    const took = yield* collected
    if (took !== BigInt(made * callPrice)) {
      return yield* Effect.dieMessage(`WRONG CHARGE in our ledger: ${made} charges took ${took} nano-USD`)
    }
    return { rate, charges: made }
  })

// ---- the process --------------------------------------------------------------------------------------------------------

const sides: Readonly<Record<string, (directory: string, seconds: number) => Charges | Promise<Charges>>> = {
  raw,
  same,
  ours: (directory, seconds) =>
    Effect.runPromise(Effect.scoped(Effect.flatMap(ours(directory), (charging) => drive(charging, seconds))))
}

const [side, directory, seconds] = process.argv.slice(2) as [string, string, string]

endWithParent()
report(await sides[side]!(directory, Number(seconds)))
