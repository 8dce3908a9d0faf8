/** The refusal of a request of which a field breaks a rule, whatever its domain. */
import { Schema } from "effect"
import { Problem } from "./Problem.ts"

/** Which field breaks which rule; an empty field means the request itself. */
export const BrokenRule = { field: Schema.String, rule: Schema.String } as const

export class InvalidRequest extends Problem<InvalidRequest>()("InvalidRequest", {
  status: 400,
  error: "the request is not valid",
  code: "invalid_request",
  fields: BrokenRule
}) {
  /** With the text `field: rule`. */
  static of(field: string, rule: string): InvalidRequest {
    return new InvalidRequest({ field, rule, message: `${field}: ${rule}` })
  }
}
