/** Measures the usage and cost of a complete response. */
import type { Measured } from "../../books/gate/Gate.ts"
import type { Nano } from "../../kernel/Money.ts"

/** Builds the measurement of a complete response. By default, the measurement contains 0 tokens and units counted by the service. */
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
