/** Submits transactions without postings, for modules that write to their own tables. */
import { Effect } from "effect"
import type { BooksUnavailable } from "../rules/Problems.ts"
import type { Statement } from "../rules/Transaction.ts"
import type { WriterContract } from "./Writer.ts"

/** Writes statements that must match their rows. A mismatch is a defect. */
export const write = (
  { submit }: WriterContract,
  ...statements: ReadonlyArray<Statement>
): Effect.Effect<void, BooksUnavailable> =>
  Effect.asVoid(Effect.catchTag(submit({ postings: [], statements }), "Conflict", Effect.die))

/** Writes statements. Returns `false` and writes nothing if one of them does not match its rows. */
export const tryWrite = (
  { submit }: WriterContract,
  ...statements: ReadonlyArray<Statement>
): Effect.Effect<boolean, BooksUnavailable> =>
  submit({ postings: [], statements }).pipe(
    Effect.as(true),
    Effect.catchTag("Conflict", () => Effect.succeed(false))
  )
