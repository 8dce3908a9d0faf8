// Fills a database through our writer at full speed. Orders set the calls' dates. It runs in a separate process: `fill <database> <people.json>`.
// Together, the people with a key in the first person's tenant make a third of all calls. The other callers are Zipf-distributed. Each message orders
// a number of calls. With a third argument, the first tenant's calls cycle through that many different tags and end users.
import "../../src/app/V8.ts"
import { Clock, Context, Effect, Exit, Layer, Scope } from "effect"
import { readFileSync } from "node:fs"
import * as Ids from "../../src/kernel/Ids.ts"
import type { CallOutcome } from "../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import * as Sql from "../../src/storage/sqlite/Sql.ts"
import { callSequence, models, price } from "./calls.ts"
import { chargesAt } from "./charging.ts"
import type { Caller } from "./gateway.ts"
import { endWithParent, report } from "./processes.ts"
import type { Line } from "./store.ts"

const fiberCount = 256

/** A batch of calls: either a number of calls spread evenly over a period, or calls dated now for a number of seconds. */
type Stretch = { readonly calls: number; readonly from: number; readonly to: number } | { readonly seconds: number }

export type FillOrder = Stretch | { readonly end: true }

export interface Filled {
  readonly calls: number
  readonly rate: number
  /** The number of calls in the first tenant, followed by their cost in nano-USD. */
  readonly firstCalls: number
  readonly firstDue: number
}

const [database, peopleFile, labels = "0"] = process.argv.slice(2) as [string, string, string?]
const people = JSON.parse(readFileSync(peopleFile, "utf8")) as ReadonlyArray<Caller>

/** Returns a model's providers. A team with many members uses two, so its calls are as varied as a real large team's. */
const providersOf = (members: number): ReadonlyArray<string> => (members > 1 ? ["bench", "bench-2"] : ["bench"])

const linesOf = ({ account, application, tenant }: Caller, providers: ReadonlyArray<string>): ReadonlyArray<Line> =>
  models.flatMap((model) =>
    providers.map((provider) => ({
      account: Ids.billingAccountOf(tenant),
      tenant,
      person: account,
      application,
      endpoint: "/v1/chat/completions",
      model,
      provider
    }))
  )
const members = people.filter(({ tenant }) => tenant === people[0]!.tenant).length
/** Creates `labels` lines, each with a different task tag and end user. */
const labelled = (plain: ReadonlyArray<Line>): ReadonlyArray<Line> =>
  Array.from({ length: Number(labels) }, (_, i) => ({
    ...plain[i % plain.length]!,
    tags: `task=${i}`,
    end_user: `user-${i}`
  }))
const plain = people.slice(0, members).flatMap((one) => linesOf(one, providersOf(members)))
const ofTeam = labels === "0" ? plain : labelled(plain)
const lines: ReadonlyArray<Line> = [...ofTeam, ...people.slice(members).flatMap((one) => linesOf(one, ["bench"]))]
const team = members > 1 ? callSequence(members, ofTeam.length / members, 2) : undefined
const others = callSequence(people.length - members, models.length)
let drawn = 0
const next = (): number => {
  if (drawn++ % 3 > 0) return ofTeam.length + others()
  return team === undefined ? Math.floor(drawn / 3) % ofTeam.length : team()
}

const failed: CallOutcome = {
  cost: 0n,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  success: false,
  error_type: "upstream_error",
  usage_source: "none",
  latency_ms: 40
}

/** Outcomes of realistic lengths. One call in a thousand fails. */
const outcomes: ReadonlyArray<CallOutcome> = Array.from({ length: 8_191 }, (_, i) => {
  if (i % 1000 === 999) return failed
  const [prompt, completion] = [12 + ((i * 7919) % 4_001), 1 + ((i * 104_729) % 997)]
  return {
    cost: BigInt(prompt * price.prompt + completion * price.completion),
    prompt_tokens: prompt,
    completion_tokens: completion,
    units: prompt + completion,
    success: true,
    error_type: null,
    usage_source: "provider",
    latency_ms: 100 + ((i * 15_485_863) % 20_011)
  }
})
const bound = outcomes.reduce((most, { cost }) => (cost > most ? cost : most), 0n)

// ---- the clock ----------------------------------------------------------------------------------------------------------

let nowMillis = Date.now
const clock: Clock.Clock = Object.assign(Object.create(Clock.make()) as Clock.Clock, {
  unsafeCurrentTimeMillis: () => nowMillis(),
  currentTimeMillis: Effect.sync(() => nowMillis())
})

// ---- filling ------------------------------------------------------------------------------------------------------------

const filling = Effect.gen(function* () {
  const layer = Layer.provide(Writer.layerThread(database), Sql.layer(database))
  const writer = yield* Effect.map(Layer.build(layer), Context.get(Writer))
  const chargeAt = chargesAt(writer, lines, Ids.at("run", nowMillis()))

  return async (order: Stretch): Promise<Filled> => {
    let [begun, firstCalls, firstDue] = [0, 0, 0]
    const start = performance.now()
    if ("calls" in order) {
      const step = (order.to - order.from) / order.calls
      nowMillis = () => Math.floor(order.from + begun * step)
    } else nowMillis = Date.now
    const goesOn = () => ("calls" in order ? begun < order.calls : performance.now() < start + order.seconds * 1000)
    const onCharged = () => {}
    const charge = () => {
      const line = next()
      const outcome = outcomes[begun % outcomes.length]!
      if (line < ofTeam.length) {
        firstCalls++
        firstDue += Number(outcome.cost)
      }
      begun++
      return chargeAt({ call: Ids.at("call", nowMillis()), line, bound, outcome, onCharged })
    }
    const fiber = Effect.whileLoop({ while: goesOn, body: charge, step: () => {} })
    await Effect.runPromise(
      Effect.all(
        Array.from({ length: fiberCount }, () => fiber),
        { concurrency: "unbounded", discard: true }
      )
    )
    return { calls: begun, rate: (begun / (performance.now() - start)) * 1000, firstCalls, firstDue }
  }
})

// ---- the process --------------------------------------------------------------------------------------------------------

endWithParent()
const scope = Effect.runSync(Scope.make())
const fill = await Effect.runPromise(Effect.withClock(Scope.extend(filling, scope), clock))
process.on("message", (order: FillOrder) => {
  // Once the scope is closed, the database file is complete and has no write-ahead log.
  if ("end" in order) void Effect.runPromise(Scope.close(scope, Exit.void)).then(() => process.exit(0))
  else void fill(order).then(report)
})
report({ ready: true })
