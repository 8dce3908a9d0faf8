/** Serves the console's session routes. */
import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Clock, Effect, Schema } from "effect"
import { contract } from "../http/contract/Contract.ts"
import { Browser } from "../people/auth/Browser.ts"
import { EmailSignIn } from "../people/auth/EmailSignIn.ts"
import { emailProvider } from "../people/auth/Links.ts"
import { emailName } from "../people/auth/ProviderSignIn.ts"
import { BrowserSessions } from "../people/auth/BrowserSessions.ts"
import * as ConsoleReturn from "../people/auth/ConsoleReturn.ts"
import { Passkeys } from "../people/passkeys/Passkeys.ts"
import { storable } from "../http/lanes/Answer.ts"
import { RouteNotFound } from "../http/contract/Problems.ts"
import { RateLimits } from "../http/transport/RateLimits.ts"
import { sameOrigin } from "../http/transport/SameOrigin.ts"
import { envelope } from "../kernel/Envelope.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import { CurrentSandbox } from "../kernel/SandboxInfo.ts"
import { Identity } from "../upstream/identity/Identity.ts"
import { ConsoleToken, SessionRequest, ConsoleApi } from "./Api.ts"
import { reading } from "./Body.ts"
import * as PasskeySignIn from "./PasskeySignIn.ts"
import { ConsoleSettings } from "./Settings.ts"

type Request = HttpServerRequest.HttpServerRequest

const readRequest = reading(SessionRequest)
/** The response to a request without a session cookie: a 204, because browsers log every 4xx as an error. */
const noSession = HttpServerResponse.empty({ status: 204, headers: { "cache-control": "no-store" } })

const encodeToken = Schema.encodeSync(ConsoleToken)

export const ConsoleHttp = HttpApiBuilder.group(
  contract.add(ConsoleApi),
  "console",
  Effect.fnUntraced(function* (handlers) {
    const { enabled } = yield* ConsoleSettings
    const service = yield* ServiceInfo
    const sandbox = yield* CurrentSandbox
    const identity = yield* Identity
    const browser = yield* Browser
    const sessions = yield* BrowserSessions
    const limits = yield* RateLimits
    const emailSignInEnabled = yield* EmailSignIn
    const passkeys = yield* Passkeys
    const byPasskey = PasskeySignIn.make({ passkeys, sessions, limits, service })
    const { clearCookie, cookieName, setCookie } = ConsoleReturn.make(service)

    const requireEnabled = enabled ? Effect.void : Effect.suspend(() => new RouteNotFound())

    /** Returns the session cookie, if any. Rejects cross-origin requests and applies the token rate limit. */
    const sessionCookie = (request: Request) =>
      requireEnabled.pipe(
        Effect.zipRight(sameOrigin(request, service.public_url)),
        Effect.zipRight(limits.take("token", request)),
        Effect.as(request.cookies[cookieName])
      )

    const openSession = Effect.fnUntraced(function* ({ request }: { readonly request: Request }) {
      const held = yield* sessionCookie(request)
      const { code, tenant_id } = yield* readRequest(request)
      const cookie = code === undefined ? held : (yield* sessions.enter(code)).cookie
      if (cookie === undefined || cookie === "") return noSession
      const { session, ...token } = yield* sessions.access(cookie, tenant_id)
      const body = encodeToken({ ...token, token_type: "Bearer", session_expires_at: session.until })
      return HttpServerResponse.unsafeJson(envelope(body), {
        headers: { "set-cookie": setCookie(session, yield* Clock.currentTimeMillis), "cache-control": "no-store" }
      })
    })

    const endSession = Effect.fnUntraced(function* ({ request }: { readonly request: Request }) {
      yield* storable(sessions.end(yield* sessionCookie(request)))
      return HttpServerResponse.unsafeJson(envelope({ success: true }), { headers: { "set-cookie": clearCookie } })
    })

    return handlers
      .handle("providers", () =>
        Effect.as(
          requireEnabled,
          envelope({
            service_name: service.service_name,
            providers: [
              ...identity.configured.map((id) => ({ id, name: identity.nameOf(id) })),
              ...(emailSignInEnabled ? [{ id: emailProvider, name: emailName }] : [])
            ],
            passkeys: passkeys.available,
            sandbox: sandbox !== undefined
          })
        )
      )
      .handleRaw("signIn", ({ path, request }) =>
        emailSignInEnabled && path.provider === emailProvider
          ? Effect.zipRight(requireEnabled, browser.toLetter(request))
          : Effect.zipRight(
              identity.configured.includes(path.provider) ? requireEnabled : new RouteNotFound(),
              browser.toProvider(request, path.provider)
            )
      )
      .handleRaw("openSession", (call) => storable(openSession(call)))
      .handleRaw("endSession", endSession)
      .handleRaw("passkeyChallenge", ({ request }) =>
        storable(Effect.zipRight(requireEnabled, byPasskey.challenge(request)))
      )
      .handleRaw("passkeySignIn", ({ request }) => storable(Effect.zipRight(requireEnabled, byPasskey.signIn(request))))
  })
)
