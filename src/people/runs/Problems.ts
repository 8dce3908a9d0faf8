import { Schema } from "effect"
import { RunId } from "../../kernel/Ids.ts"
import { Problem } from "../../kernel/Problem.ts"

/** The run does not exist, or the caller may not see it. */
export class RunNotFound extends Problem<RunNotFound>()("RunNotFound", {
  status: 404,
  error: "there is no such run",
  code: "run_not_found",
  fields: { run_id: RunId },
  details: {}
}) {}

/** The credential is a user token. */
export class RunNeedsKey extends Problem<RunNeedsKey>()("RunNeedsKey", {
  status: 403,
  error: "create a run with an API key or a run's key",
  code: "api_key_required"
}) {}

export class TooManyRuns extends Problem<TooManyRuns>()("TooManyRuns", {
  status: 409,
  error: "this tenant has too many open runs; end one first",
  code: "too_many_runs",
  fields: { open_max: Schema.Int }
}) {}
