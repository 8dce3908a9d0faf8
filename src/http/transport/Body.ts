/** Parses the bodies and queries of raw routes with a schema. Refusals are worded as on other routes. */
import { Either, Schema } from "effect"
import { parse } from "./Json.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"

/** Creates a parser of JSON bodies with this schema. */
export const json = <A, I>(schema: Schema.Schema<A, I>): ((bytes: Buffer) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (bytes) => Either.flatMap(parse(bytes), (value) => Either.mapLeft(decode(value), InvalidRequest.ofDecoding))
}

/** Creates a parser of queries with this schema. If a name is repeated, the last value wins. */
export const query = <A, I>(
  schema: Schema.Schema<A, I>
): ((params: URLSearchParams) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (params) => Either.mapLeft(decode(Object.fromEntries(params)), InvalidRequest.ofDecoding)
}
