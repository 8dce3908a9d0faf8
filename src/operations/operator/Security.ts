/** Authentication for the operator's routes. */
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { RateLimited } from "../../http/contract/Problems.ts"
import { InsufficientScope, InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"
import { CurrentOperator } from "./CurrentOperator.ts"

/** Checks the operator's token before the rest of the request is read. */
export class OperatorToken extends HttpApiMiddleware.Tag<OperatorToken>()("tollgate/operator/OperatorToken", {
  provides: CurrentOperator,
  failure: Schema.Union(MissingAuthorization, InvalidToken, InsufficientScope, RateLimited),
  security: {
    operator_token: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "`Authorization: Bearer …` with a token from an operator's session (`POST /console/operator/session`, or `tollgate operator --token`). " +
          "These routes refuse a user's token. A program uses a management key (`POST /v1/operator/management-keys`, or " +
          "`tollgate operator keys create`), with scopes and an expiry."
      )
    )
  }
}) {}
