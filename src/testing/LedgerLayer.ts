/** Connects layers of `Ledger` and `Writer`, from this package or another implementation, to the property suite. */
import { Effect, Layer, ManagedRuntime, Option, Schema } from "effect"
import type { BillingAccountId } from "../kernel/Ids.ts"
import { Ledger } from "../books/ledger/Ledger.ts"
import type { LedgerContract } from "../books/ledger/Ledger.ts"
import { LedgerRefusal } from "../books/ledger/rules/Problems.ts"
import type { BooksUnavailable } from "../books/ledger/rules/Problems.ts"
import type { Result } from "../books/ledger/rules/Transaction.ts"
import { Writer } from "../books/ledger/write/Writer.ts"
import type { Submitted } from "../books/ledger/write/Submitting.ts"
import * as Sql from "../storage/sqlite/Sql.ts"
import type { Answer, LedgerUnderTest } from "./LedgerProperties.ts"
import type { StoryPosting } from "./LedgerModel.ts"

/** This package's ledger on a fresh in-memory database. */
export const layerMemory = Ledger.layer.pipe(Layer.provideMerge(Writer.layer), Layer.provideMerge(Sql.layerMemory))

/** Converts a refusal to the plain data of an `Answer`. */
const refusalOf = Schema.encodeSync(LedgerRefusal)

/** Submits a posting through the ledger operation of the same name. */
const operate = (ledger: LedgerContract, posting: StoryPosting): Submitted => {
  const one = (result: Effect.Effect<Result, LedgerRefusal | BooksUnavailable>) => Effect.map(result, (it) => [it])
  switch (posting._tag) {
    case "Open":
      return one(ledger.open(posting))
    case "SetStatus":
      return one(ledger.setStatus(posting))
    case "Credit":
      return one(ledger.credit(posting))
    case "TakeBack":
      return one(ledger.takeBack(posting))
    case "Renew":
      return one(ledger.renew(posting))
    case "Escrow":
      return one(ledger.escrow(posting))
    case "EndEscrow":
      return one(ledger.endEscrow(posting))
    case "SetLimit":
      return one(ledger.setLimit(posting))
    case "Reserve":
      return one(ledger.reserve(posting))
    case "Settle":
      return one(ledger.settle(posting))
  }
}

/**
 * Returns a factory that builds a new ledger on each call. A single posting is submitted to an operation of `Ledger`, and several postings to the
 * `Writer`.
 */
export const ofLayer =
  <E>(layer: Layer.Layer<Ledger | Writer, E>) =>
  async (): Promise<LedgerUnderTest> => {
    const runtime = ManagedRuntime.make(Layer.fresh(layer))
    const submit = (postings: ReadonlyArray<StoryPosting>): Effect.Effect<Answer, never, Ledger | Writer> => {
      const [posting, second] = postings
      const submitted: Effect.Effect<
        ReadonlyArray<Result>,
        LedgerRefusal | BooksUnavailable,
        Ledger | Writer
      > = posting !== undefined && second === undefined
        ? Effect.flatMap(Ledger, (ledger) => operate(ledger, posting))
        : Effect.flatMap(Writer, (writer) => writer.submit({ postings, statements: [] }))
      return Effect.match(
        // The outcome is unknown, so the story cannot continue.
        Effect.catchTag(submitted, "BooksUnavailable", Effect.die),
        {
          onFailure: (refusal) => ({ refusal: refusalOf(refusal) }),
          onSuccess: (results) => ({ results })
        }
      )
    }
    return {
      submit: (postings) => runtime.runPromise(submit(postings)),
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
      limit: (application) =>
        runtime.runPromise(
          Effect.map(
            Effect.flatMap(Ledger, (ledger) => ledger.limits([application])),
            (limits) => limits.get(application)
          )
        ),
      close: () => runtime.dispose()
    }
  }
