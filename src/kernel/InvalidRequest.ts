/** The refusal of a request with an invalid field. */
import { ParseResult, Schema } from "effect"
import { Problem } from "./Problem.ts"

/** Field names and rules can repeat the caller's input, so their length is limited. */
const lengthMax = 200

const shortened = (text: string): string => (text.length > lengthMax ? `${text.slice(0, lengthMax)}...` : text)

/** Returns the rule without the schema's internal name. The body itself is always an object. */
const ruleOf = ({ message, path }: Pick<ParseResult.ArrayFormatterIssue, "path" | "message">): string =>
  message.replace(
    path.length === 0
      ? /^Expected (?:\{ readonly .*? \}|[A-Z][\w ()]*?), actual /s
      : /^Expected (?:\{ readonly .*? \}|Struct(?: \(Encoded side\))?), actual /s,
    "Expected an object, actual "
  )

/** The invalid field and the rule that it violates. An empty field stands for the request itself. */
export const BrokenRule = { field: Schema.String, rule: Schema.String } as const

export class InvalidRequest extends Problem<InvalidRequest>()("InvalidRequest", {
  status: 400,
  error: "the request is not valid",
  code: "invalid_request",
  fields: BrokenRule
}) {
  /** Builds the message `field: rule`, or `the request: rule` for an empty field. */
  static of(field: string, rule: string): InvalidRequest {
    return new InvalidRequest({ field, rule, message: `${field === "" ? "the request" : field}: ${rule}` })
  }

  /** Reports the first invalid field and the rule that it violates. */
  static ofIssues(issues: ReadonlyArray<Pick<ParseResult.ArrayFormatterIssue, "path" | "message">>): InvalidRequest {
    const [issue] = issues
    const field = shortened(issue?.path.map(String).join(".") ?? "")
    const rule = shortened(issue === undefined ? "must have the documented shape" : ruleOf(issue))
    return InvalidRequest.of(field, rule)
  }

  /** Works like `ofIssues`, for a schema's decoding error. */
  static ofDecoding(error: ParseResult.ParseError): InvalidRequest {
    return InvalidRequest.ofIssues(ParseResult.ArrayFormatter.formatErrorSync(error))
  }
}
