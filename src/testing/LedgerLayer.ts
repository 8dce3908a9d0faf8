/** A `Ledger` and its `Writer` as layers, for the property suite: ours in memory, or anybody's. */
import { Effect, Either, Layer, ManagedRuntime, Option, Schema } from "effect"
import type { BillingAccountId } from "../kernel/Ids.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { LedgerRefusal } from "../ledger/Problems.ts"
import { Writer } from "../ledger/Writer.ts"
import * as Sql from "../sql/Sql.ts"
import type { LedgerUnderTest } from "./LedgerProperties.ts"

/** The ledger of this package over a fresh database in memory. */
export const layerMemory = Ledger.layer.pipe(Layer.provideMerge(Writer.layer), Layer.provideMerge(Sql.layerMemory))

/** As plain data, like the results. */
const refusalOf = Schema.encodeSync(LedgerRefusal)

/** A fresh ledger from the layer, each time it is asked. */
export const ofLayer =
  <E>(layer: Layer.Layer<Ledger | Writer, E>) =>
  async (): Promise<LedgerUnderTest> => {
    const runtime = ManagedRuntime.make(Layer.fresh(layer))
    return {
      submit: (postings) =>
        runtime.runPromise(
          Effect.map(
            Effect.flatMap(Writer, (writer) => writer.submit({ postings, statements: [] })).pipe(
              // Nothing is known then of what was done, so the story cannot go on.
              Effect.catchTag("BooksUnavailable", Effect.die),
              Effect.either
            ),
            Either.match({
              onLeft: (refusal) => ({ refusal: refusalOf(refusal) }),
              onRight: (results) => ({ results })
            })
          )
        ),
      account: (id) =>
        runtime.runPromise(
          Effect.map(
            Effect.flatMap(Ledger, (ledger) => ledger.account(id as BillingAccountId)),
            Option.getOrUndefined
          )
        ),
      entries: (id) =>
        runtime.runPromise(
          Effect.map(
            Effect.flatMap(Ledger, (ledger) => ledger.entries(id as BillingAccountId, { page: 1, per_page: 10_000 })),
            ({ records }) => records.toReversed()
          )
        ),
      close: () => runtime.dispose()
    }
  }
