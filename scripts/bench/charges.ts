// Charges the ledger without HTTP, in a separate process. One side is a raw loop of group commits; the other is our writer with 64 fibers. A charge
// first reserves and then settles. Usage: `charges raw|ours <folder> <callers>`. Each message starts a round.
import "../../src/app/V8.ts"
import { Context, Effect, Layer, Scope } from "effect"
import { join } from "node:path"
import type { Transaction } from "../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import * as Sql from "../../src/storage/sqlite/Sql.ts"
import { callPrice, callSequence, credit, models, usage } from "./calls.ts"
import { chargesAt } from "./charging.ts"
import { endWithParent, report } from "./processes.ts"
import { openStore } from "./store.ts"
import type { Line } from "./store.ts"

const fiberCount = 64

export interface RoundOrder {
  readonly seconds: number
}

/** A round's result, sent after the charges in the database have been checked. */
export interface Round {
  readonly rate: number
}

const [side, directory, callerCount] = process.argv.slice(2) as ["raw" | "ours", string, string]
const callers = Number(callerCount)
const kinds = callers === 1 ? 1 : models.length

const idOf = (kind: string, caller: number): string => `${kind}_06bench${String(caller).padStart(13, "0")}`

/** The properties shared by all calls of a caller and model, indexed by `callSequence`. */
const lines: ReadonlyArray<Line> = Array.from({ length: callers * kinds }, (_, i) => ({
  account: idOf("bil", Math.floor(i / kinds)),
  tenant: idOf("ten", Math.floor(i / kinds)),
  person: idOf("acc", Math.floor(i / kinds)),
  application: idOf("app", Math.floor(i / kinds)),
  endpoint: "/v1/chat/completions",
  model: models[i % kinds]!,
  provider: "bench"
}))
const next = callSequence(callers, kinds)
const bound = callPrice * 3

// Ids start with the time, like the service's ids.
const begun = Date.now().toString(32).padStart(9, "0")
const callId = (number: number): string => `call_${begun}${number.toString(32).padStart(11, "0")}`

const agree = (made: number, books: object, collected: number): void => {
  if (collected === made * callPrice) return
  throw new Error(`WRONG CHARGE on the side "${side}": ${made} charges, its books say ${JSON.stringify(books)}`)
}

// ---- raw ----------------------------------------------------------------------------------------------------------------

/** Charges in groups of 64 with the floor's tables: one commit for their reservations and one for their settlements. */
const raw = () => {
  const store = openStore(directory)
  for (let caller = 0; caller < callers; caller++) store.open(idOf("bil", caller), credit * 1e9)
  let made = 0
  const group = (): void => {
    const those = Array.from({ length: fiberCount }, () => lines[next()]!)
    store.group(() => {
      for (let i = 0; i < fiberCount; i++) store.reserve(callId(made + i), those[i]!.account, bound)
    })
    store.group(() => {
      for (let i = 0; i < fiberCount; i++) {
        store.settle({
          call: callId(made + i),
          line: those[i]!,
          prompt: usage.prompt_tokens,
          completion: usage.completion_tokens,
          cost: callPrice,
          latency: 1
        })
      }
    })
    made += fiberCount
  }
  return ({ seconds }: RoundOrder): Promise<Round> => {
    const [before, start] = [made, performance.now()]
    while (performance.now() < start + seconds * 1000) group()
    const rate = ((made - before) / (performance.now() - start)) * 1000
    const { collected, records, reserved, summed } = store.look()
    agree(
      made,
      { records, reserved, summed },
      records === made && summed === collected && reserved === 0 ? collected : -1
    )
    return Promise.resolve({ rate })
  }
}

// ---- ours ---------------------------------------------------------------------------------------------------------------

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

const opening = (amount: bigint): Transaction => ({
  postings: Array.from({ length: callers }, (_, caller) => {
    const account = idOf("bil", caller)
    return [
      { _tag: "Open", account, tenant: idOf("ten", caller) },
      { _tag: "Credit", account, amount, source: "admin", reference: "bench", description: "bench" }
    ] as const
  }).flat(),
  statements: []
})

const ours = Effect.gen(function* () {
  const file = join(directory, "ours.db")
  const layer = Layer.provide(Writer.layerThread(file), Sql.layer(file))
  const writer = yield* Effect.map(Layer.build(layer), Context.get(Writer))
  const amount = BigInt(credit) * 1_000_000_000n
  yield* writer.submit(opening(amount))
  const chargeAt = chargesAt(writer, lines, begun)
  const balances = new Map<string, bigint>()
  let made = 0

  const charge = () => {
    const line = next()
    const { account } = lines[line]!
    const onCharged = (balance: bigint) => {
      const last = balances.get(account)
      if (last === undefined || balance < last) balances.set(account, balance)
    }
    return chargeAt({ call: callId(made++), line, bound: BigInt(bound), outcome, onCharged })
  }
  const fiber = (deadline: number) =>
    Effect.whileLoop({ while: () => performance.now() < deadline, body: charge, step: () => {} })

  return ({ seconds }: RoundOrder): Promise<Round> => {
    const [before, start] = [made, performance.now()]
    const deadline = start + seconds * 1000
    const fibers = Effect.all(
      Array.from({ length: fiberCount }, () => fiber(deadline)),
      { concurrency: "unbounded", discard: true }
    )
    return Effect.runPromise(fibers).then(() => {
      const rate = ((made - before) / (performance.now() - start)) * 1000
      let collected = 0n
      for (const balance of balances.values()) collected += amount - balance
      agree(made, { collected: String(collected) }, Number(collected))
      return { rate }
    })
  }
})

// ---- the process --------------------------------------------------------------------------------------------------------

endWithParent()
const round = side === "raw" ? raw() : await Effect.runPromise(Scope.extend(ours, Effect.runSync(Scope.make())))
process.on("message", (order: RoundOrder) => void round(order).then(report))
report({ ready: true })
