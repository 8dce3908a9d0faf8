/** Signs a user in with a passkey: the browser receives a challenge, signs it, and gets a session. */
import { HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Clock, Duration, Effect } from "effect"
import { ownCookie } from "../http/transport/OwnCookie.ts"
import { sameOrigin } from "../http/transport/SameOrigin.ts"
import type { RateLimitsContract } from "../http/transport/RateLimits.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { ServiceFacts } from "../kernel/ServiceInfo.ts"
import type { BrowserSessionsContract } from "../people/auth/BrowserSessions.ts"
import * as ConsoleReturn from "../people/auth/ConsoleReturn.ts"
import { challengeLifetime } from "../people/passkeys/Challenges.ts"
import { Asserted } from "../people/passkeys/Passkey.ts"
import type { PasskeysContract } from "../people/passkeys/Passkeys.ts"
import { reading } from "./Body.ts"

type Request = HttpServerRequest.HttpServerRequest

interface Dependencies {
  readonly passkeys: PasskeysContract
  readonly sessions: BrowserSessionsContract
  readonly limits: RateLimitsContract
  readonly service: ServiceFacts
}

const readAsserted = reading(Asserted)
const noStore = { "cache-control": "no-store" }

export const make = ({ limits, passkeys, service, sessions }: Dependencies) => {
  const cookie = ownCookie("tollgate_passkey", "/console", service.public_url)
  const { setCookie } = ConsoleReturn.make(service)
  const held = `${cookie.attributes}; SameSite=Strict; Max-Age=${Duration.toSeconds(challengeLifetime)}`

  const guardRequest = (request: Request) =>
    Effect.zipRight(sameOrigin(request, service.public_url), limits.take("sign_in", request))

  return {
    challenge: Effect.fnUntraced(function* (request: Request) {
      yield* guardRequest(request)
      const { cookie: value, options } = yield* passkeys.challenge
      return HttpServerResponse.unsafeJson(envelope(options), {
        headers: { ...noStore, "set-cookie": `${cookie.name}=${value}; ${held}` }
      })
    }),

    signIn: Effect.fnUntraced(function* (request: Request) {
      yield* guardRequest(request)
      const person = yield* passkeys.signIn(request.cookies[cookie.name], yield* readAsserted(request))
      const session = yield* sessions.open(person)
      const now = yield* Clock.currentTimeMillis
      return HttpServerResponse.unsafeJson(envelope({ success: true }), {
        headers: { ...noStore, "set-cookie": setCookie(session, now) }
      })
    })
  }
}
