import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class TooManyStreams extends Problem<TooManyStreams>()("TooManyStreams", {
  status: 429,
  error: "this account has too many open event streams",
  code: "too_many_streams",
  fields: { limit: Schema.Int }
}) {}

export class StreamsBusy extends Problem<StreamsBusy>()("StreamsBusy", {
  status: 503,
  error: "too many event streams are open; try again later",
  code: "busy"
}) {}
