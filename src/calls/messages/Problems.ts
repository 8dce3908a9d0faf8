import { Problem } from "../../kernel/Problem.ts"

export class CountedTooOften extends Problem<CountedTooOften>()("CountedTooOften", {
  status: 429,
  error: "too many token counts in a minute; try again shortly",
  code: "rate_limited"
}) {}
