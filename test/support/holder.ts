/**
 * A second program on the same database, like a second host on one file. It admits a call that never ends, and a held call with an Idempotency-Key.
 * Then it reports this and waits to be killed. Its argument is the file.
 */
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer } from "effect"
import { Gate } from "../../src/books/gate/Gate.ts"
import { Payers } from "../../src/books/gate/Payers.ts"
import { Idempotency } from "../../src/http/idempotency/Idempotency.ts"
import { billingAccountOf } from "../../src/kernel/Ids.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import { layerOver } from "../../src/app/entry/database.ts"
import { caller, claim, key } from "../books/gate/two.ts"

const rooms = Layer.mergeAll(Gate.layer, Idempotency.layer).pipe(
  Layer.provide(Payers.layerOwnOnly),
  Layer.provideMerge(layerOver),
  Layer.provideMerge(SqliteClient.layer({ filename: process.argv[2]! }))
)

const program = Effect.gen(function* () {
  const gate = yield* Gate
  const keys = yield* Idempotency
  const writer = yield* Writer
  const account = billingAccountOf(caller.tenant_id)
  yield* writer.submit({
    postings: [
      { _tag: "Open", account, tenant: caller.tenant_id },
      { _tag: "Credit", account, amount: 100n, source: "purchase", reference: "pay", description: "paid" }
    ],
    statements: []
  })
  yield* gate.meter({ ...claim, most: 7n, least: 7n, held: true }, (admission) => admission.hold(undefined, []))
  yield* keys.once(
    caller,
    key,
    () => "the request",
    (beside) =>
      gate.meter({ ...claim, beside }, () =>
        Effect.zipRight(
          Effect.sync(() => console.log("admitted")),
          Effect.never
        )
      )
  )
})

await Effect.runPromise(Effect.scoped(Effect.provide(program, rooms)))
