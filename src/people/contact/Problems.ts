/** What the contact routes refuse. */
import { Problem } from "../../kernel/Problem.ts"

/** Missing, unknown, expired, or used before. */
export class InvalidClientToken extends Problem<InvalidClientToken>()("InvalidClientToken", {
  status: 401,
  error: "invalid or expired token"
}) {}
