/** The console's session routes. The page uses them to sign in and to get access tokens for all other routes. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { SessionEnded } from "../people/auth/Problems.ts"
import { Browsed } from "../http/contract/Documented.ts"
import { CrossOrigin, RateLimited, RouteNotFound, UnsupportedMediaType } from "../http/contract/Problems.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { Envelope } from "../kernel/Envelope.ts"
import { AccountId, TenantId } from "../kernel/Ids.ts"
import { Moment } from "../kernel/Moment.ts"
import { Asserted, RequestOptions } from "../people/passkeys/Passkey.ts"
import { PasskeyRejected, PasskeysUnavailable } from "../people/passkeys/Problems.ts"
import { AccountSuspended, NotAMember } from "../people/tenants/Problems.ts"

const Providers = Schema.Struct({
  service_name: Schema.String,
  /** The configured sign-in methods. `email` sends a link. A sign-in starts at `/console/sign-in/{id}`. */
  providers: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String })),
  /** Whether browsers support passkeys at the service's URL. */
  passkeys: Schema.Boolean,
  /** Whether this is a sandbox. A sandbox signs in the user that `login_hint` names. */
  sandbox: Schema.Boolean
}).annotations({ identifier: "ConsoleProviders" })

/** `tenant_id` must be one of the user's tenants. The default is the last requested tenant. `code` comes from a single-use console link. */
export const SessionRequest = Schema.Struct({
  tenant_id: Schema.optional(TenantId),
  code: Schema.optional(Schema.String.pipe(Schema.maxLength(200)))
}).annotations({
  identifier: "ConsoleSessionRequest"
})

export const ConsoleToken = Schema.Struct({
  access_token: Schema.String,
  token_type: Schema.Literal("Bearer"),
  /** The token's lifetime in seconds. */
  expires_in: Schema.Int,
  account_id: AccountId,
  tenant_id: TenantId,
  /** When the session expires. Each renewal of the token extends it. */
  session_expires_at: Moment
}).annotations({ identifier: "ConsoleToken" })

export class ConsoleApi extends HttpApiGroup.make("console")
  .add(
    HttpApiEndpoint.get("providers", "/console/providers")
      .addSuccess(Envelope(Providers))
      .annotate(OpenApi.Summary, "List the console's sign-in methods")
  )
  .add(
    HttpApiEndpoint.get("signIn", "/console/sign-in/:provider")
      .setPath(Schema.Struct({ provider: Schema.String }))
      .setUrlParams(
        Schema.Struct({
          to: Schema.optional(
            Schema.String.annotations({
              description: "The console page to return to, as a path under /console/"
            })
          ),
          login_hint: Schema.optional(
            Schema.String.annotations({
              description: "The user to sign in; accepted only from a link on the console's own page"
            })
          )
        })
      )
      .addSuccess(HttpApiSchema.Text({ contentType: "text/html" }))
      .addError(InvalidRequest)
      .annotate(Browsed, true)
      .annotate(
        OpenApi.Summary,
        "Redirect a browser to the provider, which sends it back to the console with a session"
      )
  )
  .add(
    HttpApiEndpoint.post("openSession", "/console/session")
      .setPayload(SessionRequest)
      .addSuccess(Envelope(ConsoleToken))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(InvalidRequest)
      .addError(SessionEnded)
      .addError(NotAMember)
      .addError(UnsupportedMediaType)
      .annotate(
        OpenApi.Summary,
        "Get an access token for the session in the browser's cookie (only for the console's own page); 204 without a cookie"
      )
  )
  .add(
    HttpApiEndpoint.del("endSession", "/console/session")
      .addSuccess(Envelope(Schema.Struct({ success: Schema.Literal(true) })))
      .annotate(OpenApi.Summary, "End the session and its access tokens (only for the console's own page)")
  )
  .add(
    HttpApiEndpoint.post("passkeyChallenge", "/console/passkeys/challenge")
      .addSuccess(Envelope(RequestOptions))
      .addError(PasskeysUnavailable)
      .annotate(
        OpenApi.Summary,
        "Start a passkey sign-in: returns options with a challenge that is valid for five minutes, and a cookie that ties it to the browser (only for the console's own page)"
      )
  )
  .add(
    HttpApiEndpoint.post("passkeySignIn", "/console/passkeys/sign-in")
      .setPayload(Asserted)
      .addSuccess(Envelope(Schema.Struct({ success: Schema.Literal(true) })))
      .addError(InvalidRequest)
      .addError(PasskeysUnavailable)
      .addError(PasskeyRejected)
      .addError(AccountSuspended)
      .addError(UnsupportedMediaType)
      .annotate(OpenApi.Summary, "Open a session with a passkey's signature (only for the console's own page)")
  )
  .addError(CrossOrigin)
  .addError(RateLimited)
  .addError(RouteNotFound) {}
