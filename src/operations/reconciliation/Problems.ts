import { Data, Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class ReconciliationNotFound extends Problem<ReconciliationNotFound>()("ReconciliationNotFound", {
  status: 404,
  error: "this vendor's day was not reconciled",
  code: "reconciliation_not_found",
  fields: { vendor: Schema.String, day: Schema.String },
  details: {}
}) {}

/** The request for a reconciliation is invalid, because the vendor is unknown or a day is not closed. The message is written for the operator. */
export class CannotReconcile extends Data.TaggedError("CannotReconcile")<{ readonly message: string }> {}

/** The vendor's bill could not be read. The message contains no credential. */
export class BillUnavailable extends Data.TaggedError("BillUnavailable")<{ readonly message: string }> {}
