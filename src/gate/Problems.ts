/** What the gate refuses with. */
import { Schema } from "effect"
import { Problem } from "../kernel/Problem.ts"
import { BooksUnavailable } from "../ledger/Problems.ts"

/** `details`: `available_usd`, `required_usd` and, where a smaller call could pass, what to ask for instead. */
export class InsufficientCredits extends Problem<InsufficientCredits>()("InsufficientCredits", {
  status: 402,
  error: "insufficient credits",
  code: "insufficient_credits"
}) {}

/** Every refusal of the gate: the caller cannot pay, or the books cannot be written. */
export const GateRefusal = Schema.Union(InsufficientCredits, BooksUnavailable)
