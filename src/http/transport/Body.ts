/** Bodies and queries of raw routes by their schema, refused in the same words as everywhere else. */
import { Effect, Either, Schema } from "effect"
import { parse, parseInPieces } from "./Json.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"

/** Reads a JSON body of this shape. */
export const json = <A, I>(schema: Schema.Schema<A, I>): ((bytes: Buffer) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (bytes) => Either.flatMap(parse(bytes), (value) => Either.mapLeft(decode(value), InvalidRequest.ofDecoding))
}

/** The same, of a body that may hold pictures. */
export const longJson = <A, I>(schema: Schema.Schema<A, I>): ((bytes: Buffer) => Effect.Effect<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (bytes) =>
    Effect.flatMap(parseInPieces(bytes), (parsed) =>
      Either.flatMap(parsed, (value) => Either.mapLeft(decode(value), InvalidRequest.ofDecoding))
    )
}

/** Reads a query of this shape; of a name that stands twice, the last. */
export const query = <A, I>(
  schema: Schema.Schema<A, I>
): ((params: URLSearchParams) => Either.Either<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (params) => Either.mapLeft(decode(Object.fromEntries(params)), InvalidRequest.ofDecoding)
}
