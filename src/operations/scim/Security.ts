/** The directory's bearer token, the credential for SCIM's routes. */
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { RateLimited } from "../../http/contract/Problems.ts"
import { InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"

export class ScimToken extends HttpApiMiddleware.Tag<ScimToken>()("tollgate/scim/ScimToken", {
  failure: Schema.Union(MissingAuthorization, InvalidToken, RateLimited),
  security: {
    scim_token: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "`Authorization: Bearer …` with the value of the environment variable that `scim.token_env` in the configuration specifies. No other " +
          "credential opens these routes, and this credential opens no other routes."
      )
    )
  }
}) {}
