/** The measured usage and cost of a call. */
import type { Measured } from "../../books/gate/Gate.ts"
import type { Nano } from "../../kernel/Money.ts"

/** Describes a successful call. By default, it has no tokens, and the service itself counted its units. */
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
