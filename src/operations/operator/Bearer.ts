/** Authenticates the operator's routes with a session's token, or with a management key that has the route's scope. */
import { HttpRouter, HttpServerRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import { InsufficientScope } from "../../people/credentials/Problems.ts"
import { bearerOf, holderOf } from "./Holder.ts"
import { scopesOf } from "./ManagementKey.ts"
import type { Scope } from "./ManagementKey.ts"
import { ManagementKeys } from "./ManagementKeys.ts"
import { OperatorToken } from "./Security.ts"
import { OperatorSessions } from "./Sessions.ts"

const lacking = (needed: ReadonlyArray<Scope> | undefined): InsufficientScope =>
  needed === undefined
    ? new InsufficientScope({
        message: "management keys may not call this route; sign in as an operator (tollgate operator)"
      })
    : new InsufficientScope({ message: `this management key needs the scope ${needed[0]!}`, scope: needed[0]! })

/** Creates the middleware. A request with an unknown management key counts against the rate limit of its address, as a request for a token does. */
const make = Effect.gen(function* () {
  const sessions = yield* OperatorSessions
  const keys = yield* ManagementKeys
  const limits = yield* RateLimits
  const holder = holderOf(sessions, keys)
  const operator = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const authorization = request.headers["authorization"]
    const found = yield* Effect.catchTag(holder(authorization), "InvalidToken", (problem) =>
      keys.isOne(bearerOf(authorization)) ? Effect.zipRight(limits.take("token", request), problem) : problem
    )
    if (found.scopes === undefined) return found.operator
    const { route } = yield* HttpRouter.RouteContext
    const needed = scopesOf(request.method, route.path)
    const has = (scope: Scope) => found.scopes?.includes(scope) === true
    return needed?.some(has) === true ? found.operator : yield* lacking(needed)
  })
  return { operator_token: () => operator }
})

export const OperatorTokenHttp = Layer.effect(OperatorToken, make)
