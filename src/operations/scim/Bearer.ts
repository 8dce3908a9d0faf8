/** Checks the directory's bearer token. If no directory is configured, every token is rejected. */
import { HttpServerRequest } from "@effect/platform"
import { Effect, Layer, Redacted } from "effect"
import { createHash, timingSafeEqual } from "node:crypto"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import { InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"
import { ScimToken } from "./Security.ts"
import { ScimBearer } from "./Settings.ts"

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

const make = Effect.gen(function* () {
  const { token } = yield* ScimBearer
  const limits = yield* RateLimits
  const expected = token === undefined ? undefined : digest(Redacted.value(token))
  const isRight = (given: string): boolean => expected !== undefined && timingSafeEqual(digest(given), expected)
  const check = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const authorization = request.headers["authorization"]
    if (authorization === undefined) return yield* new MissingAuthorization()
    const bearerToken = /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
    if (bearerToken !== undefined && isRight(bearerToken)) return
    // Limits the rate of failed attempts per address.
    yield* limits.take("scim", request)
    return yield* new InvalidToken()
  })
  return { scim_token: () => check }
})

export const ScimTokenHttp = Layer.effect(ScimToken, make)
