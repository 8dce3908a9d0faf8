/** A call's measured usage and cost. */
import type { Measured } from "../../books/gate/Gate.ts"
import type { Nano } from "../../kernel/Money.ts"

/** Builds a call's measurement. By default, the call succeeded and used no tokens, and the service counted its units. */
export const measuredOf = (
  cost: Nano,
  units: number,
  provider: string | null,
  rest: Partial<Measured> = {}
): Measured => ({
  cost,
  prompt_tokens: 0,
  completion_tokens: 0,
  units,
  provider,
  success: true,
  error_type: null,
  usage_source: "counted",
  ...rest
})
