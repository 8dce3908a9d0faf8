/** The refusal of a request whose field breaks a rule, in any domain. */
import { ParseResult, Schema } from "effect"
import { Problem } from "./Problem.ts"

/** A field's name and a rule may hold what the caller sent, and are not given back at any length. */
const lengthMax = 200

const shortened = (text: string): string => (text.length > lengthMax ? `${text.slice(0, lengthMax)}...` : text)

/** The schema's name in the program means nothing to a caller. The body itself is always an object. */
const ruleOf = ({ message, path }: Pick<ParseResult.ArrayFormatterIssue, "path" | "message">): string =>
  message.replace(
    path.length === 0
      ? /^Expected (?:\{ readonly .*? \}|[A-Z][\w ()]*?), actual /s
      : /^Expected (?:\{ readonly .*? \}|Struct(?: \(Encoded side\))?), actual /s,
    "Expected an object, actual "
  )

/** Which field breaks which rule; an empty field means the request itself. */
export const BrokenRule = { field: Schema.String, rule: Schema.String } as const

export class InvalidRequest extends Problem<InvalidRequest>()("InvalidRequest", {
  status: 400,
  error: "the request is not valid",
  code: "invalid_request",
  fields: BrokenRule
}) {
  /** With the text `field: rule`; without a field, of the request. */
  static of(field: string, rule: string): InvalidRequest {
    return new InvalidRequest({ field, rule, message: `${field === "" ? "the request" : field}: ${rule}` })
  }

  /** Names the first field that does not fit, and the rule. */
  static ofIssues(issues: ReadonlyArray<Pick<ParseResult.ArrayFormatterIssue, "path" | "message">>): InvalidRequest {
    const [issue] = issues
    const field = shortened(issue?.path.map(String).join(".") ?? "")
    const rule = shortened(issue === undefined ? "the documented shape" : ruleOf(issue))
    return InvalidRequest.of(field, rule)
  }

  /** The same for what decoding by a schema found. */
  static ofDecoding(error: ParseResult.ParseError): InvalidRequest {
    return InvalidRequest.ofIssues(ParseResult.ArrayFormatter.formatErrorSync(error))
  }
}
