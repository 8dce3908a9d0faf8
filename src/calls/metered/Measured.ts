/** The measure of a complete answer. */
import type { Measured } from "../../books/gate/Gate.ts"
import type { Nano } from "../../kernel/Money.ts"

/** A complete answer. Without `rest`, its tokens are 0 and its units were counted by the service. */
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
