/** A host that meters a function of its own: no HTTP, no upstream. Who cannot pay is refused before the function runs. */
import { Effect, Layer } from "effect"
import * as Database from "tollgate/database"
import * as Gate from "tollgate/gate"
import * as Ledger from "tollgate/ledger"

const ada = { account_id: Gate.AccountId.make("acc_ada"), tenant_id: Gate.TenantId.make("ten_ada") }
const caller: Gate.Caller = { ...ada, application_id: null, credential: "api_key", team_first: false }

/** 0.1 USD a word. */
const priceOf = (words: number) => (Ledger.usd * BigInt(words)) / 10n

const noTokens = { prompt_tokens: 0, completion_tokens: 0, usage_source: "provider" } as const

/** Counts the words of a text. The caller pays for each. */
const count = Effect.fn(function* (text: string) {
  const { meter } = yield* Gate.Gate
  const words = text.split(" ").length
  const most = priceOf(words)
  return yield* meter(
    { caller, usage_type: "tool", endpoint: "count", model: "words", provider: "host", most, least: most },
    (admission) =>
      admission.answer({ ...noTokens, cost: most, units: words, success: true, error_type: null }, (receipt) => ({
        words,
        receipt
      }))
  )
})

const program = Effect.gen(function* () {
  const ledger = yield* Ledger.Ledger
  const account = Ledger.billingAccountOf(caller.tenant_id)
  yield* ledger.open({ account, tenant: caller.tenant_id })
  yield* ledger.credit({ account, amount: Ledger.usd / 2n, source: "purchase", reference: "order 1" })
  const { receipt, words } = yield* count("three words here")
  const refused = yield* count("three words more").pipe(
    Effect.as("counted"),
    Effect.catchTag("InsufficientCredits", ({ available, required }) => Effect.succeed(`${available} of ${required}`))
  )
  return {
    words,
    charged: `${receipt.charged}`,
    balance: `${receipt.balance}`,
    refused,
    findings: yield* Ledger.verify
  }
})

const rooms = Layer.merge(Gate.layer, Ledger.layer).pipe(
  Layer.provide(Gate.Payers.layerOwnOnly),
  Layer.provideMerge(Database.layerMemory)
)

console.log(JSON.stringify(await Effect.runPromise(Effect.provide(program, rooms))))
