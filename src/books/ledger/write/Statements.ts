/** Transactions without postings, for rooms that write to their own tables. */
import { Effect } from "effect"
import type { BooksUnavailable } from "../rules/Problems.ts"
import type { Statement } from "../rules/Transaction.ts"
import type { WriterContract } from "./Writer.ts"

/** Writes statements that must succeed. A statement that does not match its rows is a defect. */
export const write = (
  { submit }: WriterContract,
  ...statements: ReadonlyArray<Statement>
): Effect.Effect<void, BooksUnavailable> =>
  Effect.asVoid(Effect.catchTag(submit({ postings: [], statements }), "Conflict", Effect.die))

/** Writes statements. If one does not match its rows, writes nothing and returns `false`. */
export const tryWrite = (
  { submit }: WriterContract,
  ...statements: ReadonlyArray<Statement>
): Effect.Effect<boolean, BooksUnavailable> =>
  submit({ postings: [], statements }).pipe(
    Effect.as(true),
    Effect.catchTag("Conflict", () => Effect.succeed(false))
  )
