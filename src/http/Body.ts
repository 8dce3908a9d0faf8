/** Bodies and queries of raw routes by their schema, refused in the same words as everywhere else. */
import { Either, ParseResult, Schema } from "effect"
import { parse } from "./Json.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"

/** A field's name and a rule may hold what the client sent, and are not sent back at any length. */
const lengthMax = 200

const shortened = (text: string): string => (text.length > lengthMax ? `${text.slice(0, lengthMax)}...` : text)

/** Names the first field that does not fit, and the rule. */
export const refusal = (
  issues: ReadonlyArray<Pick<ParseResult.ArrayFormatterIssue, "path" | "message">>
): InvalidRequest => {
  const [issue] = issues
  const field = shortened(issue?.path.map(String).join(".") ?? "")
  const rule = shortened(issue?.message ?? "the documented shape")
  return new InvalidRequest({
    message: field === "" ? `the request: ${rule}` : `${field}: ${rule}`,
    field,
    rule
  })
}

/** The same for what decoding by a schema found. */
export const refused = (error: ParseResult.ParseError): InvalidRequest =>
  refusal(ParseResult.ArrayFormatter.formatErrorSync(error))

/** Reads a JSON body of this shape. */
export const json = <A, I>(schema: Schema.Schema<A, I>): ((bytes: Buffer) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (bytes) => Either.flatMap(parse(bytes), (value) => Either.mapLeft(decode(value), refused))
}

/** Reads a query of this shape; of a name that stands twice, the last. */
export const query = <A, I>(
  schema: Schema.Schema<A, I>
): ((params: URLSearchParams) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (params) => Either.mapLeft(decode(Object.fromEntries(params)), refused)
}
