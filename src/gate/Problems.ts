import { Problem } from "../kernel/Problem.ts"

/** `details`: `available_usd`, `required_usd` and, where a smaller call could pass, what to ask for instead. */
export class InsufficientCredits extends Problem<InsufficientCredits>()("InsufficientCredits", {
  status: 402,
  error: "insufficient credits",
  code: "insufficient_credits"
}) {}
