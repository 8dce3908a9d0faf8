/** The refusal of a request with an invalid field, in any domain. */
import { ParseResult, Schema } from "effect"
import { Problem } from "./Problem.ts"

/** A field's name and a rule may contain the caller's input, so their length in the response is limited. */
const lengthMax = 200

const shortened = (text: string): string => (text.length > lengthMax ? `${text.slice(0, lengthMax)}...` : text)

/** Hides the schema's internal name from the caller. The body itself is always an object. */
const ruleOf = ({ message, path }: Pick<ParseResult.ArrayFormatterIssue, "path" | "message">): string =>
  message.replace(
    path.length === 0
      ? /^Expected (?:\{ readonly .*? \}|[A-Z][\w ()]*?), actual /s
      : /^Expected (?:\{ readonly .*? \}|Struct(?: \(Encoded side\))?), actual /s,
    "Expected an object, actual "
  )

/** The field and the rule that it breaks. An empty field means the request itself. */
export const BrokenRule = { field: Schema.String, rule: Schema.String } as const

export class InvalidRequest extends Problem<InvalidRequest>()("InvalidRequest", {
  status: 400,
  error: "the request is not valid",
  code: "invalid_request",
  fields: BrokenRule
}) {
  /** With the text `field: rule`, or `the request: rule` for an empty field. */
  static of(field: string, rule: string): InvalidRequest {
    return new InvalidRequest({ field, rule, message: `${field === "" ? "the request" : field}: ${rule}` })
  }

  /** Names the first invalid field and the rule. */
  static ofIssues(issues: ReadonlyArray<Pick<ParseResult.ArrayFormatterIssue, "path" | "message">>): InvalidRequest {
    const [issue] = issues
    const field = shortened(issue?.path.map(String).join(".") ?? "")
    const rule = shortened(issue === undefined ? "the documented shape" : ruleOf(issue))
    return InvalidRequest.of(field, rule)
  }

  /** Like `ofIssues`, for an error of schema decoding. */
  static ofDecoding(error: ParseResult.ParseError): InvalidRequest {
    return InvalidRequest.ofIssues(ParseResult.ArrayFormatter.formatErrorSync(error))
  }
}
