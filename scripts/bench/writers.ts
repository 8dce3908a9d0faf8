// Drives a PostgreSQL node's writer with many fibers, without HTTP, in a separate process. Each charge first reserves and then settles. Usage:
// `writers <url> <place> <accounts>`. A message opens the accounts, charges each of them once, or starts a round.
import "../../src/app/V8.ts"
import { Context, Effect, Layer, Redacted, Scope } from "effect"
import * as Database from "../../src/app/entry/database.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import { Runs } from "../../src/storage/engine/Runs.ts"
import { callPrice, credit, models, numbers, usage } from "./calls.ts"
import { chargesAt } from "./charging.ts"
import { endWithParent, report } from "./processes.ts"
import type { Line } from "./store.ts"

/** An order: open all accounts with credit, charge each of them once, or charge the first `accounts` at random for a number of seconds. */
export type Order =
  | { readonly open: true }
  | { readonly each: true }
  | { readonly seconds: number; readonly accounts: number }

export interface Round {
  readonly rate: number
  /** The number of acknowledged charges of each account since the process started. */
  readonly charges: ReadonlyArray<number>
}

const fiberCount = 512

const [url, place, count] = process.argv.slice(2) as [string, string, string]

const idOf = (kind: string, account: number): string => `${kind}_06bench${String(account).padStart(13, "0")}`

const lineOf = (account: number): Line => ({
  account: idOf("bil", account),
  tenant: idOf("ten", account),
  person: idOf("acc", account),
  application: idOf("app", account),
  endpoint: "/v1/chat/completions",
  model: models[0],
  provider: "bench"
})

// Ids start with the time, like the service's ids.
const begun = Date.now().toString(32).padStart(9, "0")
const callId = (number: number): string => `call_${begun}${place}${number.toString(32).padStart(10, "0")}`

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

const layer = Runs.layer.pipe(Layer.provideMerge(Database.layerPostgres(Redacted.make(url))))

const writing = Effect.gen(function* () {
  const services = yield* Layer.build(layer)
  const writer = Context.get(services, Writer)
  const { run } = Context.get(services, Runs)
  const charges: Array<number> = []
  const random = numbers(Number(place) + 1)
  let made = 0
  const lines = Array.from({ length: Number(count) }, (_, account) => lineOf(account))
  const chargeAt = chargesAt(writer, lines, run)

  const open = Effect.forEach(
    lines,
    ({ account, tenant }) =>
      writer.submit({
        postings: [
          { _tag: "Open", account, tenant },
          {
            _tag: "Credit",
            account,
            amount: BigInt(credit) * 1_000_000_000n,
            source: "admin",
            reference: "bench",
            description: "bench"
          }
        ],
        statements: []
      }),
    { concurrency: "unbounded", discard: true }
  )

  const chargeOf = (line: number) => {
    const onCharged = () => void (charges[line] = (charges[line] ?? 0) + 1)
    return chargeAt({ call: callId(made++), line, bound: BigInt(callPrice * 3), outcome, onCharged })
  }
  const each = Effect.forEach(lines, (_, line) => Effect.suspend(() => chargeOf(line)), {
    concurrency: fiberCount,
    discard: true
  })

  const drive = (seconds: number, accounts: number) => {
    const before = made
    const start = performance.now()
    const deadline = start + seconds * 1000
    const charge = () => chargeOf(Math.floor(random() * accounts))
    const fiber = Effect.whileLoop({ while: () => performance.now() < deadline, body: charge, step: () => {} })
    return Effect.all(
      Array.from({ length: fiberCount }, () => fiber),
      { concurrency: "unbounded", discard: true }
    ).pipe(
      Effect.map(() => ({
        rate: ((made - before) / (performance.now() - start)) * 1000,
        charges: Array.from(charges, (count) => count ?? 0)
      }))
    )
  }
  return (order: Order): Effect.Effect<unknown, unknown> =>
    "open" in order ? open : "each" in order ? each : drive(order.seconds, order.accounts)
})

endWithParent()
const handleOrder = await Effect.runPromise(Scope.extend(writing, Effect.runSync(Scope.make())))
process.on("message", (order: Order) => {
  void Effect.runPromise(handleOrder(order)).then((answer) => report((answer as object | undefined) ?? {}))
})
report({ ready: true })
