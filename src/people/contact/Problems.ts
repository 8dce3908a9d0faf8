import { Problem } from "../../kernel/Problem.ts"

/** The client token is unknown, expired or already used. */
export class InvalidClientToken extends Problem<InvalidClientToken>()("InvalidClientToken", {
  status: 401,
  error: "invalid or expired token"
}) {}
