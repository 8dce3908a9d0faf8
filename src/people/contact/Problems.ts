/** Refusals of the contact routes. */
import { Problem } from "../../kernel/Problem.ts"

/** An unknown, expired or used client token. */
export class InvalidClientToken extends Problem<InvalidClientToken>()("InvalidClientToken", {
  status: 401,
  error: "invalid or expired token"
}) {}
