/** Decodes the JSON bodies of requests from the console's page. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect, Schema } from "effect"
import { parse } from "../http/transport/Json.ts"
import { saysJson } from "../http/transport/SameOrigin.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"

/**
 * Returns a function that decodes a request's body. It fails with `UnsupportedMediaType` unless the request declares JSON, and with `InvalidRequest`
 * if the body does not match the schema.
 */
export const reading = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknown(schema, { onExcessProperty: "ignore" })
  return Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    yield* saysJson(request)
    const body = yield* parse(Buffer.from(yield* Effect.orDie(request.text)))
    return yield* Effect.mapError(decode(body), InvalidRequest.ofDecoding)
  })
}
