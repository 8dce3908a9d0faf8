/** What the ledger refuses with, whoever asks. */
import { Problem } from "../kernel/Problem.ts"

/**
 * The database cannot be written at the moment: it is locked by another process, its disk is full, or the disk fails. Nothing was
 * written. Trying again later makes sense.
 */
export class BooksUnavailable extends Problem<BooksUnavailable>()("BooksUnavailable", {
  status: 503,
  error: "the books cannot be written at the moment, try again shortly",
  code: "books_unavailable"
}) {}
