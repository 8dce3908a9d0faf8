/** What the ledger refuses with, whoever asks. */
import { Schema } from "effect"
import { Problem } from "../kernel/Problem.ts"

/**
 * The database cannot be written at the moment: it is locked by another process, its disk is full, or the disk fails. Trying again
 * later makes sense.
 */
export class BooksUnavailable extends Problem<BooksUnavailable>()("BooksUnavailable", {
  status: 503,
  error: "the books cannot be written at the moment, try again shortly",
  code: "books_unavailable",
  fields: {
    /**
     * `false`: nothing was written. `true`: no answer came in time, or the writer ended before it answered, so that it may have been
     * written, or may be yet.
     */
    maybe_written: Schema.propertySignature(Schema.Boolean).pipe(Schema.withConstructorDefault(() => false))
  },
  details: {}
}) {}
