/** Transactions without postings: what a room writes to its own tables. */
import { Effect } from "effect"
import type { BooksUnavailable } from "../rules/Problems.ts"
import type { Statement } from "../rules/Transaction.ts"
import type { WriterContract } from "./Writer.ts"

/** Writes statements that nothing can refuse: that one does not find the rows that it demands is a defect. */
export const write = (
  { submit }: WriterContract,
  ...statements: ReadonlyArray<Statement>
): Effect.Effect<void, BooksUnavailable> =>
  Effect.asVoid(Effect.catchTag(submit({ postings: [], statements }), "Conflict", Effect.die))

/** Writes statements, and answers whether it did: not where one of them does not find the rows that it demands. */
export const tryWrite = (
  { submit }: WriterContract,
  ...statements: ReadonlyArray<Statement>
): Effect.Effect<boolean, BooksUnavailable> =>
  submit({ postings: [], statements }).pipe(
    Effect.as(true),
    Effect.catchTag("Conflict", () => Effect.succeed(false))
  )
