/** Parses the bodies and queries of raw routes with a schema. Refusals are worded as on other routes. */
import { Effect, Either, Schema } from "effect"
import { parse, parseInPieces } from "./Json.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"

/** Creates a parser of JSON bodies with this schema. */
export const json = <A, I>(schema: Schema.Schema<A, I>): ((bytes: Buffer) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (bytes) => Either.flatMap(parse(bytes), (value) => Either.mapLeft(decode(value), InvalidRequest.ofDecoding))
}

/** Works like `json`, for a body that can contain images, without blocking the event loop. */
export const longJson = <A, I>(schema: Schema.Schema<A, I>): ((bytes: Buffer) => Effect.Effect<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (bytes) =>
    Effect.flatMap(parseInPieces(bytes), (parsed) =>
      Either.flatMap(parsed, (value) => Either.mapLeft(decode(value), InvalidRequest.ofDecoding))
    )
}

/** Creates a parser of queries with this schema. If a name is repeated, the last value wins. */
export const query = <A, I>(
  schema: Schema.Schema<A, I>
): ((params: URLSearchParams) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (params) => Either.mapLeft(decode(Object.fromEntries(params)), InvalidRequest.ofDecoding)
}
