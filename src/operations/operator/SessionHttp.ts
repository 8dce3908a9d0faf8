import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Duration, Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { ConsoleSettings } from "../../console/Settings.ts"
import { storable } from "../../http/lanes/Answer.ts"
import * as Body from "../../http/transport/Body.ts"
import { RouteNotFound } from "../../http/contract/Problems.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import { ownCookie } from "../../http/transport/OwnCookie.ts"
import { sameOrigin, saysJson } from "../../http/transport/SameOrigin.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { OperatorSessionApi } from "./Api.ts"
import { SessionRequest } from "./Session.ts"
import { OperatorSessions, sessionLifetime } from "./Sessions.ts"

const noStore = { "cache-control": "no-store" }

const read = Body.json(SessionRequest)

export const OperatorSessionHttp = HttpApiBuilder.group(
  contract.add(OperatorSessionApi),
  "operatorSession",
  Effect.fnUntraced(function* (handlers) {
    const sessions = yield* OperatorSessions
    const limits = yield* RateLimits
    const { public_url } = yield* ServiceInfo
    const { enabled } = yield* ConsoleSettings
    const whenServed = enabled ? Effect.void : Effect.suspend(() => new RouteNotFound())
    const cookie = ownCookie("tollgate_operator", "/console", public_url)

    const cookieOf = (value: string, seconds: number): string =>
      `${cookie.name}=${value}; ${cookie.attributes}; SameSite=Strict; Max-Age=${seconds}`

    const open = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      yield* whenServed
      yield* sameOrigin(request, public_url)
      yield* saysJson(request)
      yield* limits.take("sign_in", request)
      const text = yield* Effect.orDie(request.text)
      const { code } = yield* read(Buffer.from(text))
      const held = request.cookies[cookie.name]
      // Responds with 204 instead of an error, because browsers log every error and a first visit has no session yet.
      if (code === undefined && (held === undefined || held === ""))
        return HttpServerResponse.empty({ status: 204, headers: noStore })
      const entered = code === undefined ? undefined : yield* sessions.enter(code)
      const operator = entered?.operator ?? (yield* sessions.resume(held))
      const headers =
        entered === undefined
          ? noStore
          : { ...noStore, "set-cookie": cookieOf(entered.cookie, Duration.toSeconds(sessionLifetime)) }
      return HttpServerResponse.unsafeJson(yield* sessions.issue(operator), { headers })
    })

    const close = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      yield* whenServed
      yield* sameOrigin(request, public_url)
      yield* limits.take("sign_in", request)
      const operator = yield* sessions.resume(request.cookies[cookie.name])
      yield* sessions.end(operator.session_id, operator)
      return HttpServerResponse.empty({ status: 204, headers: { ...noStore, "set-cookie": cookieOf("", 0) } })
    })

    return handlers
      .handleRaw("open", ({ request }) => storable(open(request)))
      .handleRaw("close", ({ request }) => storable(close(request)))
  })
)
