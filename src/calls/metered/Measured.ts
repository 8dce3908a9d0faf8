/** Measures what a complete response used and costs. */
import type { Measured } from "../../books/gate/Gate.ts"
import type { Nano } from "../../kernel/Money.ts"

/** Builds the measurement of a complete response. By default, it has 0 tokens, and the units are the service's own count. */
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
