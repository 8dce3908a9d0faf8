// Charges a ledger through our writer, with or without the log of charges, in a separate process. Each charge first reserves and then settles. Usage:
// `logged <SQLite file or PostgreSQL URL> on|off`. Each message is an order.
import "../../src/app/V8.ts"
import { Context, Effect, Fiber, Layer, Redacted, Scope } from "effect"
import { SqlClient } from "@effect/sql/SqlClient"
import * as Database from "../../src/app/entry/database.ts"
import { lastEntry } from "../../src/books/ledger/rows/EntriesInOrder.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import { ChargeLog } from "../../src/books/log/ChargeLog.ts"
import * as Head from "../../src/books/log/Head.ts"
import { ServiceInfo } from "../../src/kernel/ServiceInfo.ts"
import { Runs } from "../../src/storage/engine/Runs.ts"
import * as DeploymentSecret from "../../src/storage/secret/DeploymentSecret.ts"
import { callPrice, callSequence, credit, manyCallers, models, usage } from "./calls.ts"
import { chargesAt } from "./charging.ts"
import { endWithParent, report } from "./processes.ts"
import type { Line } from "./store.ts"

/** An order: charge for a number of seconds, charge a number of times, complete the log, or describe the database. */
export type Order =
  | { readonly seconds: number }
  | { readonly charges: number }
  | { readonly log: true }
  | { readonly size: true }

/** The number of charges and their duration. */
export interface Charged {
  readonly charges: number
  readonly millis: number
}

/** The number of added entries and the duration. */
export interface Logged {
  readonly entries: number
  readonly millis: number
}

/** The number of entries in the ledger and in the log, and the size of the log's tables and indexes in bytes. */
export interface Size {
  readonly entries: number
  readonly logged: number
  readonly bytes: number
}

const [place, mode] = process.argv.slice(2) as [string, "on" | "off"]
const isPostgres = place.startsWith("postgres")
/** The number of concurrent charges. */
const fiberCount = isPostgres ? 512 : 64

const idOf = (kind: string, caller: number): string => `${kind}_06bench${String(caller).padStart(13, "0")}`

const lines: ReadonlyArray<Line> = Array.from({ length: manyCallers * models.length }, (_, i) => {
  const caller = Math.floor(i / models.length)
  return {
    account: idOf("bil", caller),
    tenant: idOf("ten", caller),
    person: idOf("acc", caller),
    application: idOf("app", caller),
    endpoint: "/v1/chat/completions",
    model: models[i % models.length]!,
    provider: "bench"
  }
})
const next = callSequence(manyCallers, models.length)

// Ids start with the time, like the service's ids.
const begun = Date.now().toString(32).padStart(9, "0")
const callId = (number: number): string => `call_${begun}${number.toString(32).padStart(11, "0")}`

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

/** Opens an account with credit for each caller. */
const opened = (writer: Writer["Type"]) =>
  Effect.forEach(
    Array.from({ length: manyCallers }, (_, caller) => caller),
    (caller) => {
      const account = idOf("bil", caller)
      const amount = BigInt(credit) * 1_000_000_000n
      const text = { source: "admin", reference: "bench", description: "bench" } as const
      return writer.submit({
        postings: [
          { _tag: "Open", account, tenant: idOf("ten", caller) },
          { _tag: "Credit", account, amount, ...text }
        ],
        statements: []
      })
    },
    { concurrency: "unbounded", discard: true }
  )

// ---- the log ------------------------------------------------------------------------------------------------------------

const log = ChargeLog.layer.pipe(
  Layer.provide(ServiceInfo.layer({ service_name: "bench", key_prefix: "svc", public_url: "https://bench.example" })),
  Layer.provide(DeploymentSecret.layer(new Uint8Array(32)))
)
const layer = log.pipe(
  Layer.provideMerge(Runs.layer),
  Layer.provideMerge(isPostgres ? Database.layerPostgres(Redacted.make(place)) : Database.layer(place))
)

const selectSize = isPostgres
  ? `SELECT CAST(sum(pg_total_relation_size(oid)) AS BIGINT) AS bytes FROM pg_class WHERE relkind = 'r' AND relname LIKE 'tollgate\\_log\\_%'`
  : `SELECT sum(d.pgsize) AS bytes FROM sqlite_schema s JOIN dbstat d ON d.name = s.name AND d.aggregate = TRUE
      WHERE s.tbl_name LIKE 'tollgate\\_log\\_%' ESCAPE '\\'`

const sizeOf = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [entries] = yield* sql<{ readonly n: number }>`SELECT count(*) AS n FROM tollgate_ledger_entries`
  const [size] = yield* sql.unsafe<{ readonly bytes: number }>(selectSize)
  const head = yield* Head.readShort(sql)
  return { entries: Number(entries!.n), logged: head?.size ?? 0, bytes: Number(size!.bytes) } satisfies Size
})

/**
 * Repeats the log's job with its pauses. An interruption waits for the current iteration. A round's first iteration adds the entries of the previous
 * round's last second, so each round includes the log's work for as many entries as it makes.
 */
const logLoop = Effect.flatMap(ChargeLog, ({ job }) =>
  Effect.forever(Effect.flatMap(Effect.uninterruptible(job.turn), (pause) => Effect.sleep(pause ?? 0)))
)

/** Adds all ledger entries to the log. */
const completed = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { add } = yield* ChargeLog
  const last = yield* lastEntry(sql)
  const sizeNow = Effect.map(Head.readShort(sql), (head) => head?.size ?? 0)
  const before = yield* sizeNow
  const start = performance.now()
  while (((yield* Head.readShort(sql))?.entry ?? 0) < last) yield* add
  return { entries: (yield* sizeNow) - before, millis: performance.now() - start } satisfies Logged
})

// ---- the process --------------------------------------------------------------------------------------------------------

const makeHandler = Effect.gen(function* () {
  const services = yield* Layer.build(layer)
  const writer = Context.get(services, Writer)
  yield* opened(writer)
  const chargeAt = chargesAt(writer, lines, Context.get(services, Runs).run)
  let made = 0
  const charge = () =>
    chargeAt({ call: callId(made++), line: next(), bound: BigInt(callPrice * 3), outcome, onCharged: () => {} })

  const charged = Effect.fnUntraced(function* (goesOn: () => boolean) {
    const before = made
    const start = performance.now()
    const loop = mode === "on" ? yield* Effect.fork(logLoop) : undefined
    const fiber = Effect.whileLoop({ while: goesOn, body: charge, step: () => {} })
    yield* Effect.all(
      Array.from({ length: fiberCount }, () => fiber),
      { concurrency: "unbounded", discard: true }
    )
    const millis = performance.now() - start
    if (loop !== undefined) yield* Fiber.interrupt(loop)
    return { charges: made - before, millis } satisfies Charged
  })

  const obey = (order: Order): Effect.Effect<object, unknown, SqlClient | ChargeLog> => {
    if ("log" in order) return completed
    if ("size" in order) return sizeOf
    if ("charges" in order) {
      const last = made + order.charges
      return charged(() => made < last)
    }
    const deadline = performance.now() + order.seconds * 1000
    return charged(() => performance.now() < deadline)
  }
  return (order: Order) => Effect.provide(obey(order), services)
})

endWithParent()
const handleOrder = await Effect.runPromise(Scope.extend(makeHandler, Effect.runSync(Scope.make())))
process.on("message", (order: Order) => void Effect.runPromise(handleOrder(order)).then(report))
report({ ready: true })
